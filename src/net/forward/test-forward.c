/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/forward/test-forward.c - add rules to the FORWARD chain of iptables, remove and check them
 *
 * Each test has its own namespace.
 */
#include "net/test.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nf_tables_compat.h>
#include <linux/netfilter/x_tables.h>
#include <linux/netfilter/xt_mark.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/str.h"
#include "net/forward/forward.h"
#include "net/nft/iptables.h"
#include "net/nft/nft.h"
#include "net/nft/wire.h"

#define PROCESSES 20
#define MARK	  0x1000

static const struct forward v4 = { AF_INET, "ADMIN", MARK, false };
static const struct nft_chain_ref chain = { NFPROTO_IPV4, "filter", "FORWARD" };
static const struct nft_chain_ref admin = { NFPROTO_IPV4, "filter", "ADMIN" };

static void run_nft(const char *commands)
{
	struct hw_err e = { 0 };

	nft_run(commands, &e);
	assert_string_equal(e.msg, "");
}

/* Opens a socket in a new namespace in which the FORWARD chain of iptables drops all packets. */
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
	run_nft("add chain ip filter FORWARD { type filter hook forward priority 0; policy drop; "
		"}\n");
	return nft;
}

static unsigned count_rules(struct nft *nft, const struct nft_chain_ref *place)
{
	struct hw_err e;
	unsigned n = 0;

	assert_int_equal(nft_rule_each(nft, place, nft_rule_count, &n, &e), 0);
	return n;
}

static int has_rules(struct nft *nft)
{
	struct hw_err e;
	bool no_chain;

	return forward_has_rules(nft, &v4, &no_chain, &e);
}

static void add_rules(struct nft *nft)
{
	struct hw_err e = { 0 };

	if (forward_add_rules(nft, &v4, &e) < 0)
		fail_msg("%s", e.msg);
	assert_int_equal(has_rules(nft), 1);
}

/* The first rules of the chain, one letter each. j: jump, A: accept the mark, D: drop, -: other */
struct rule_order {
	char text[8];
	size_t n;
};

static int append_order(void *ctx, const struct nft_rule *rule, struct hw_err *e)
{
	static const struct iptables_rule accept = { .mark = { MARK, MARK }, .verdict = NF_ACCEPT },
					  jump = { .verdict = NFT_JUMP, .chain = "ADMIN" };
	struct rule_order *order = ctx;
	char what = '-';

	(void)e;
	if (iptables_is_rule(rule, &accept))
		what = 'A';
	else if (iptables_is_rule(rule, &jump))
		what = 'j';
	else if (rule->verdict == NF_DROP)
		what = 'D';
	if (order->n + 1 < sizeof(order->text))
		order->text[order->n++] = what;
	return 0;
}

static void assert_order(struct nft *nft, const char *wanted)
{
	struct rule_order order = { 0 };
	struct hw_err e;

	assert_int_equal(nft_rule_each(nft, &chain, append_order, &order, &e), 0);
	assert_string_equal(order.text, wanted);
}

/* ---- add -------------------------------------------------------------------------------- */

static void no_forward_chain(void **state)
{
	AUTO(nft_close) struct nft *nft = open_nft();
	struct hw_err e;

	(void)state;
	run_nft("delete table ip filter\n");
	add_rules(nft);
	assert_int_equal(count_rules(nft, &chain), 0);
	run_nft("add table ip filter\n");
	add_rules(nft);
	assert_int_equal(nft_has_chain(nft, &chain, &e), 0);
}

static void create_forward_chain(void **state)
{
	AUTO(nft_close) struct nft *nft = open_nft();
	struct forward create = v4;
	struct nft_chain_info info;
	bool no_chain = false;
	struct hw_err e;

	(void)state;
	/* the administrator's chain exists, or the caller wants FORWARD */
	for (int i = 0; i < 2; i++) {
		run_nft("delete table ip filter\n");
		create.create = i > 0;
		if (!i)
			run_nft("add table ip filter\nadd chain ip filter ADMIN\n");
		assert_int_equal(forward_has_rules(nft, &create, &no_chain, &e), 0);
		assert_true(no_chain);
		assert_int_equal(forward_add_rules(nft, &create, &e), 0);
		assert_order(nft, "jA");
		assert_int_equal(nft_get_chain(nft, &chain, &info, &e), 1);
		assert_int_equal(info.hook, NF_INET_FORWARD);
		assert_int_equal(info.priority, 0);
		assert_int_equal(info.policy, NF_ACCEPT);
	}
	/* a chain that drops packets or has rules stays */
	assert_int_equal(forward_remove_chain(nft, AF_INET, &e), 0);
	assert_int_equal(forward_remove_rules(nft, &create, &e), 1);
	run_nft("add chain ip filter FORWARD { policy drop; }\n");
	assert_int_equal(forward_remove_chain(nft, AF_INET, &e), 0);
	run_nft("add chain ip filter FORWARD { policy accept; }\n");
	assert_int_equal(forward_remove_chain(nft, AF_INET, &e), 1);
	assert_int_equal(nft_has_chain(nft, &chain, &e), 0);
	run_nft("create table ip filter\n");
}

static void add_both_rules_once(void **state)
{
	AUTO(nft_close) struct nft *nft = open_nft();

	(void)state;
	run_nft("add rule ip filter FORWARD ip saddr 10.0.0.0/8 drop\n");
	assert_int_equal(has_rules(nft), 0);
	add_rules(nft);
	add_rules(nft);
	assert_order(nft, "jAD");
}

static void add_missing_rule(void **state)
{
	AUTO(nft_close) struct nft *nft = open_nft();

	(void)state;
	run_nft("add chain ip filter ADMIN\n"
		"add rule ip filter FORWARD ip saddr 10.0.0.0/8 drop\n"
		"add rule ip filter FORWARD jump ADMIN\n"
		"add rule ip filter FORWARD ip daddr 10.0.0.0/8 drop\n");
	add_rules(nft);
	assert_order(nft, "DjAD");
	run_nft("flush chain ip filter FORWARD\n"
		"add rule ip filter FORWARD ip saddr 10.0.0.0/8 drop\n"
		"add rule ip filter FORWARD meta mark & 0x1000 == 0x1000 accept\n");
	add_rules(nft);
	assert_order(nft, "jDA");
}

static void rule_with_another_condition(void **state)
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

		run_nft("add chain ip filter ADMIN; add chain ip filter OTHER\n");
		run_nft(rule);
		add_rules(nft);
		assert_int_equal(count_rules(nft, &chain), 3);
	}
}

static struct nlattr *begin_expression(struct nlmsghdr *m, const char *name,
				       struct nlattr **ret_data)
{
	struct nlattr *item = mnl_attr_nest_start(m, NFTA_LIST_ELEM);

	mnl_attr_put_strz(m, NFTA_EXPR_NAME, name);
	*ret_data = mnl_attr_nest_start(m, NFTA_EXPR_DATA);
	return item;
}

/* Appends a rule that accepts a mark, as iptables before 1.8.9 stores it. */
static void append_old_rule(struct nft *nft, const struct xt_mark_mtinfo1 *info)
{
	char padded[XT_ALIGN(sizeof(*info))] = { 0 };
	struct nlattr *list, *item, *data, *value, *verdict;
	struct hw_err e = { 0 };
	struct nlmsghdr *m;

	memcpy(padded, info, sizeof(*info));
	nft_batch_begin(nft, 0);
	m = nft_start_message(nft, NFT_MSG_NEWRULE, NLM_F_CREATE | NLM_F_APPEND, chain.family);
	nft_put_name(m, NFTA_RULE_TABLE, chain.table);
	nft_put_name(m, NFTA_RULE_CHAIN, chain.chain);
	list = mnl_attr_nest_start(m, NFTA_RULE_EXPRESSIONS);
	item = begin_expression(m, "match", &data);
	mnl_attr_put_strz(m, NFTA_MATCH_NAME, "mark");
	mnl_attr_put_u32(m, NFTA_MATCH_REV, htonl(1));
	mnl_attr_put(m, NFTA_MATCH_INFO, sizeof(padded), padded);
	mnl_attr_nest_end(m, data);
	mnl_attr_nest_end(m, item);
	item = begin_expression(m, "counter", &data);
	mnl_attr_nest_end(m, data);
	mnl_attr_nest_end(m, item);
	item = begin_expression(m, "immediate", &data);
	mnl_attr_put_u32(m, NFTA_IMMEDIATE_DREG, htonl(NFT_REG_VERDICT));
	value = mnl_attr_nest_start(m, NFTA_IMMEDIATE_DATA);
	verdict = mnl_attr_nest_start(m, NFTA_DATA_VERDICT);
	mnl_attr_put_u32(m, NFTA_VERDICT_CODE, htonl(NF_ACCEPT));
	mnl_attr_nest_end(m, verdict);
	mnl_attr_nest_end(m, value);
	mnl_attr_nest_end(m, data);
	mnl_attr_nest_end(m, item);
	mnl_attr_nest_end(m, list);
	nft_end_message(nft, m);
	nft_batch_commit(nft, &e);
	assert_string_equal(e.msg, "");
}

static void rule_of_an_older_iptables(void **state)
{
	static const struct xt_mark_mtinfo1 others[] = { { MARK, MARK, 1 },
							 { MARK, UINT32_MAX, 0 },
							 { MARK << 1, MARK << 1, 0 } };
	AUTO(nft_close) struct nft *nft = open_nft();

	(void)state;
	run_nft("add chain ip filter ADMIN\nadd rule ip filter FORWARD jump ADMIN\n");
	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		append_old_rule(nft, &others[i]);
	assert_int_equal(has_rules(nft), 0);
	append_old_rule(nft, &(struct xt_mark_mtinfo1){ MARK, MARK, 0 });
	assert_int_equal(has_rules(nft), 1);
	add_rules(nft);
	assert_order(nft, "j---A");
}

static void rules_after_thousands_of_others(void **state)
{
	AUTO(nft_close) struct nft *nft = open_nft();
	AUTO(buf_done) struct buf commands = { 0 };

	(void)state;
	add_rules(nft);
	for (int i = 0; i < 3000; i++)
		buf_printf(&commands, "insert rule ip filter FORWARD ip saddr 10.%d.%d.1 drop\n",
			   i / 256, i % 256);
	run_nft(commands.data);
	assert_int_equal(has_rules(nft), 1);
	add_rules(nft);
	assert_int_equal(count_rules(nft, &chain), 3002);
}

static void concurrent_adds(void **state)
{
	AUTO(nft_close) struct nft *nft = open_nft();
	pid_t children[PROCESSES];
	int status;

	(void)state;
	for (int i = 0; i < PROCESSES; i++) {
		children[i] = fork();
		assert_true(children[i] >= 0);
		if (children[i] == 0) {
			struct nft *own = NULL;
			struct hw_err e;

			_exit(nft_open(&own, &e) < 0 || forward_add_rules(own, &v4, &e) < 0);
		}
	}
	for (int i = 0; i < PROCESSES; i++) {
		assert_int_equal(waitpid(children[i], &status, 0), children[i]);
		assert_int_equal(status, 0);
	}
	assert_order(nft, "jA");
}

/* ---- remove ------------------------------------------------------------------------------ */

static void remove_rules_and_empty_chain(void **state)
{
	AUTO(nft_close) struct nft *nft = open_nft();
	struct hw_err e;

	(void)state;
	run_nft("add rule ip filter FORWARD ip saddr 10.0.0.0/8 drop\n");
	add_rules(nft);
	assert_int_equal(forward_remove_rules(nft, &v4, &e), 1);
	assert_order(nft, "D");
	assert_int_equal(nft_has_chain(nft, &admin, &e), 0);
	assert_int_equal(forward_remove_rules(nft, &v4, &e), 0);
}

static void used_admin_chain_stays(void **state)
{
	AUTO(nft_close) struct nft *nft = open_nft();
	struct hw_err e;

	(void)state;
	add_rules(nft);
	run_nft("add rule ip filter ADMIN ip saddr 10.0.0.1 drop\n");
	assert_int_equal(forward_remove_rules(nft, &v4, &e), 1);
	assert_int_equal(nft_has_chain(nft, &admin, &e), 1);
	run_nft("flush chain ip filter ADMIN\n");
	add_rules(nft);
	run_nft("add rule ip filter FORWARD ip saddr 10.0.0.1 jump ADMIN\n");
	assert_int_equal(forward_remove_rules(nft, &v4, &e), 1);
	assert_int_equal(nft_has_chain(nft, &admin, &e), 1);
	assert_int_equal(count_rules(nft, &chain), 1);
}

/* ---- native chains ----------------------------------------------------------------------- */

static void native_chain_that_drops(void **state)
{
	AUTO(nft_close) struct nft *nft = open_nft();
	struct hw_err e = { 0 };

	(void)state;
	assert_int_equal(forward_check_native(nft, MARK, true, NULL, &e), 0);
	run_nft("add table ip6 mine\n"
		"add chain ip6 mine last { type filter hook forward priority 5; policy drop; }\n");
	assert_int_equal(forward_check_native(nft, MARK, true, NULL, &e), -EPERM);
	assert_string_equal(e.msg,
			    "nftables chain ip6 mine last drops pod traffic; to accept it: "
			    "nft 'insert rule ip6 mine last meta mark & 0x1000 == 0x1000 accept'");
	assert_int_equal(forward_check_native(nft, MARK, true, "mine", &e), 0);
	run_nft("insert rule ip6 mine last meta mark & 0x1000 == 0x1000 accept\n");
	assert_int_equal(forward_check_native(nft, MARK, true, NULL, &e), 0);
	/* a packet with mark bit 0x2000 may also have bit 0x1000 and be accepted */
	assert_int_equal(forward_check_native(nft, 0x2000, true, NULL, &e), 0);
	run_nft("flush chain ip6 mine last\n");
	assert_int_equal(forward_check_native(nft, MARK, false, NULL, &e), 0);
}

static void native_chain_after_hundreds_of_others(void **state)
{
	AUTO(nft_close) struct nft *nft = open_nft();
	AUTO(buf_done) struct buf text = { 0 };
	struct hw_err e = { 0 };

	(void)state;
	buf_printf(&text, "add table ip mine\n");
	for (int i = 0; i < 300; i++)
		buf_printf(&text,
			   "add chain ip mine c%d { type filter hook forward priority 5; policy "
			   "%s; }\n",
			   i, i < 299 ? "accept" : "drop");
	run_nft(text.data);
	assert_int_equal(forward_check_native(nft, MARK, true, NULL, &e), -EPERM);
	assert_string_equal(e.msg,
			    "nftables chain ip mine c299 drops pod traffic; to accept it: "
			    "nft 'insert rule ip mine c299 meta mark & 0x1000 == 0x1000 accept'");
}

/* More jumps than chains are read. */
static void native_chain_with_many_jumps(void **state)
{
	AUTO(nft_close) struct nft *nft = open_nft();
	AUTO(buf_done) struct buf text = { 0 };
	struct hw_err e = { 0 };

	(void)state;
	buf_printf(
		&text,
		"add table ip mine\nadd chain ip mine to\n"
		"add chain ip mine first { type filter hook forward priority 5; policy drop; }\n");
	for (int i = 0; i < 300; i++)
		buf_printf(&text, "add rule ip mine first ip saddr 10.0.%d.1 jump to\n", i % 256);
	run_nft(text.data);
	assert_int_equal(forward_check_native(nft, MARK, true, NULL, &e), -EPERM);
	run_nft("add rule ip mine to ip saddr 10.0.0.0/8 accept\n");
	assert_int_equal(forward_check_native(nft, MARK, true, NULL, &e), 0);
}

/* A chain that is not read may accept the packet. */
static void native_chain_over_the_limit(void **state)
{
	AUTO(nft_close) struct nft *nft = open_nft();
	AUTO(buf_done) struct buf text = { 0 };
	struct hw_err e = { 0 };

	(void)state;
	buf_printf(
		&text,
		"add table ip mine\n"
		"add chain ip mine first { type filter hook forward priority 5; policy drop; }\n");
	for (int i = 0; i < 300; i++)
		buf_printf(&text, "add chain ip mine c%d\nadd rule ip mine first jump c%d\n", i, i);
	run_nft(text.data);
	assert_int_equal(forward_check_native(nft, MARK, true, NULL, &e), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{ "forward: without a FORWARD chain nothing is added", no_forward_chain },
		{ "forward: the FORWARD chain is created if the administrator's chain exists, or "
		  "on "
		  "request, and removed if it is not used",
		  create_forward_chain },
		{ "forward: two calls add both rules once, at the top", add_both_rules_once },
		{ "forward: if only one rule is missing, it is added in the correct position",
		  add_missing_rule },
		{ "forward: a similar rule with another condition does not replace our rule",
		  rule_with_another_condition },
		{ "forward: the accepting rule is recognized as iptables before 1.8.9 restores it",
		  rule_of_an_older_iptables },
		{ "forward: the rules are found after thousands of other rules",
		  rules_after_thousands_of_others },
		{ "forward: concurrent processes add each rule once", concurrent_adds, NULL, NULL,
		  NULL },
		{ "forward: remove deletes both rules, and the administrator's chain if it is "
		  "empty",
		  remove_rules_and_empty_chain },
		{ "forward: remove keeps an administrator's chain that has rules or is a jump "
		  "target",
		  used_admin_chain_stays },
		{ "forward: a native nftables chain that drops pod traffic is reported",
		  native_chain_that_drops, NULL, NULL, NULL },
		{ "forward: a native nftables chain that drops is found after hundreds of others",
		  native_chain_after_hundreds_of_others },
		{ "forward: a native nftables chain that drops is found after hundreds of jumps to "
		  "one chain",
		  native_chain_with_many_jumps },
		{ "forward: a native nftables chain that jumps to too many chains is not reported",
		  native_chain_over_the_limit },
	};

	return cmocka_run_group_tests_name("forward", tests, test_enter, NULL);
}
