/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/forward/test-forward.c - the FORWARD chain of iptables, each test in a namespace of its own
 */
#include "net/test.h"

#include <errno.h>
#include <linux/netfilter.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/str.h"
#include "net/forward/forward.h"
#include "net/nft/nft.h"
#include "net/nft/rule.h"

#define CROWD 20
#define MARK  0x1000

static const struct forward v4 = { AF_INET, "ADMIN", MARK };
static const struct nft_place chain = { NFPROTO_IPV4, "filter", "FORWARD" };
static const struct nft_place admin = { NFPROTO_IPV4, "filter", "ADMIN" };

static void run(const char *commands)
{
	struct hw_err e = { 0 };

	nft_run(commands, &e);
	assert_string_equal(e.msg, "");
}

/* A socket in a new namespace, in which iptables forwards nothing */
static struct nft *open_nft(void)
{
	struct nft *nft = NULL;
	struct hw_err e = { 0 };

	test_require_netns();
	assert_int_equal(unshare(CLONE_NEWNET), 0);
	if (nft_open(&nft, &e) < 0 || nft_run("add table ip filter\n", &e) < 0) {
		print_message("%s\n", e.msg);
		skip();
	}
	run("add chain ip filter FORWARD { type filter hook forward priority 0; policy drop; }\n");
	return nft;
}

static unsigned count(struct nft *nft, const struct nft_place *place)
{
	struct hw_err e;
	unsigned n = 0;

	assert_int_equal(nft_rule_each(nft, place, nft_rule_count, &n, &e), 0);
	return n;
}

static int is_open(struct nft *nft)
{
	struct hw_err e;

	return forward_has_rules(nft, &v4, &e);
}

static void let_through(struct nft *nft)
{
	struct hw_err e = { 0 };

	forward_add_rules(nft, &v4, &e);
	assert_string_equal(e.msg, "");
	assert_int_equal(is_open(nft), 1);
}

/* "jA": what the first rules do: jump, Accept, Drop, -: something else */
struct order {
	char text[8];
	size_t n;
};

static int note_order(void *ctx, const struct nft_rule *rule, struct hw_err *e)
{
	struct order *order = ctx;
	char what = '-';

	(void)e;
	if (nft_rule_accepts_mark(rule, MARK))
		what = 'A';
	else if (*rule->chain && nft_rule_is_unconditional(rule))
		what = 'j';
	else if (rule->verdict == NF_DROP)
		what = 'D';
	if (order->n + 1 < sizeof(order->text))
		order->text[order->n++] = what;
	return 0;
}

static void assert_order(struct nft *nft, const char *wanted)
{
	struct order order = { 0 };
	struct hw_err e;

	assert_int_equal(nft_rule_each(nft, &chain, note_order, &order, &e), 0);
	assert_string_equal(order.text, wanted);
}

/* ---- opening ---------------------------------------------------------------------------- */

static void without_a_chain_all_is_well(void **state)
{
	AUTO(nft_close) struct nft *nft = open_nft();

	(void)state;
	run("delete table ip filter\n");
	let_through(nft);
	assert_int_equal(count(nft, &chain), 0);
	run("add table ip filter\n");
	let_through(nft);
}

static void both_rules_are_put_at_the_top_once(void **state)
{
	AUTO(nft_close) struct nft *nft = open_nft();

	(void)state;
	run("add rule ip filter FORWARD ip saddr 10.0.0.0/8 drop\n");
	assert_int_equal(is_open(nft), 0);
	let_through(nft);
	let_through(nft);
	assert_order(nft, "jAD");
}

static void what_is_missing_is_put_where_it_belongs(void **state)
{
	AUTO(nft_close) struct nft *nft = open_nft();

	(void)state;
	run("add chain ip filter ADMIN\n"
	    "add rule ip filter FORWARD ip saddr 10.0.0.0/8 drop\n"
	    "add rule ip filter FORWARD jump ADMIN\n"
	    "add rule ip filter FORWARD ip daddr 10.0.0.0/8 drop\n");
	let_through(nft);
	assert_order(nft, "DjAD");
	run("flush chain ip filter FORWARD\n"
	    "add rule ip filter FORWARD ip saddr 10.0.0.0/8 drop\n"
	    "add rule ip filter FORWARD meta mark & 0x1000 == 0x1000 accept\n");
	let_through(nft);
	assert_order(nft, "jDA");
}

static void a_rule_with_another_condition_does_not_count(void **state)
{
	static const char *const conditions[] = {
		"ip protocol tcp meta mark & 0x1000 == 0x1000 accept",
		"meta mark & 0x3000 == 0x1000 accept",
		"meta mark & 0x1000 != 0x1000 accept",
		"meta mark 0x1000 accept",
		"ip saddr 10.0.0.1 meta mark & 0x1000 == 0x1000 accept",
		"ip saddr 10.0.0.0/16 meta mark & 0x1000 == 0x1000 accept",
		"meta priority & 0x1000 == 0x1000 accept",
		"meta mark & 0x1000 == 0x1000 counter",
		"ip saddr 10.0.0.1 jump ADMIN",
		"iifname x jump ADMIN",
		"goto ADMIN",
		"jump OTHER",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(conditions); i++) {
		AUTO(nft_close) struct nft *nft = open_nft();
		autofree char *rule = str_printf("add rule ip filter FORWARD %s\n", conditions[i]);

		run("add chain ip filter ADMIN; add chain ip filter OTHER\n");
		run(rule);
		let_through(nft);
		assert_int_equal(count(nft, &chain), 3);
	}
}

static void rules_behind_thousands_of_others_are_found(void **state)
{
	AUTO(nft_close) struct nft *nft = open_nft();
	AUTO(buf_done) struct buf commands = { 0 };

	(void)state;
	let_through(nft);
	for (int i = 0; i < 3000; i++)
		buf_printf(&commands, "insert rule ip filter FORWARD ip saddr 10.%d.%d.1 drop\n",
			   i / 256, i % 256);
	run(commands.data);
	assert_int_equal(is_open(nft), 1);
	let_through(nft);
	assert_int_equal(count(nft, &chain), 3002);
}

static void many_at_once_put_each_rule_once(void **state)
{
	AUTO(nft_close) struct nft *nft = open_nft();
	pid_t crowd[CROWD];
	int status;

	(void)state;
	for (int i = 0; i < CROWD; i++) {
		crowd[i] = fork();
		assert_true(crowd[i] >= 0);
		if (crowd[i] == 0) {
			struct nft *own = NULL;
			struct hw_err e;

			_exit(nft_open(&own, &e) < 0 || forward_add_rules(own, &v4, &e) < 0);
		}
	}
	for (int i = 0; i < CROWD; i++) {
		assert_int_equal(waitpid(crowd[i], &status, 0), crowd[i]);
		assert_int_equal(status, 0);
	}
	assert_order(nft, "jA");
}

/* ---- closing ------------------------------------------------------------------------------ */

static void closing_takes_both_rules_and_the_empty_chain(void **state)
{
	AUTO(nft_close) struct nft *nft = open_nft();
	struct hw_err e;

	(void)state;
	run("add rule ip filter FORWARD ip saddr 10.0.0.0/8 drop\n");
	let_through(nft);
	assert_int_equal(forward_remove_rules(nft, &v4, &e), 1);
	assert_order(nft, "D");
	assert_int_equal(nft_has_chain(nft, &admin, &e), 0);
	assert_int_equal(forward_remove_rules(nft, &v4, &e), 0);
}

static void an_administrators_chain_that_is_used_stays(void **state)
{
	AUTO(nft_close) struct nft *nft = open_nft();
	struct hw_err e;

	(void)state;
	let_through(nft);
	run("add rule ip filter ADMIN ip saddr 10.0.0.1 drop\n");
	assert_int_equal(forward_remove_rules(nft, &v4, &e), 1);
	assert_int_equal(nft_has_chain(nft, &admin, &e), 1);
	run("flush chain ip filter ADMIN\n");
	let_through(nft);
	run("add rule ip filter FORWARD ip saddr 10.0.0.1 jump ADMIN\n");
	assert_int_equal(forward_remove_rules(nft, &v4, &e), 1);
	assert_int_equal(nft_has_chain(nft, &admin, &e), 1);
	assert_int_equal(count(nft, &chain), 1);
}

/* ---- others -------------------------------------------------------------------------------- */

static void a_native_chain_that_drops_is_named(void **state)
{
	AUTO(nft_close) struct nft *nft = open_nft();
	struct hw_err e = { 0 };

	(void)state;
	assert_int_equal(forward_check_native(nft, MARK, true, NULL, &e), 0);
	run("add table ip6 mine\n"
	    "add chain ip6 mine last { type filter hook forward priority 5; policy drop; }\n");
	assert_int_equal(forward_check_native(nft, MARK, true, NULL, &e), -EPERM);
	assert_string_equal(e.msg,
			    "nftables chain ip6 mine last drops what pods send; to let it pass: "
			    "nft 'insert rule ip6 mine last meta mark & 0x1000 == 0x1000 accept'");
	assert_int_equal(forward_check_native(nft, MARK, true, "mine", &e), 0);
	run("insert rule ip6 mine last meta mark & 0x1000 == 0x1000 accept\n");
	assert_int_equal(forward_check_native(nft, MARK, true, NULL, &e), 0);
	/* (what is marked otherwise may be marked so, too) */
	assert_int_equal(forward_check_native(nft, 0x2000, true, NULL, &e), 0);
	run("flush chain ip6 mine last\n");
	assert_int_equal(forward_check_native(nft, MARK, false, NULL, &e), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{ "forward: where there is no FORWARD chain nothing is done",
		  without_a_chain_all_is_well },
		{ "forward: both rules are put at the top, once",
		  both_rules_are_put_at_the_top_once },
		{ "forward: what is missing is put where it belongs",
		  what_is_missing_is_put_where_it_belongs },
		{ "forward: a rule with another condition does not count",
		  a_rule_with_another_condition_does_not_count },
		{ "forward: rules behind thousands of others are found",
		  rules_behind_thousands_of_others_are_found },
		{ "forward: many at once put each rule once", many_at_once_put_each_rule_once, NULL,
		  NULL, NULL },
		{ "forward: closing takes both rules and the empty chain",
		  closing_takes_both_rules_and_the_empty_chain },
		{ "forward: an administrator's chain that is used stays",
		  an_administrators_chain_that_is_used_stays },
		{ "forward: a native chain that drops is named", a_native_chain_that_drops_is_named,
		  NULL, NULL, NULL },
	};

	return cmocka_run_group_tests_name("forward", tests, test_enter, NULL);
}
