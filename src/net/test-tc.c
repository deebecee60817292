/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/test-tc.c - traffic control as the real kernel has it
 */
#include "net/test.h"

#include <errno.h>
#include <string.h>

#include "net/tc.h"

/* What was put works, or the kernel lacks that part of traffic control. */
static void commit_or_skip(struct rtnl *nl)
{
	struct hw_err e = { 0 };
	int r = rtnl_commit(nl, &e);

	if (r == -ENOENT || r == -EOPNOTSUPP) {
		print_message("the kernel cannot: %s\n", e.msg);
		skip();
	}
	assert_string_equal(e.msg, "");
}

static struct tc_qdisc root_of(struct rtnl *nl, const struct link *link)
{
	struct tc_qdisc qdisc = { 0 };
	struct hw_err e = { 0 };

	tc_get_root(nl, link, &qdisc, &e);
	assert_string_equal(e.msg, "");
	return qdisc;
}

/* 100 Mbit/s with 2 Mbit: 20 ms of it, which are 312500 ticks of 64 ns. */
static void from_bits(void **state)
{
	struct tc_tbf tbf = tc_tbf_from_bits(100000000, 2000000);

	(void)state;
	assert_int_equal(tbf.rate, 12500000);
	assert_int_equal(tbf.buffer, 312500);
	assert_int_equal(tbf.limit, 312500 + 250000);
	tbf = tc_tbf_from_bits(80000000000, 80000000);
	assert_true(tbf.rate == 10000000000);
	assert_int_equal(tbf.limit, 250000000 + 10000000);
	tbf = tc_tbf_from_bits(UINT64_MAX, UINT64_MAX);
	assert_true(tbf.rate == UINT64_MAX / 8);
	assert_int_equal(tbf.limit, UINT32_MAX);
	tbf = tc_tbf_from_bits(1, 0);
	assert_int_equal(tbf.rate, 1);
}

static void bucket(void **state)
{
	static const uint64_t rates[] = { 100000000, 80000000000 };
	AUTO(rtnl_close) struct rtnl *nl = test_rtnl();
	struct link link = test_pair(nl, "a0", "a1");
	struct hw_err e;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rates); i++) {
		struct tc_tbf tbf = tc_tbf_from_bits(rates[i], 80000000);
		struct tc_qdisc now;

		assert_string_equal(root_of(nl, &link).kind, "noqueue");
		tc_put_tbf(nl, &link, &tbf);
		commit_or_skip(nl);
		now = root_of(nl, &link);
		assert_string_equal(now.kind, "tbf");
		assert_int_equal(now.handle, 0x10000);
		assert_true(now.tbf.rate == tbf.rate);
		assert_int_equal(now.tbf.limit, tbf.limit);
		assert_int_equal(now.tbf.buffer, tbf.buffer);
		tc_put_tbf(nl, &link, &tbf);
		assert_int_equal(rtnl_commit(nl, &e), -EEXIST);
		assert_non_null(strstr(e.msg, "limit the rate of a0: "));
		tc_put_del_root(nl, &link);
		test_commit(nl);
	}
	tc_put_del_root(nl, &link);
	assert_int_equal(rtnl_commit(nl, &e), -ENOENT);
}

static void redirect(void **state)
{
	AUTO(rtnl_close) struct rtnl *nl = test_rtnl();
	struct link link = test_pair(nl, "b0", "b1"), to = test_pair(nl, "c0", "c1");
	struct link other = test_link(nl, "c1");
	struct hw_err e;

	(void)state;
	tc_put_ingress(nl, &link);
	commit_or_skip(nl);
	assert_int_equal(tc_is_redirected(nl, &link, &to, &e), 0);
	tc_put_redirect(nl, &link, &to);
	commit_or_skip(nl);
	assert_int_equal(tc_is_redirected(nl, &link, &to, &e), 1);
	assert_int_equal(tc_is_redirected(nl, &link, &other, &e), 0);
	assert_int_equal(tc_is_redirected(nl, &to, &link, &e), 0);
	tc_put_ingress(nl, &link);
	assert_int_equal(rtnl_commit(nl, &e), -EEXIST);
	tc_put_del_ingress(nl, &link);
	test_commit(nl);
	assert_int_equal(tc_is_redirected(nl, &link, &to, &e), 0);
	tc_put_del_ingress(nl, &link);
	assert_true(rtnl_commit(nl, &e) < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{ "tc: a bucket from bits, as upstream counts", from_bits },
		{ "tc: a bucket comes back as it was put, also beyond 4 GB a second", bucket },
		{ "tc: what comes in is redirected until the hook is deleted", redirect },
	};

	return cmocka_run_group_tests_name("tc", tests, test_enter, NULL);
}
