/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/nft/test-nft.c - elements in the real nftables, each test in a namespace of its own
 */
#include "net/test.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/netfilter.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/str.h"
#include "net/nft/foreign.h"
#include "net/nft/nft.h"

#define CROWD 40
#define ANN   "00000000000000aa"
#define BOB   "00000000000000bb"

/* A socket in a new namespace; the rules are not there yet. */
static struct nft *open_nft(void)
{
	struct nft *nft = NULL;
	struct hw_err e = { 0 };

	test_require_netns();
	assert_int_equal(unshare(CLONE_NEWNET), 0);
	if (nft_open(&nft, &e) < 0) {
		print_message("%s\n", e.msg);
		skip();
	}
	return nft;
}

static struct nft_elem masq(const char *ip)
{
	struct hw_ip address = test_ip(ip);
	struct nft_elem elem = nft_elem_for("masq", &address, NFT_OWNED);

	nft_key_ip(&elem, &address);
	nft_data_jump(&elem, "masqall");
	return elem;
}

/* The same for one that has a network */
static struct nft_elem masq_in(const char *network)
{
	struct hw_prefix prefix = test_prefix(network);
	struct nft_elem elem = nft_elem_for("masq", &prefix.ip, NFT_OWNED);

	nft_key_ip(&elem, &prefix.ip);
	nft_data_network(&elem, NFT_MASQ, &prefix);
	return elem;
}

static struct nft_elem port(uint16_t number, const char *pod, uint16_t pod_port)
{
	struct hw_ip address = test_ip(pod);
	struct nft_elem elem = nft_elem_for("anyport", &address, NFT_EXCLUSIVE);

	nft_key_proto(&elem, IPPROTO_TCP);
	nft_key_port(&elem, number);
	nft_data_ip(&elem, &address);
	nft_data_port(&elem, pod_port);
	return elem;
}

static struct nft_elem own(const char *network)
{
	struct hw_prefix prefix = test_prefix(network);
	struct nft_elem elem = nft_elem_for("own", &prefix.ip, NFT_SHARED);

	nft_key_network(&elem, &prefix);
	nft_key_network(&elem, &prefix);
	return elem;
}

static void add(struct nft *nft, struct nft_elem elem, const char *owner)
{
	struct hw_err e = { 0 };

	nft_add(nft, &elem, 1, owner, NULL, &e);
	assert_string_equal(e.msg, "");
}

static void del(struct nft *nft, struct nft_elem elem, const char *owner)
{
	struct hw_err e = { 0 };

	nft_del(nft, &elem, 1, owner, &e);
	assert_string_equal(e.msg, "");
}

static void run(const char *commands)
{
	struct hw_err e = { 0 };

	nft_run(commands, &e);
	assert_string_equal(e.msg, "");
}

/* Whose it is; "absent" when it is not there */
static const char *owner_of(struct nft *nft, struct nft_elem elem)
{
	static struct nft_elem there;
	struct hw_err e;

	int r = nft_get(nft, &elem, &there, &e);
	assert_true(r >= 0);
	return r ? there.owner : "absent";
}

static bool prints(const char *command, const char *text)
{
	autofree char *output = NULL;
	struct hw_err e = { 0 };

	nft_run_for(command, &output, &e);
	assert_string_equal(e.msg, "");
	return strstr(output, text);
}

static void first(void **state)
{
	AUTO(nft_close) struct nft *nft = open_nft();

	(void)state;
	add(nft, masq("10.1.2.3"), ANN);
	add(nft, masq("fd00::3"), ANN);
	assert_true(prints("list map inet hawser masq4", "10.1.2.3 comment \"" ANN "\""));
	assert_true(prints("list map inet hawser masq6", "fd00::3 comment \"" ANN "\""));
	add(nft, masq("10.1.2.3"), ANN);
	assert_string_equal(owner_of(nft, masq("10.1.2.3")), ANN);
	assert_string_equal(owner_of(nft, masq("10.1.2.4")), "absent");
}

static void gone(void **state)
{
	AUTO(nft_close) struct nft *nft = open_nft();

	(void)state;
	del(nft, masq("10.1.2.3"), ANN);
	assert_string_equal(owner_of(nft, masq("10.1.2.3")), "absent");
	add(nft, masq("10.1.2.3"), ANN);
	run("flush ruleset");
	add(nft, masq("10.1.2.3"), ANN);
	assert_string_equal(owner_of(nft, masq("10.1.2.3")), ANN);
	del(nft, masq("10.1.2.3"), ANN);
	del(nft, masq("10.1.2.3"), ANN);
	assert_string_equal(owner_of(nft, masq("10.1.2.3")), "absent");
}

static void takeover(void **state)
{
	AUTO(nft_close) struct nft *nft = open_nft();

	(void)state;
	add(nft, masq("10.1.2.3"), ANN);
	add(nft, masq("10.1.2.3"), BOB);
	assert_string_equal(owner_of(nft, masq("10.1.2.3")), BOB);
	del(nft, masq("10.1.2.3"), ANN);
	assert_string_equal(owner_of(nft, masq("10.1.2.3")), BOB);
	del(nft, masq("10.1.2.3"), BOB);
	assert_string_equal(owner_of(nft, masq("10.1.2.3")), "absent");
}

static void exclusive(void **state)
{
	AUTO(nft_close) struct nft *nft = open_nft();
	struct nft_elem wanted[] = { masq("10.1.2.4"), port(8080, "10.1.2.4", 80) };
	struct nft_clash clash;
	char text[NFT_ELEM_TEXT];
	struct hw_err e;

	(void)state;
	add(nft, port(8080, "10.1.2.3", 80), ANN);
	assert_int_equal(nft_add(nft, wanted, 2, BOB, &clash, &e), -EEXIST);
	assert_int_equal(clash.index, 1);
	assert_string_equal(clash.there.owner, ANN);
	assert_string_equal(nft_elem_format(&clash.there, text), "tcp . 8080 : 10.1.2.3 . 80");
	assert_string_equal(owner_of(nft, masq("10.1.2.4")), "absent");
	/* its own it may change */
	add(nft, port(8080, "10.1.2.3", 81), ANN);
	assert_true(prints("list map inet hawser anyport4", ": 10.1.2.3 . 81"));
	del(nft, port(8080, "10.1.2.3", 80), ANN);
	assert_int_equal(nft_add(nft, wanted, 2, BOB, &clash, &e), 0);
}

static void verdicts(void **state)
{
	AUTO(nft_close) struct nft *nft = open_nft();
	struct hw_ip ip = test_ip("10.1.2.3");
	struct nft_elem allow = nft_elem_for("allow", &ip, NFT_OWNED), there;
	struct hw_err e;

	(void)state;
	nft_key_ip(&allow, &ip);
	nft_data_jump(&allow, "allow12");
	add(nft, allow, ANN);
	assert_int_equal(nft_get(nft, &allow, &there, &e), 1);
	assert_string_equal(there.chain, "allow12");
	assert_true(prints("list map inet hawser allow4", ": continue"));
	assert_int_equal(nft_check(nft, &allow, 1, ANN, &e), 0);
	nft_data_goto(&allow, "allow31");
	assert_int_equal(nft_add(nft, &allow, 1, ANN, NULL, &e), -ENOENT);
	assert_int_equal(nft_check(nft, &allow, 1, ANN, &e), -ESTALE);
	run("add chain inet hawser allow31");
	add(nft, allow, ANN);
	assert_true(prints("list map inet hawser allow4", ": goto allow31"));
}

static void intervals(void **state)
{
	AUTO(nft_close) struct nft *nft = open_nft();
	struct nft_elem wide = own("10.1.0.0/16");
	char text[NFT_ELEM_TEXT];

	(void)state;
	assert_string_equal(nft_elem_format(&wide, text), "10.1.0.0/16 . 10.1.0.0/16");
	add(nft, own("fd00::/64"), ANN);
	assert_true(prints("list set inet hawser own6", "{ fd00::/64 . fd00::/64 }"));
	add(nft, own("10.1.0.7/24"), ANN);
	add(nft, own("10.1.0.0/24"), BOB);
	add(nft, own("10.1.0.128/25"), BOB);
	assert_true(prints("list set inet hawser own4", "{ 10.1.0.0/24 . 10.1.0.0/24 }"));
	add(nft, own("10.1.255.0/24"), BOB);
	add(nft, own("10.1.0.0/16"), BOB);
	assert_true(prints("list set inet hawser own4", "{ 10.1.0.0/16 . 10.1.0.0/16 }"));
	del(nft, own("10.1.0.0/16"), BOB);
	assert_string_equal(owner_of(nft, own("10.1.2.0/24")), "");
}

static void crowd(void **state)
{
	AUTO(nft_close) struct nft *nft = open_nft();
	struct hw_err e = { 0 };
	int status;

	(void)state;
	for (int i = 0; i < CROWD; i++) {
		if (fork() != 0)
			continue;
		autofree char *ip = str_printf("10.1.2.%d", i + 1);
		struct nft_elem v[] = { masq(ip), own("10.1.2.0/24") };
		struct nft *own_nft = NULL;

		if (nft_open(&own_nft, &e) >= 0 &&
		    nft_add(own_nft, v, ARRAY_SIZE(v), ANN, NULL, &e) >= 0)
			_exit(nft_del(own_nft, v, i % 2, ANN, &e) < 0);
		fprintf(stderr, "%s\n", e.msg);
		_exit(1);
	}
	for (int i = 0; i < CROWD; i++) {
		assert_true(wait(&status) > 0);
		assert_int_equal(status, 0);
	}
	for (int i = 0; i < CROWD; i++) {
		autofree char *ip = str_printf("10.1.2.%d", i + 1);

		assert_string_equal(owner_of(nft, masq(ip)), i % 2 ? "absent" : ANN);
	}
	/* loaded once: no rule is there twice */
	assert_false(prints("list chain inet hawser guard", "drop\n\t\tiifname"));
}

static void upgrade(void **state)
{
	AUTO(nft_close) struct nft *nft = open_nft(), *later = NULL;
	struct hw_err e;

	(void)state;
	add(nft, masq("10.1.2.3"), ANN);
	run("flush set inet hawser version\n"
	    "flush chain inet hawser version1\n"
	    "flush chain inet hawser guard\n"
	    "add rule inet hawser guard counter\n"
	    "add chain inet hawser others\n"
	    "add rule inet hawser others counter\n");
	assert_int_equal(nft_open(&later, &e), 0);
	add(later, masq("10.1.2.4"), BOB);
	assert_false(prints("list chain inet hawser guard", "counter"));
	assert_true(prints("list chain inet hawser guard", "drop"));
	assert_true(prints("list chain inet hawser others", "counter"));
	assert_string_equal(owner_of(nft, masq("10.1.2.3")), ANN);
}

static void newer(void **state)
{
	AUTO(nft_close) struct nft *nft = open_nft();
	struct hw_err e;

	(void)state;
	assert_int_equal(nft_load(nft, NFT_INET, &e), 0);
	run("add element inet hawser version { 2 }\n"
	    "add rule inet hawser guard counter\n");
	assert_int_equal(nft_load(nft, NFT_INET, &e), 0);
	assert_int_equal(nft_repair(nft, NFT_INET, &e), 0);
	assert_true(prints("list chain inet hawser guard", "counter"));
}

/* What a newer version has, and somebody has emptied, is not replaced by an older one. */
static void newer_emptied(void **state)
{
	AUTO(nft_close) struct nft *nft = open_nft(), *later = NULL;
	struct nft_elem elem = masq("10.1.2.3");
	struct hw_err e;

	(void)state;
	assert_int_equal(nft_load(nft, NFT_INET, &e), 0);
	run("add element inet hawser version { 2 }\n"
	    "flush table inet hawser\n"
	    "add rule inet hawser guard counter\n");
	assert_int_equal(nft_repair(nft, NFT_INET, &e), -ENOENT);
	assert_non_null(strstr(e.msg, "are of a newer hawser-plugin"));
	assert_int_equal(nft_open(&later, &e), 0);
	assert_int_equal(nft_add(later, &elem, 1, ANN, NULL, &e), -ENOENT);
	assert_true(prints("list chain inet hawser guard", "counter"));
	assert_false(prints("list chain inet hawser guard", "drop"));
}

static void emptied(void **state)
{
	AUTO(nft_close) struct nft *nft = open_nft(), *later = NULL;
	struct hw_err e = { 0 };

	(void)state;
	add(nft, masq("10.1.2.3"), ANN);
	run("flush table inet hawser");
	assert_int_equal(nft_open(&later, &e), 0);
	add(later, masq("10.1.2.4"), ANN);
	assert_int_equal(nft_check_rules(nft, NFT_INET, &e), 0);
	assert_string_equal(owner_of(nft, masq("10.1.2.3")), ANN);
	assert_false(prints("list set inet hawser version", "2"));
}

static void version_emptied(void **state)
{
	AUTO(nft_close) struct nft *nft = open_nft();
	struct hw_err e = { 0 };

	(void)state;
	assert_int_equal(nft_load(nft, NFT_INET, &e), 0);
	run("flush set inet hawser version\n"
	    "flush chain inet hawser guard\n");
	assert_int_equal(nft_check_rules(nft, NFT_INET, &e), -ENOENT);
	assert_int_equal(nft_repair(nft, NFT_INET, &e), 0);
	assert_true(prints("list chain inet hawser guard", "drop"));
	run("flush set inet hawser version");
	assert_int_equal(nft_repair(nft, NFT_INET, &e), 0);
	assert_int_equal(nft_check_rules(nft, NFT_INET, &e), 0);
	run("flush set inet hawser version\n"
	    "flush chain inet hawser guard\n"
	    "add chain inet hawser version2\n"
	    "add rule inet hawser version2 return\n");
	assert_int_equal(nft_repair(nft, NFT_INET, &e), 0);
	assert_false(prints("list chain inet hawser guard", "drop"));
}

/* Every chain that has rules, one after the other */
static void each_chain(void **state)
{
	AUTO(nft_close) struct nft *nft = open_nft();
	autofree char *before = NULL;
	struct hw_err e = { 0 };
	char name[64];
	int chains = 0;

	(void)state;
	assert_int_equal(nft_load(nft, NFT_INET, &e), 0);
	assert_int_equal(nft_run_for("list table inet hawser", &before, &e), 0);
	for (const char *at = before; (at = strstr(at, "\n\tchain ")); at++) {
		autofree char *after = NULL, *command = NULL;

		assert_int_equal(sscanf(at, " chain %63s", name), 1);
		if (str_equal(name, "snatbits"))
			continue;
		command = str_printf("flush chain inet hawser %s", name);
		run(command);
		assert_int_equal(nft_check_rules(nft, NFT_INET, &e), -ENOENT);
		assert_int_equal(nft_repair(nft, NFT_INET, &e), 0);
		assert_int_equal(nft_check_rules(nft, NFT_INET, &e), 0);
		assert_int_equal(nft_run_for("list table inet hawser", &after, &e), 0);
		assert_string_equal(before, after);
		chains++;
	}
	assert_true(chains > 10);
}

static void networks(void **state)
{
	AUTO(nft_close) struct nft *nft = open_nft();
	struct nft_elem wide = masq_in("10.1.0.9/16"), narrow = masq_in("10.1.0.8/24");
	struct hw_err e = { 0 };
	char command[96];

	(void)state;
	add(nft, wide, ANN);
	add(nft, narrow, BOB);
	add(nft, masq_in("10.1.0.7/24"), BOB);
	add(nft, masq_in("fd00::7/64"), BOB);
	assert_int_equal(nft_check(nft, &wide, 1, ANN, &e), 0);
	snprintf(command, sizeof(command), "list chain inet hawser %s", narrow.chain);
	assert_true(prints(command, "ip daddr != 10.1.0.0/24 ip daddr != 224.0.0.0/4 masquerade"));
	snprintf(command, sizeof(command), "flush chain inet hawser %s", narrow.chain);
	run(command);
	assert_int_equal(nft_check(nft, &wide, 1, ANN, &e), 0);
	assert_int_equal(nft_check(nft, &narrow, 1, BOB, &e), -ENOENT);
	assert_non_null(strstr(e.msg, "hawser-plugin repair"));
	assert_int_equal(nft_repair_networks(nft, &narrow, 1, &e), 0);
	assert_int_equal(nft_check(nft, &narrow, 1, BOB, &e), 0);
	run("flush ruleset");
	add(nft, narrow, BOB);
	assert_int_equal(nft_check(nft, &narrow, 1, BOB, &e), 0);
}

/* Whoever comes first after a flush loads all rules, but knows of one network only. */
static void networks_emptied(void **state)
{
	AUTO(nft_close) struct nft *nft = open_nft(), *first = NULL, *second = NULL;
	struct nft_elem wide = masq_in("10.1.0.9/16"), narrow = masq_in("10.1.0.8/24");
	struct hw_err e = { 0 };

	(void)state;
	add(nft, wide, ANN);
	add(nft, narrow, BOB);
	run("flush table inet hawser");
	assert_int_equal(nft_open(&first, &e), 0);
	assert_int_equal(nft_open(&second, &e), 0);
	add(first, masq_in("10.1.0.6/16"), ANN);
	add(second, masq_in("10.1.0.7/24"), BOB);
	assert_int_equal(nft_check(nft, &wide, 1, ANN, &e), 0);
	assert_int_equal(nft_check(nft, &narrow, 1, BOB, &e), 0);
}

/* Each is an error of its own, more than a socket usually holds. */
static void many(void **state)
{
	AUTO(nft_close) struct nft *nft = open_nft();
	AUTO(nft_elems_done) struct nft_elems elems = { 0 };
	struct nft_clash clash;
	struct hw_err e = { 0 };

	(void)state;
	for (uint16_t i = 0; i < 3000; i++)
		nft_elems_add(&elems, port(10000 + i, "10.1.2.3", i));
	for (int i = 0; i < 2; i++) {
		nft_add(nft, elems.v, elems.n, ANN, NULL, &e);
		assert_string_equal(e.msg, "");
	}
	assert_int_equal(nft_add(nft, elems.v, elems.n, BOB, &clash, &e), -EEXIST);
	assert_string_equal(clash.there.owner, ANN);
	assert_int_equal(nft_del(nft, elems.v, elems.n, ANN, &e), 0);
}

static void elems(void **state)
{
	AUTO(nft_elems_done) struct nft_elems list = { 0 };
	struct nft_elem one = masq("10.1.2.3"), absent = one;

	(void)state;
	absent.mode = NFT_ABSENT;
	nft_elems_add_once(&list, one);
	nft_elems_add_once(&list, one);
	assert_int_equal(list.n, 1);
	assert_false(nft_elems_has(&list, &absent));
	nft_elems_add_once(&list, absent);
	nft_elems_add_once(&list, masq("10.1.2.4"));
	assert_int_equal(list.n, 3);
	for (int i = 0; i < 100; i++)
		nft_elems_add(&list, one);
	assert_int_equal(list.n, 103);
}

/* As long as a container's name may be, and longer than a name in the kernel */
static void long_names(void **state)
{
	static const char *const parents[] = { "PREROUTING", NULL };
	AUTO(nft_close) struct nft *nft = open_nft();
	char name[4001];
	struct nft_place place = { NFPROTO_BRIDGE, "nat", name };
	struct hw_err e = { 0 };

	(void)state;
	run("table bridge nat { chain PREROUTING { accept; }; }");
	for (size_t len = 250; len < sizeof(name); len += len < 260 ? 1 : 1870) {
		memset(name, 'x', len);
		name[len] = '\0';
		assert_int_equal(nft_has_chain(nft, &place, &e), 0);
		assert_int_equal(nft_foreign_delete_chain(nft, &place, parents, &e), 0);
	}
}

static void foreign(void **state)
{
	static const char list[] = "list table inet other";
	AUTO(nft_close) struct nft *nft = open_nft();
	autofree char *before = NULL, *after = NULL;
	struct hw_err e;

	(void)state;
	run("table inet other {\n"
	    "set masq4 { type ipv4_addr; elements = { 10.1.2.3 }; }\n"
	    "chain postrouting { type nat hook postrouting priority 100; drop; }\n"
	    "}\n");
	assert_int_equal(nft_run_for(list, &before, &e), 0);
	add(nft, masq("10.1.2.3"), ANN);
	del(nft, masq("10.1.2.3"), ANN);
	assert_int_equal(nft_run_for(list, &after, &e), 0);
	assert_string_equal(before, after);
}

static void checks(void **state)
{
	AUTO(nft_close) struct nft *nft = open_nft();
	struct nft_elem elem = masq("10.1.2.3");
	struct hw_err e;

	(void)state;
	assert_int_equal(nft_check(nft, &elem, 1, ANN, &e), -ENOENT);
	assert_non_null(strstr(e.msg, "table inet hawser, are gone"));
	assert_int_equal(nft_load(nft, NFT_INET, &e), 0);
	assert_int_equal(nft_check(nft, &elem, 1, ANN, &e), -ENOENT);
	assert_non_null(strstr(e.msg, "masq4 lacks 10.1.2.3"));
	add(nft, elem, BOB);
	assert_int_equal(nft_check(nft, &elem, 1, ANN, &e), -ESTALE);
	assert_int_equal(nft_check(nft, &elem, 1, BOB, &e), 0);
	run("flush table inet hawser");
	assert_int_equal(nft_check(nft, &elem, 1, BOB, &e), -ENOENT);
	assert_int_equal(nft_repair(nft, NFT_INET, &e), 0);
	assert_int_equal(nft_check(nft, &elem, 1, BOB, &e), 0);
}

static int count(void *ctx, const struct nft_elem *elem, struct hw_err *e)
{
	(void)e;
	assert_string_equal(elem->owner, ANN);
	++*(int *)ctx;
	return 0;
}

static void lists(void **state)
{
	AUTO(nft_close) struct nft *nft = open_nft();
	struct nft_elem v[500];
	struct hw_err e = { 0 };
	int n = 0;

	(void)state;
	assert_int_equal(nft_list(nft, NFT_INET, "masq4", count, &n, &e), 0);
	for (size_t i = 0; i < ARRAY_SIZE(v); i++) {
		autofree char *ip = str_printf("10.1.%zu.%zu", i / 250, i % 250);

		v[i] = masq(ip);
	}
	nft_add(nft, v, ARRAY_SIZE(v), ANN, NULL, &e);
	assert_string_equal(e.msg, "");
	assert_int_equal(nft_list(nft, NFT_INET, "masq4", count, &n, &e), 0);
	assert_int_equal(n, ARRAY_SIZE(v));
	assert_int_equal(nft_del(nft, v, ARRAY_SIZE(v), ANN, &e), 0);
	assert_int_equal(nft_list(nft, NFT_INET, "masq4", count, &n, &e), 0);
	assert_int_equal(n, ARRAY_SIZE(v));
}

static void bridges(void **state)
{
	AUTO(nft_close) struct nft *nft = open_nft();
	struct nft_elem v[] = { nft_elem(NFT_BRIDGE, "mac_ok", NFT_OWNED),
				nft_elem(NFT_BRIDGE, "mac_checked", NFT_OWNED) };
	struct hw_mac mac = { 6, { 2, 0, 0, 0, 0, 7 } };
	struct hw_err e = { 0 };

	(void)state;
	nft_key_ifname(&v[0], "veth0123abcd");
	nft_key_mac(&v[0], &mac);
	nft_key_ifname(&v[1], "veth0123abcd");
	nft_add(nft, v, 2, ANN, NULL, &e);
	assert_string_equal(e.msg, "");
	assert_true(
		prints("list set bridge hawser mac_ok", "\"veth0123abcd\" . 02:00:00:00:00:07"));
	assert_int_equal(nft_check(nft, v, 2, ANN, &e), 0);
	assert_int_equal(nft_check_rules(nft, NFT_INET, &e), -ENOENT);
}

/* Every set that nft.h knows is in the rules, with its type, and no other. */
static void named(void **state)
{
	AUTO(nft_close) struct nft *nft = open_nft();
	autofree char *list = NULL;
	struct hw_err e = { 0 };
	size_t known = 0, there = 0;

	(void)state;
	assert_int_equal(nft_load(nft, NFT_INET, &e), 0);
	assert_int_equal(nft_load(nft, NFT_BRIDGE, &e), 0);
	assert_int_equal(nft_run_for("list ruleset", &list, &e), 0);
	for (const char *at = list; (at = strstr(at, "\n\t\ttype ")); at++)
		there += !str_starts(at, "\n\t\ttype filter") && !str_starts(at, "\n\t\ttype nat");
	for (const struct nft_set *set = nft_sets; set->name; set++, known++) {
		autofree char *line =
			str_printf("\t%s %s {\n", *set->data ? "map" : "set", set->name);

		assert_non_null(strstr(list, line));
	}
	assert_int_equal(known, there);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{ "nft: the first element brings the rules with it", first },
		{ "nft: deleting what is not there succeeds, and flushed rules come back", gone },
		{ "nft: another's element is taken over, and then is not its former owner's",
		  takeover },
		{ "nft: another's host port is not taken, and nothing of the batch happens",
		  exclusive },
		{ "nft: a map can lead to chains", verdicts },
		{ "nft: of networks inside of each other the widest is kept", intervals },
		{ "nft: forty first ones at once load the rules once", crowd },
		{ "nft: older rules are replaced; elements and others' chains stay", upgrade },
		{ "nft: newer rules stay", newer },
		{ "nft: newer rules that somebody has emptied are not replaced by older ones",
		  newer_emptied },
		{ "nft: an element brings the rules back into emptied chains", emptied },
		{ "nft: repair fills an emptied set of versions, unless the rules are newer ones",
		  version_emptied },
		{ "nft: each chain that is emptied alone is noticed, and filled again",
		  each_chain },
		{ "nft: networks inside of each other have a chain each", networks },
		{ "nft: after a flush each ADD fills its own network's chain, too",
		  networks_emptied },
		{ "nft: three thousand ports that are there, or another's", many },
		{ "nft: a list has an element once, and apart from that it must be absent", elems },
		{ "nft: a chain whose name is too long for the kernel is not there", long_names },
		{ "nft: others' rules are not touched", foreign },
		{ "nft: a check tells flushed rules, empty chains and lost elements apart",
		  checks },
		{ "nft: five hundred elements are listed, and go in one batch", lists },
		{ "nft: links and hardware addresses in the bridge table", bridges },
		{ "nft: the sets that we know are those of the rules", named },
	};

	return cmocka_run_group_tests_name("nft", tests, test_enter, NULL);
}
