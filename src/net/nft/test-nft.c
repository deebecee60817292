/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/nft/test-nft.c - add, delete and check nftables elements; load and repair the rules
 *
 * Each test has its own namespace.
 */
#include "net/test.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/os/file.h"
#include "base/str.h"
#include "base/time.h"
#include "net/nft/foreign.h"
#include "net/nft/nft.h"
#include "net/nft/wire.h"

#define PROCESSES 40
#define OWNER_A	  "00000000000000aa"
#define OWNER_B	  "00000000000000bb"

/* Opens a socket in a new namespace in which no rules are loaded. */
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

static struct nft_elem masq_elem(const char *ip)
{
	struct hw_ip address = test_ip(ip);
	struct nft_elem elem = nft_elem_for("masq", &address, NFT_OWNED);

	nft_key_ip(&elem, &address);
	nft_data_jump(&elem, "masqall");
	return elem;
}

/* Like masq_elem(), but for a pod with a network */
static struct nft_elem masq_network_elem(const char *network)
{
	struct hw_prefix prefix = test_prefix(network);
	struct nft_elem elem = nft_elem_for("masq", &prefix.ip, NFT_OWNED);

	nft_key_ip(&elem, &prefix.ip);
	nft_data_network_chain(&elem, NFT_MASQ, &prefix);
	return elem;
}

static struct nft_elem port_elem(uint16_t number, const char *pod, uint16_t pod_port)
{
	struct hw_ip address = test_ip(pod);
	struct nft_elem elem = nft_elem_for("anyport", &address, NFT_OWNED);

	nft_key_proto(&elem, IPPROTO_TCP);
	nft_key_port(&elem, number);
	nft_data_ip(&elem, &address);
	nft_data_port(&elem, pod_port);
	return elem;
}

static struct nft_elem own_elem(const char *network)
{
	struct hw_prefix prefix = test_prefix(network);
	struct nft_elem elem = nft_elem_for("own", &prefix.ip, NFT_SHARED);

	nft_key_network(&elem, &prefix);
	nft_key_network(&elem, &prefix);
	return elem;
}

static void add_elem(struct nft *nft, struct nft_elem elem, const char *owner)
{
	struct hw_err e = { 0 };

	if (nft_add(nft, &elem, 1, owner, &e) < 0)
		fail_msg("%s", e.msg);
}

static void del_elem(struct nft *nft, struct nft_elem elem, const char *owner)
{
	struct hw_err e = { 0 };

	if (nft_del(nft, &elem, 1, owner, &e) < 0)
		fail_msg("%s", e.msg);
}

static void run_nft(const char *commands)
{
	struct hw_err e = { 0 };

	if (nft_run(commands, &e) < 0)
		fail_msg("%s", e.msg);
}

/* Return: the owner of an element; "absent" if the element does not exist */
static const char *get_owner(struct nft *nft, struct nft_elem elem)
{
	static struct nft_elem there;
	struct hw_err e;

	int r = nft_get(nft, &elem, &there, &e);
	assert_true(r >= 0);
	return r ? there.owner : "absent";
}

static void failures_have_a_text(void **state)
{
	AUTO(nft_close) struct nft *nft = open_nft();
	struct nlmsghdr *m = nft_start_request(nft, NFT_MSG_GETCHAIN, 0, NFPROTO_INET);
	struct hw_err e = { 0 };

	(void)state;
	nft_put_name(m, NFTA_CHAIN_TABLE, "absent");
	nft_put_name(m, NFTA_CHAIN_NAME, "absent");
	assert_int_equal(nft_send_request(nft, m, NULL, NULL, &e), -ENOENT);
	assert_string_equal(e.msg, "No such file or directory");
	assert_int_equal(e.code, -ENOENT);
	e = (struct hw_err){ 0 };
	nft_batch_begin(nft, 0);
	m = nft_start_message(nft, NFT_MSG_DELTABLE, 0, NFPROTO_INET);
	nft_put_name(m, NFTA_TABLE_NAME, "absent");
	nft_end_message(nft, m);
	assert_int_equal(nft_batch_commit(nft, &e), -ENOENT);
	assert_string_equal(e.msg, "No such file or directory");
}

static bool output_contains(const char *command, const char *text)
{
	autofree char *output = NULL;
	struct hw_err e = { 0 };

	nft_run_get_output(command, &output, &e);
	assert_string_equal(e.msg, "");
	return strstr(output, text);
}

static void first_element(void **state)
{
	AUTO(nft_close) struct nft *nft = open_nft();

	(void)state;
	add_elem(nft, masq_elem("10.1.2.3"), OWNER_A);
	add_elem(nft, masq_elem("fd00::3"), OWNER_A);
	assert_true(
		output_contains("list map inet hawser masq4", "10.1.2.3 comment \"" OWNER_A "\""));
	assert_true(
		output_contains("list map inet hawser masq6", "fd00::3 comment \"" OWNER_A "\""));
	add_elem(nft, masq_elem("10.1.2.3"), OWNER_A);
	assert_string_equal(get_owner(nft, masq_elem("10.1.2.3")), OWNER_A);
	assert_string_equal(get_owner(nft, masq_elem("10.1.2.4")), "absent");
}

static void delete_missing(void **state)
{
	AUTO(nft_close) struct nft *nft = open_nft();

	(void)state;
	del_elem(nft, masq_elem("10.1.2.3"), OWNER_A);
	assert_string_equal(get_owner(nft, masq_elem("10.1.2.3")), "absent");
	add_elem(nft, masq_elem("10.1.2.3"), OWNER_A);
	run_nft("flush ruleset");
	add_elem(nft, masq_elem("10.1.2.3"), OWNER_A);
	assert_string_equal(get_owner(nft, masq_elem("10.1.2.3")), OWNER_A);
	del_elem(nft, masq_elem("10.1.2.3"), OWNER_A);
	del_elem(nft, masq_elem("10.1.2.3"), OWNER_A);
	assert_string_equal(get_owner(nft, masq_elem("10.1.2.3")), "absent");
}

static void replace_owner(void **state)
{
	AUTO(nft_close) struct nft *nft = open_nft();

	(void)state;
	add_elem(nft, masq_elem("10.1.2.3"), OWNER_A);
	add_elem(nft, masq_elem("10.1.2.3"), OWNER_B);
	assert_string_equal(get_owner(nft, masq_elem("10.1.2.3")), OWNER_B);
	del_elem(nft, masq_elem("10.1.2.3"), OWNER_A);
	assert_string_equal(get_owner(nft, masq_elem("10.1.2.3")), OWNER_B);
	del_elem(nft, masq_elem("10.1.2.3"), OWNER_B);
	assert_string_equal(get_owner(nft, masq_elem("10.1.2.3")), "absent");
}

static void add_new(void **state)
{
	AUTO(nft_close) struct nft *nft = open_nft();
	AUTO(nft_elems_done) struct nft_elems elems = { .owner = OWNER_A };
	struct hw_err e = { 0 };

	(void)state;
	nft_elems_add(&elems, port_elem(8080, "10.1.2.3", 80));
	nft_elems_add(&elems, port_elem(8081, "10.1.2.3", 81));
	add_elem(nft, elems.v[1], OWNER_B);
	assert_int_equal(nft_add_new(nft, &elems, &e), -EEXIST);
	assert_string_equal(get_owner(nft, elems.v[0]), "absent");
	assert_string_equal(get_owner(nft, elems.v[1]), OWNER_B);
	/* the rules are loaded again if another program deletes them */
	run_nft("delete table inet hawser");
	assert_int_equal(nft_add_new(nft, &elems, &e), 0);
	assert_string_equal(get_owner(nft, elems.v[0]), OWNER_A);
	assert_string_equal(get_owner(nft, elems.v[1]), OWNER_A);
}

static void change_deletes(void **state)
{
	AUTO(nft_close) struct nft *nft = open_nft();
	AUTO(nft_elems_done) struct nft_elems elems = { .owner = OWNER_A };
	struct nft_elem port = port_elem(8080, "10.1.2.3", 81);
	struct nft_elem gone[] = { masq_elem("10.1.2.3"), masq_elem("10.1.2.4"),
				   masq_elem("10.1.2.5") };
	struct hw_err e = { 0 };

	(void)state;
	add_elem(nft, gone[0], OWNER_A);
	add_elem(nft, gone[1], OWNER_B);
	add_elem(nft, port_elem(8080, "10.1.2.3", 80), OWNER_B);
	for (size_t i = 0; i < ARRAY_SIZE(gone); i++) {
		gone[i].mode = NFT_GONE;
		nft_elems_add(&elems, gone[i]);
	}
	nft_elems_add(&elems, port);
	memcpy(elems.v[3].owner, OWNER_B, NFT_OWNER);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(nft_change(nft, &elems, &e), 0);
		assert_string_equal(get_owner(nft, gone[0]), "absent");
		assert_string_equal(get_owner(nft, gone[1]), i < 2 ? OWNER_B : "absent");
		assert_int_equal(nft_check(nft, &port, 1, OWNER_B, &e), 0);
		assert_int_equal(nft_check(nft, &elems.v[3], 1, OWNER_A, &e), 0);
		if (i == 1) /* the rules are loaded again */
			run_nft("delete table inet hawser");
	}
}

static void retry_ends(void **state)
{
	struct nft_retry retry = nft_retry_start();
	struct hw_err e = { 0 };

	(void)state;
	for (int i = 0; i < 6; i++)
		assert_int_equal(nft_retry_wait(&retry, &e), 0);
	retry.deadline = time_now();
	assert_true(nft_retry_wait(&retry, &e) < 0);
	assert_int_equal(e.wire, HW_CNI_TRY_AGAIN);
	assert_string_equal(
		e.msg, "other programs changed nftables during each of 7 attempts to change it");
}

static void verdict_map(void **state)
{
	AUTO(nft_close) struct nft *nft = open_nft();
	struct hw_ip ip = test_ip("10.1.2.3");
	struct nft_elem allow = nft_elem_for("allow", &ip, NFT_OWNED), there;
	struct hw_err e;

	(void)state;
	nft_key_ip(&allow, &ip);
	nft_data_jump(&allow, "allow12");
	add_elem(nft, allow, OWNER_A);
	assert_int_equal(nft_get(nft, &allow, &there, &e), 1);
	assert_string_equal(there.chain, "allow12");
	assert_true(output_contains("list map inet hawser allow4", ": continue"));
	assert_int_equal(nft_check(nft, &allow, 1, OWNER_A, &e), 0);
	nft_data_goto(&allow, "allow31");
	assert_int_equal(nft_add(nft, &allow, 1, OWNER_A, &e), -ENOENT);
	assert_int_equal(nft_check(nft, &allow, 1, OWNER_A, &e), -ESTALE);
	run_nft("add chain inet hawser allow31");
	add_elem(nft, allow, OWNER_A);
	assert_true(output_contains("list map inet hawser allow4", ": goto allow31"));
}

static void intervals(void **state)
{
	AUTO(nft_close) struct nft *nft = open_nft();
	struct nft_elem wide = own_elem("10.1.0.0/16");
	char text[NFT_ELEM_TEXT];

	(void)state;
	assert_string_equal(nft_elem_format(&wide, text), "10.1.0.0/16 . 10.1.0.0/16");
	add_elem(nft, own_elem("fd00::/64"), OWNER_A);
	assert_true(output_contains("list set inet hawser own6", "{ fd00::/64 . fd00::/64 }"));
	add_elem(nft, own_elem("10.1.0.7/24"), OWNER_A);
	add_elem(nft, own_elem("10.1.0.0/24"), OWNER_B);
	add_elem(nft, own_elem("10.1.0.128/25"), OWNER_B);
	assert_true(output_contains("list set inet hawser own4", "{ 10.1.0.0/24 . 10.1.0.0/24 }"));
	add_elem(nft, own_elem("10.1.255.0/24"), OWNER_B);
	add_elem(nft, own_elem("10.1.0.0/16"), OWNER_B);
	assert_true(output_contains("list set inet hawser own4", "{ 10.1.0.0/16 . 10.1.0.0/16 }"));
	del_elem(nft, own_elem("10.1.0.0/16"), OWNER_B);
	assert_string_equal(get_owner(nft, own_elem("10.1.2.0/24")), "");
}

static void concurrent_loads(void **state)
{
	AUTO(nft_close) struct nft *nft = open_nft();
	struct hw_err e = { 0 };
	int status;

	(void)state;
	for (int i = 0; i < PROCESSES; i++) {
		if (fork() != 0)
			continue;
		autofree char *ip = str_printf("10.1.2.%d", i + 1);
		struct nft_elem v[] = { masq_elem(ip), own_elem("10.1.2.0/24") };
		struct nft *own_nft = NULL;

		if (nft_open(&own_nft, &e) >= 0 &&
		    nft_add(own_nft, v, ARRAY_SIZE(v), OWNER_A, &e) >= 0)
			_exit(nft_del(own_nft, v, i % 2, OWNER_A, &e) < 0);
		fprintf(stderr, "%s\n", e.msg);
		_exit(1);
	}
	for (int i = 0; i < PROCESSES; i++) {
		assert_true(wait(&status) > 0);
		assert_int_equal(status, 0);
	}
	for (int i = 0; i < PROCESSES; i++) {
		autofree char *ip = str_printf("10.1.2.%d", i + 1);

		assert_string_equal(get_owner(nft, masq_elem(ip)), i % 2 ? "absent" : OWNER_A);
	}
	/* the rules were loaded once: no rule exists twice */
	assert_false(output_contains("list chain inet hawser guard", "drop\n\t\tiifname"));
}

/* Loads the rules of version 0.1.0. */
static void load_old_rules(void)
{
	autofree char *path =
		str_printf("%s/test/data/ruleset-0.1.0.nft", str_or(getenv("HAWSER_SRC"), "."));
	AUTO(buf_done) struct buf text = { 0 };
	struct hw_err e = { 0 };

	file_read(AT_FDCWD, path, 65536, &text, &e);
	assert_string_equal(e.msg, "");
	run_nft(text.data);
}

static void older_rules(void **state)
{
	AUTO(nft_close) struct nft *nft = open_nft(), *later = NULL;
	struct hw_err e;

	(void)state;
	load_old_rules();
	run_nft("add chain inet hawser masq_1\n"
		"add rule inet hawser masq_1 ip daddr != 10.1.2.0/24 ip daddr != 224.0.0.0/4 "
		"masquerade\n"
		"add chain inet hawser near_1\n"
		"add rule inet hawser near_1 ip saddr 10.1.2.0/24 masquerade\n"
		"add chain inet hawser others\n"
		"add rule inet hawser others counter\n"
		"add element inet hawser masq4 { 10.1.2.3 comment \"" OWNER_A "\" : continue }\n"
		"add element inet hawser anyport4 { tcp . 8080 : 10.1.2.3 . 80 }\n"
		"add element inet hawser port6 { udp . fd00::1 . 81 : fd00::2 . 80 }\n"
		"add element inet hawser upto6 { udp . 81 . 0 }\n");
	assert_int_equal(nft_check_rules(nft, NFT_INET, &e), 0);
	assert_int_equal(nft_open(&later, &e), 0);
	add_elem(later, masq_elem("10.1.2.4"), OWNER_B);
	assert_int_equal(nft_check_rules(nft, NFT_INET, &e), 0);
	assert_true(output_contains("list set inet hawser claimed",
				    "tcp . 8080 comment \"" NFT_SEVERAL "\""));
	assert_true(output_contains("list set inet hawser claimed",
				    "udp . 81 comment \"" NFT_SEVERAL "\""));
	assert_true(output_contains("list chain inet hawser masq_1",
				    "{\n\t\tip daddr != 10.1.2.0/24 ip daddr != 224.0.0.0/4 goto "
				    "masqout\n\t}"));
	assert_true(output_contains("list chain inet hawser near_1",
				    "{\n\t\tip saddr 10.1.2.0/24 masquerade\n\t}"));
	assert_true(output_contains("list chain inet hawser others", "counter"));
	assert_false(output_contains("list sets inet", "upto6"));
	assert_false(output_contains("list chains inet", "chain postrouting {"));
	assert_string_equal(get_owner(nft, masq_elem("10.1.2.3")), OWNER_A);
}

static void newer_rules(void **state)
{
	AUTO(nft_close) struct nft *nft = open_nft();
	struct hw_err e;

	(void)state;
	assert_int_equal(nft_load(nft, NFT_INET, &e), 0);
	run_nft("add element inet hawser version { 3 }\n"
		"add rule inet hawser guard counter\n");
	assert_int_equal(nft_load(nft, NFT_INET, &e), 0);
	assert_int_equal(nft_repair(nft, NFT_INET, &e), 0);
	assert_true(output_contains("list chain inet hawser guard", "counter"));
}

static void flushed_newer_rules(void **state)
{
	AUTO(nft_close) struct nft *nft = open_nft(), *later = NULL;
	struct nft_elem elem = masq_elem("10.1.2.3");
	struct hw_err e;

	(void)state;
	assert_int_equal(nft_load(nft, NFT_INET, &e), 0);
	run_nft("add element inet hawser version { 3 }\n"
		"flush table inet hawser\n"
		"add rule inet hawser guard counter\n");
	assert_int_equal(nft_repair(nft, NFT_INET, &e), -ENOENT);
	assert_non_null(strstr(e.msg, "belongs to a newer version of hawser-plugin"));
	assert_int_equal(nft_open(&later, &e), 0);
	assert_int_equal(nft_add(later, &elem, 1, OWNER_A, &e), -ENOENT);
	assert_true(output_contains("list chain inet hawser guard", "counter"));
	assert_false(output_contains("list chain inet hawser guard", "drop"));
}

static void flushed_table(void **state)
{
	AUTO(nft_close) struct nft *nft = open_nft(), *later = NULL;
	struct hw_err e = { 0 };

	(void)state;
	add_elem(nft, masq_elem("10.1.2.3"), OWNER_A);
	run_nft("flush table inet hawser");
	assert_int_equal(nft_open(&later, &e), 0);
	add_elem(later, masq_elem("10.1.2.4"), OWNER_A);
	assert_int_equal(nft_check_rules(nft, NFT_INET, &e), 0);
	assert_string_equal(get_owner(nft, masq_elem("10.1.2.3")), OWNER_A);
	assert_false(output_contains("list set inet hawser version", "3"));
}

static void flushed_version_set(void **state)
{
	AUTO(nft_close) struct nft *nft = open_nft();
	struct hw_err e = { 0 };

	(void)state;
	assert_int_equal(nft_load(nft, NFT_INET, &e), 0);
	run_nft("flush set inet hawser version\n"
		"flush chain inet hawser guard\n");
	assert_int_equal(nft_check_rules(nft, NFT_INET, &e), -ENOENT);
	assert_int_equal(nft_repair(nft, NFT_INET, &e), 0);
	assert_true(output_contains("list chain inet hawser guard", "drop"));
	run_nft("flush set inet hawser version");
	assert_int_equal(nft_repair(nft, NFT_INET, &e), 0);
	assert_int_equal(nft_check_rules(nft, NFT_INET, &e), 0);
	run_nft("flush set inet hawser version\n"
		"flush chain inet hawser guard\n"
		"add chain inet hawser version3\n"
		"add rule inet hawser version3 return\n");
	assert_int_equal(nft_repair(nft, NFT_INET, &e), 0);
	assert_false(output_contains("list chain inet hawser guard", "drop"));
}

static void each_flushed_chain(void **state)
{
	AUTO(nft_close) struct nft *nft = open_nft();
	autofree char *before = NULL;
	struct hw_err e = { 0 };
	char name[64];
	int chains = 0;

	(void)state;
	assert_int_equal(nft_load(nft, NFT_INET, &e), 0);
	assert_int_equal(nft_run_get_output("list table inet hawser", &before, &e), 0);
	for (const char *at = before; (at = strstr(at, "\n\tchain ")); at++) {
		autofree char *after = NULL, *command = NULL;

		assert_int_equal(sscanf(at, " chain %63s", name), 1);
		if (str_equal(name, "snatbits"))
			continue;
		command = str_printf("flush chain inet hawser %s", name);
		run_nft(command);
		assert_int_equal(nft_check_rules(nft, NFT_INET, &e), -ENOENT);
		assert_int_equal(nft_repair(nft, NFT_INET, &e), 0);
		assert_int_equal(nft_check_rules(nft, NFT_INET, &e), 0);
		assert_int_equal(nft_run_get_output("list table inet hawser", &after, &e), 0);
		assert_string_equal(before, after);
		chains++;
	}
	assert_true(chains > 10);
}

static void nested_networks(void **state)
{
	AUTO(nft_close) struct nft *nft = open_nft();
	struct nft_elem wide = masq_network_elem("10.1.0.9/16"),
			narrow = masq_network_elem("10.1.0.8/24");
	struct hw_err e = { 0 };
	char command[96];

	(void)state;
	add_elem(nft, wide, OWNER_A);
	add_elem(nft, narrow, OWNER_B);
	add_elem(nft, masq_network_elem("10.1.0.7/24"), OWNER_B);
	add_elem(nft, masq_network_elem("fd00::7/64"), OWNER_B);
	assert_int_equal(nft_check(nft, &wide, 1, OWNER_A, &e), 0);
	snprintf(command, sizeof(command), "list chain inet hawser %s", narrow.chain);
	assert_true(output_contains(command, "ip daddr 10.1.0.0/24 return"));
	assert_true(output_contains(command, "ip daddr != 224.0.0.0/4 goto masqout"));
	/* versions 1 and 2 created such chains */
	autofree char *old =
		str_printf("flush chain inet hawser %s\n"
			   "add rule inet hawser %s ip daddr != 10.1.0.0/24 masquerade",
			   narrow.chain, narrow.chain);
	run_nft(old);
	add_elem(nft, masq_network_elem("10.1.0.6/24"), OWNER_B);
	assert_false(output_contains(command, "masquerade"));
	assert_true(output_contains(command, "ip daddr 10.1.0.0/24 return"));
	snprintf(command, sizeof(command), "flush chain inet hawser %s", narrow.chain);
	run_nft(command);
	assert_int_equal(nft_check(nft, &wide, 1, OWNER_A, &e), 0);
	assert_int_equal(nft_check(nft, &narrow, 1, OWNER_B, &e), -ENOENT);
	assert_non_null(strstr(e.msg, "hawser-plugin repair"));
	assert_int_equal(nft_repair_networks(nft, &narrow, 1, &e), 0);
	assert_int_equal(nft_check(nft, &narrow, 1, OWNER_B, &e), 0);
	run_nft("flush ruleset");
	add_elem(nft, narrow, OWNER_B);
	assert_int_equal(nft_check(nft, &narrow, 1, OWNER_B, &e), 0);
}

/* The first ADD after a flush reloads the rules, but restores only the chain of its own network. */
static void flushed_network_chains(void **state)
{
	AUTO(nft_close) struct nft *nft = open_nft(), *first = NULL, *second = NULL;
	struct nft_elem wide = masq_network_elem("10.1.0.9/16"),
			narrow = masq_network_elem("10.1.0.8/24");
	struct hw_err e = { 0 };

	(void)state;
	add_elem(nft, wide, OWNER_A);
	add_elem(nft, narrow, OWNER_B);
	run_nft("flush table inet hawser");
	assert_int_equal(nft_open(&first, &e), 0);
	assert_int_equal(nft_open(&second, &e), 0);
	add_elem(first, masq_network_elem("10.1.0.6/16"), OWNER_A);
	add_elem(second, masq_network_elem("10.1.0.7/24"), OWNER_B);
	assert_int_equal(nft_check(nft, &wide, 1, OWNER_A, &e), 0);
	assert_int_equal(nft_check(nft, &narrow, 1, OWNER_B, &e), 0);
}

/* The kernel sends an error reply for each port: more than the default receive buffer can hold. */
static void many_ports(void **state)
{
	AUTO(nft_close) struct nft *nft = open_nft();
	AUTO(nft_elems_done) struct nft_elems elems = { 0 };
	struct hw_err e = { 0 };

	(void)state;
	for (uint16_t i = 0; i < 3000; i++)
		nft_elems_add(&elems, port_elem(10000 + i, "10.1.2.3", i));
	for (int i = 0; i < 2; i++) {
		if (nft_add(nft, elems.v, elems.n, OWNER_A, &e) < 0)
			fail_msg("%s", e.msg);
	}
	assert_int_equal(nft_del(nft, elems.v, elems.n, OWNER_A, &e), 0);
}

static void elem_lists(void **state)
{
	AUTO(nft_elems_done) struct nft_elems list = { 0 };
	struct nft_elem one = masq_elem("10.1.2.3");

	(void)state;
	nft_elems_add_once(&list, one);
	nft_elems_add_once(&list, one);
	assert_int_equal(list.n, 1);
	assert_true(nft_elems_has(&list, &one));
	nft_elems_add_once(&list, masq_elem("10.1.2.4"));
	assert_int_equal(list.n, 2);
	for (int i = 0; i < 100; i++)
		nft_elems_add(&list, one);
	assert_int_equal(list.n, 102);
}

/* Names of containers can be longer than the kernel's limit for chain names. */
static void long_names(void **state)
{
	static const char *const parents[] = { "PREROUTING", NULL };
	AUTO(nft_close) struct nft *nft = open_nft();
	char name[4001];
	struct nft_chain_ref place = { NFPROTO_BRIDGE, "nat", name };
	struct hw_err e = { 0 };

	(void)state;
	run_nft("table bridge nat { chain PREROUTING { accept; }; }");
	for (size_t len = 250; len < sizeof(name); len += len < 260 ? 1 : 1870) {
		memset(name, 'x', len);
		name[len] = '\0';
		assert_int_equal(nft_has_chain(nft, &place, &e), 0);
		assert_int_equal(nft_foreign_delete_chain(nft, &place, parents, &e), 0);
	}
}

static void foreign_tables(void **state)
{
	static const char list[] = "list table inet other";
	AUTO(nft_close) struct nft *nft = open_nft();
	autofree char *before = NULL, *after = NULL;
	struct hw_err e;

	(void)state;
	run_nft("table inet other {\n"
		"set masq4 { type ipv4_addr; elements = { 10.1.2.3 }; }\n"
		"chain postrouting { type nat hook postrouting priority 100; drop; }\n"
		"}\n");
	assert_int_equal(nft_run_get_output(list, &before, &e), 0);
	add_elem(nft, masq_elem("10.1.2.3"), OWNER_A);
	del_elem(nft, masq_elem("10.1.2.3"), OWNER_A);
	assert_int_equal(nft_run_get_output(list, &after, &e), 0);
	assert_string_equal(before, after);
}

static void check_messages(void **state)
{
	AUTO(nft_close) struct nft *nft = open_nft();
	struct nft_elem elem = masq_elem("10.1.2.3");
	struct hw_err e;

	(void)state;
	assert_int_equal(nft_check(nft, &elem, 1, OWNER_A, &e), -ENOENT);
	assert_non_null(strstr(e.msg, "table inet hawser lacks rules"));
	assert_int_equal(nft_load(nft, NFT_INET, &e), 0);
	assert_int_equal(nft_check(nft, &elem, 1, OWNER_A, &e), -ENOENT);
	assert_non_null(strstr(e.msg, "masq4 lacks 10.1.2.3"));
	add_elem(nft, elem, OWNER_B);
	assert_int_equal(nft_check(nft, &elem, 1, OWNER_A, &e), -ESTALE);
	assert_int_equal(nft_check(nft, &elem, 1, OWNER_B, &e), 0);
	run_nft("flush table inet hawser");
	assert_int_equal(nft_check(nft, &elem, 1, OWNER_B, &e), -ENOENT);
	assert_int_equal(nft_repair(nft, NFT_INET, &e), 0);
	assert_int_equal(nft_check(nft, &elem, 1, OWNER_B, &e), 0);
}

static int count_elem(void *ctx, const struct nft_elem *elem, struct hw_err *e)
{
	(void)e;
	assert_string_equal(elem->owner, OWNER_A);
	++*(int *)ctx;
	return 0;
}

static void list_elems(void **state)
{
	AUTO(nft_close) struct nft *nft = open_nft();
	struct nft_elem v[500];
	struct hw_err e = { 0 };
	int n = 0;

	(void)state;
	assert_int_equal(nft_list(nft, NFT_INET, "masq4", count_elem, &n, &e), 0);
	for (size_t i = 0; i < ARRAY_SIZE(v); i++) {
		autofree char *ip = str_printf("10.1.%zu.%zu", i / 250, i % 250);

		v[i] = masq_elem(ip);
	}
	if (nft_add(nft, v, ARRAY_SIZE(v), OWNER_A, &e) < 0)
		fail_msg("%s", e.msg);
	assert_int_equal(nft_list(nft, NFT_INET, "masq4", count_elem, &n, &e), 0);
	assert_int_equal(n, ARRAY_SIZE(v));
	assert_int_equal(nft_del(nft, v, ARRAY_SIZE(v), OWNER_A, &e), 0);
	assert_int_equal(nft_list(nft, NFT_INET, "masq4", count_elem, &n, &e), 0);
	assert_int_equal(n, ARRAY_SIZE(v));
}

static void bridge_table(void **state)
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
	if (nft_add(nft, v, 2, OWNER_A, &e) < 0)
		fail_msg("%s", e.msg);
	assert_true(output_contains("list set bridge hawser mac_ok",
				    "\"veth0123abcd\" . 02:00:00:00:00:07"));
	assert_int_equal(nft_check(nft, v, 2, OWNER_A, &e), 0);
	assert_int_equal(nft_check_rules(nft, NFT_INET, &e), -ENOENT);
}

static void known_sets(void **state)
{
	AUTO(nft_close) struct nft *nft = open_nft();
	autofree char *list = NULL;
	struct hw_err e = { 0 };
	size_t known = 0, found = 0;

	(void)state;
	assert_int_equal(nft_load(nft, NFT_INET, &e), 0);
	assert_int_equal(nft_load(nft, NFT_BRIDGE, &e), 0);
	assert_int_equal(nft_run_get_output("list ruleset", &list, &e), 0);
	for (const char *at = list; (at = strstr(at, "\n\t\ttype ")); at++)
		found += !str_starts(at, "\n\t\ttype filter") && !str_starts(at, "\n\t\ttype nat");
	for (const struct nft_set *set = nft_sets; set->name; set++) {
		autofree char *line =
			str_printf("\t%s %s {\n", *set->data ? "map" : "set", set->name);

		if (str_ends(set->name, "_"))
			continue;
		assert_non_null(strstr(list, line));
		known++;
	}
	assert_int_equal(known, found);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{ "nft: a request or batch that the kernel rejects has an error text",
		  failures_have_a_text },
		{ "nft: adding the first element loads the rules", first_element },
		{ "nft: deleting a missing element succeeds, and adding reloads flushed rules",
		  delete_missing },
		{ "nft: an element of another owner is replaced and then belongs to the new owner",
		  replace_owner },
		{ "nft: adding new elements adds none of them if one exists", add_new },
		{ "nft: a change deletes and adds elements of two owners", change_deletes },
		{ "nft: attempts end with CNI code 11 after a deadline", retry_ends },
		{ "nft: an element of a verdict map has a jump or a goto to a chain", verdict_map },
		{ "nft: if networks in a set of shared networks are nested, only the widest is "
		  "kept",
		  intervals },
		{ "nft: forty processes that start to add elements load the rules only once",
		  concurrent_loads },
		{ "nft: check accepts older rules; they and their sets are replaced, elements and "
		  "other chains are kept",
		  older_rules },
		{ "nft: newer rules are not replaced by older ones", newer_rules },
		{ "nft: newer rules that were flushed are not replaced by older ones",
		  flushed_newer_rules },
		{ "nft: adding an element reloads a flushed table", flushed_table },
		{ "nft: repair restores the set \"version\" after a flush, unless newer rules are "
		  "loaded",
		  flushed_version_set },
		{ "nft: check finds each flushed chain, and repair restores it",
		  each_flushed_chain },
		{ "nft: each of several nested networks has its own chain", nested_networks },
		{ "nft: after a flush each add restores the chain of its own network",
		  flushed_network_chains },
		{ "nft: adding 3000 existing ports succeeds", many_ports },
		{ "nft: nft_elems_add_once() adds no element that the list already has",
		  elem_lists },
		{ "nft: a chain whose name is too long for the kernel is reported as missing",
		  long_names },
		{ "nft: tables of other programs are not changed", foreign_tables },
		{ "nft: check reports flushed rules, a missing element and another owner",
		  check_messages },
		{ "nft: five hundred elements are listed and deleted", list_elems },
		{ "nft: elements with interface names and MAC addresses can be added and checked",
		  bridge_table },
		{ "nft: nft_sets lists exactly the sets and maps of the ruleset files",
		  known_sets },
	};

	return cmocka_run_group_tests_name("nft", tests, test_enter, NULL);
}
