/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/rtnl/test-rule.c - add, list and delete routing rules
 */
#include "net/test.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "net/rtnl/route.h"
#include "net/rtnl/rule.h"

static struct rule_list list_rules(struct rtnl *nl, int family, uint32_t table)
{
	struct rule_list list = { 0 };
	struct hw_err e = { 0 };

	rule_get(nl, family, table, &list, &e);
	assert_string_equal(e.msg, "");
	return list;
}

static void all_members(void **state)
{
	AUTO(rtnl_close) struct rtnl *nl = test_rtnl();
	AUTO(rule_list_done) struct rule_list list = { 0 }, after = { 0 };
	struct rule rule = { .family = AF_INET,
			     .src = test_prefix("10.1.2.3/32"),
			     .dst = test_prefix("192.168.0.0/16"),
			     .iif = "lo",
			     .mark = 0x10,
			     .mark_mask = 0xf0,
			     .priority = 500,
			     .table = 100000,
			     .proto = ROUTE_PROTO_HAWSER };
	struct hw_err e;

	(void)state;
	rule_put_add(nl, &rule);
	test_commit(nl);
	list = list_rules(nl, AF_INET, 100000);
	assert_int_equal(list.n, 1);
	assert_true(hw_prefix_equal(&list.v[0].src, &rule.src));
	assert_true(hw_prefix_equal(&list.v[0].dst, &rule.dst));
	assert_string_equal(list.v[0].iif, "lo");
	assert_int_equal(list.v[0].mark, 0x10);
	assert_int_equal(list.v[0].mark_mask, 0xf0);
	assert_int_equal(list.v[0].priority, 500);
	assert_int_equal(list.v[0].table, 100000);
	assert_int_equal(list.v[0].proto, ROUTE_PROTO_HAWSER);

	rule_put_add(nl, &rule);
	assert_int_equal(rtnl_commit(nl, &e), -EEXIST);
	assert_string_equal(e.msg,
			    "failed to add rule 'from 10.1.2.3/32 lookup 100000': File exists");
	rule_put_del(nl, &list.v[0]);
	test_commit(nl);
	after = list_rules(nl, AF_INET, 100000);
	assert_int_equal(after.n, 0);
	rule_put_del(nl, &rule);
	assert_int_equal(rtnl_commit(nl, &e), -ENOENT);
}

static void filter_by_table(void **state)
{
	AUTO(rtnl_close) struct rtnl *nl = test_rtnl();
	AUTO(rule_list_done) struct rule_list before = { 0 }, all = { 0 }, some = { 0 };
	struct rule rule = { .family = AF_INET, .src = test_prefix("10.1.2.3/32"), .table = 100 };

	(void)state;
	before = list_rules(nl, AF_INET, 0);
	rule_put_add(nl, &rule);
	rule.table = 101;
	rule_put_add(nl, &rule);
	test_commit(nl);
	all = list_rules(nl, AF_INET, 0);
	assert_int_equal(all.n, before.n + 2);
	some = list_rules(nl, AF_INET, 100);
	assert_int_equal(some.n, 1);
	assert_int_equal(some.v[0].table, 100);
}

static void ipv6_rules(void **state)
{
	AUTO(rtnl_close) struct rtnl *nl = test_rtnl();
	AUTO(rule_list_done) struct rule_list v6 = { 0 }, v4 = { 0 };
	struct rule rule = { .family = AF_INET6, .src = test_prefix("fd00::3/128"), .table = 200 };

	(void)state;
	if (!test_link(nl, "lo").ipv6) {
		print_message("IPv6 is disabled\n");
		skip();
	}
	rule_put_add(nl, &rule);
	test_commit(nl);
	v6 = list_rules(nl, AF_INET6, 200);
	v4 = list_rules(nl, AF_INET, 200);
	assert_int_equal(v6.n, 1);
	assert_true(hw_prefix_equal(&v6.v[0].src, &rule.src));
	assert_int_equal(v4.n, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{ "rule: a rule is read back with all members, and can be deleted", all_members },
		{ "rule: only rules of the given table are listed", filter_by_table },
		{ "rule: a list of IPv4 rules does not contain IPv6 rules", ipv6_rules },
	};

	return cmocka_run_group_tests_name("rule", tests, test_enter, NULL);
}
