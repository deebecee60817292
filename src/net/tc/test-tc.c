/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/tc/test-tc.c - shape egress and redirect ingress
 */
#include "net/test.h"

#include <errno.h>
#include <linux/pkt_sched.h>
#include <string.h>

#include "net/tc/tc.h"

/* Commits the batch; skips the test if the kernel lacks that part of traffic control. */
static void commit_or_skip(struct rtnl *nl)
{
	struct hw_err e = { 0 };
	int r = rtnl_commit(nl, &e);

	if (r == -ENOENT || r == -EOPNOTSUPP) {
		print_message("not supported by the kernel: %s\n", e.msg);
		skip();
	}
	assert_string_equal(e.msg, "");
}

static struct tc_qdisc get_root(struct rtnl *nl, const struct link *link)
{
	struct tc_qdisc qdisc = { 0 };
	struct hw_err e = { 0 };

	tc_get_root(nl, link, &qdisc, &e);
	assert_string_equal(e.msg, "");
	return qdisc;
}

static struct nlattr *put_htb_init(struct nlmsghdr *m)
{
	struct tc_htb_glob init = { .version = 3, .rate2quantum = 10 };
	struct nlattr *options = mnl_attr_nest_start(m, TCA_OPTIONS);

	mnl_attr_put(m, TCA_HTB_INIT, sizeof(init), &init);
	return options;
}

/* At 100 Mbit/s a burst of 2 Mbit takes 20 ms, which is 312500 ticks of 64 ns. */
static void from_bits(void **state)
{
	struct tc_tbf tbf = tc_tbf_from_bits(100000000, 2000000, 1500);

	(void)state;
	assert_int_equal(tbf.rate, 12500000);
	assert_int_equal(tbf.buffer, 312500);
	assert_int_equal(tbf.limit, 312500 + 250000);
	tbf = tc_tbf_from_bits(80000000000, 80000000, 1500);
	assert_true(tbf.rate == 10000000000);
	assert_int_equal(tbf.limit, 250000000 + 10000000);
	tbf = tc_tbf_from_bits(UINT64_MAX, UINT64_MAX, 1500);
	assert_true(tbf.rate == UINT64_MAX / 8);
	assert_int_equal(tbf.limit, UINT32_MAX);
	tbf = tc_tbf_from_bits(1, 0, 1500);
	assert_int_equal(tbf.rate, 1);
}

/* At 64 Mbit/s 8000 bytes take 1 ms, which is 15625 ticks; so 1518 bytes take 2965 ticks. */
static void tiny_burst(void **state)
{
	struct tc_tbf tbf = tc_tbf_from_bits(64000000, 8, 1500);

	(void)state;
	assert_int_equal(tbf.buffer, 2965);
	assert_int_equal(tbf.limit, 200000 + 1500);
	assert_true(tc_tbf_from_bits(80000000000, 8, 1500).buffer > 0);
}

/* A shape passes its check, cannot be added twice, and can be deleted. */
static void check_shape_lifecycle(struct rtnl *nl, const struct link *link,
				  const struct tc_shape *shape)
{
	struct hw_err e = { 0 };

	tc_put_shape(nl, link, shape);
	commit_or_skip(nl);
	tc_check_shape(nl, link, shape, &e);
	assert_string_equal(e.msg, "");
	assert_int_equal(get_root(nl, link).handle, TC_HANDLE);
	tc_put_shape(nl, link, shape);
	assert_int_equal(rtnl_commit(nl, &e), -EEXIST);
	assert_non_null(strstr(e.msg, "limit the rate of "));
	tc_put_del_shape(nl, link);
	test_commit(nl);
	assert_int_equal(tc_check_shape(nl, link, shape, &e), -ENOENT);
	assert_non_null(strstr(e.msg, "has no rate limit set by hawser: root qdisc is noqueue"));
}

static const uint64_t rates[] = { 100000000, 80000000000 };

static void shape_all(void **state)
{
	AUTO(rtnl_close) struct rtnl *nl = test_rtnl();
	struct link link = test_pair(nl, "a0", "a1");
	struct hw_err e;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rates); i++) {
		struct tc_shape shape = { .bucket = tc_tbf_from_bits(rates[i], 80000000, 1500) };

		assert_string_equal(get_root(nl, &link).kind, "noqueue");
		check_shape_lifecycle(nl, &link, &shape);
	}
	tc_put_del_shape(nl, &link);
	assert_int_equal(rtnl_commit(nl, &e), -EINVAL);
}

static void shape_by_subnets(void **state)
{
	struct hw_prefix subnets[] = { test_prefix("10.0.0.0/8"), test_prefix("192.0.2.7/32"),
				       test_prefix("0.0.0.0/0"), test_prefix("fd00:1:2:3:4::/77"),
				       test_prefix("::/0") };
	AUTO(rtnl_close) struct rtnl *nl = test_rtnl();
	struct link link = test_pair(nl, "s0", "s1");

	(void)state;
	for (size_t i = 0; i < 8; i++) {
		struct tc_shape shape = { .bucket = tc_tbf_from_bits(rates[i & 1], 80000000, 1500),
					  .subnets = subnets,
					  .n_subnets = ARRAY_SIZE(subnets),
					  .only = i & 2,
					  .by_source = i & 4 };

		check_shape_lifecycle(nl, &link, &shape);
	}
}

static void check_finds_differences(void **state)
{
	struct hw_prefix subnets[] = { test_prefix("10.0.0.0/8"), test_prefix("fd00::/8") };
	AUTO(rtnl_close) struct rtnl *nl = test_rtnl();
	struct link link = test_pair(nl, "d0", "d1");
	struct tc_shape shape = { .bucket = tc_tbf_from_bits(rates[0], 80000000, 1500) };
	struct tc_shape other = shape;
	struct hw_err e;

	(void)state;
	for (size_t n = 0; n <= ARRAY_SIZE(subnets); n += ARRAY_SIZE(subnets)) {
		shape.subnets = other.subnets = subnets;
		shape.n_subnets = n;
		tc_put_shape(nl, &link, &shape);
		commit_or_skip(nl);
		other = shape;
		other.bucket.rate++;
		assert_int_equal(tc_check_shape(nl, &link, &other, &e), -EINVAL);
		assert_non_null(strstr(e.msg, "Rate doesn't match: interface d0 "));
		other = shape;
		other.bucket.buffer++;
		assert_int_equal(tc_check_shape(nl, &link, &other, &e), -EINVAL);
		assert_non_null(strstr(e.msg, "Buffer doesn't match: interface d0 "));
		other = shape;
		other.bucket.limit++;
		assert_int_equal(tc_check_shape(nl, &link, &other, &e), -EINVAL);
		assert_non_null(strstr(e.msg, "Limit doesn't match: interface d0 "));
		other = shape;
		other.n_subnets = 1;
		assert_true(tc_check_shape(nl, &link, &other, &e) < 0);
		other = shape;
		other.n_subnets = 2;
		other.by_source = true;
		assert_int_equal(tc_check_shape(nl, &link, &other, &e), -ENOENT);
		tc_put_del_shape(nl, &link);
		test_commit(nl);
	}
}

static void foreign_qdisc(void **state)
{
	AUTO(rtnl_close) struct rtnl *nl = test_rtnl();
	struct link link = test_pair(nl, "n0", "n1");
	struct tc_shape shape = { .bucket = tc_tbf_from_bits(rates[0], 80000000, 1500) };
	struct tcmsg head = { .tcm_ifindex = link.index,
			      .tcm_parent = TC_H_ROOT,
			      .tcm_handle = 0x10000 };
	struct nlmsghdr *m = rtnl_put(nl, RTM_NEWQDISC, NLM_F_CREATE | NLM_F_EXCL, &head,
				      sizeof(head), "add a qdisc");
	struct hw_err e;

	(void)state;
	mnl_attr_put_strz(m, TCA_KIND, "htb");
	mnl_attr_nest_end(m, put_htb_init(m));
	commit_or_skip(nl);
	tc_put_shape(nl, &link, &shape);
	assert_int_equal(rtnl_commit(nl, &e), -EEXIST);
	tc_put_del_shape(nl, &link);
	assert_int_equal(rtnl_commit(nl, &e), -EINVAL);
	assert_int_equal(get_root(nl, &link).handle, 0x10000);
}

static bool is_redirected(struct rtnl *nl, const struct link *link, const struct link *to)
{
	struct tc_ingress ingress = { 0 };
	struct hw_err e;

	assert_int_equal(tc_get_ingress(nl, link, to, &ingress, &e), 0);
	return ingress.redirected;
}

static void ingress_hook(void **state)
{
	AUTO(rtnl_close) struct rtnl *nl = test_rtnl();
	struct link link = test_pair(nl, "h0", "h1"), to = test_pair(nl, "g0", "g1"),
		    deleted = { 0 };
	struct tc_ingress ingress;
	struct hw_err e;

	(void)state;
	assert_int_equal(tc_get_ingress(nl, &link, &to, &ingress, &e), 0);
	assert_false(ingress.hook);
	tc_put_ingress(nl, &link);
	commit_or_skip(nl);
	assert_int_equal(tc_get_ingress(nl, &link, &to, &ingress, &e), 0);
	assert_true(ingress.hook && !ingress.redirected && !ingress.others);
	tc_put_redirect(nl, &link, &to);
	commit_or_skip(nl);
	assert_int_equal(tc_get_ingress(nl, &link, &to, &ingress, &e), 0);
	assert_true(ingress.hook && ingress.redirected && !ingress.others);
	assert_int_equal(tc_get_ingress(nl, &link, &deleted, &ingress, &e), 0);
	assert_true(ingress.hook && !ingress.redirected && ingress.others == 1);
	assert_int_equal(link_delete_sync(nl, "g0", &e), 0);
	assert_int_equal(tc_get_ingress(nl, &link, &deleted, &ingress, &e), 0);
	assert_true(ingress.hook && ingress.redirected && !ingress.others);
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
	assert_int_equal(is_redirected(nl, &link, &to), 0);
	tc_put_redirect(nl, &link, &to);
	commit_or_skip(nl);
	assert_int_equal(is_redirected(nl, &link, &to), 1);
	assert_int_equal(is_redirected(nl, &link, &other), 0);
	assert_int_equal(is_redirected(nl, &to, &link), 0);
	tc_put_ingress(nl, &link);
	assert_int_equal(rtnl_commit(nl, &e), -EEXIST);
	tc_put_del_ingress(nl, &link);
	test_commit(nl);
	assert_int_equal(is_redirected(nl, &link, &to), 0);
	tc_put_del_ingress(nl, &link);
	assert_true(rtnl_commit(nl, &e) < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{ "tc: rate and burst in bits give the same token bucket as in upstream",
		  from_bits },
		{ "tc: a token bucket smaller than a packet is enlarged", tiny_burst },
		{ "tc: a rate limit is read back as it was set, also above 4 GB/s", shape_all },
		{ "tc: a limit by IPv4 and IPv6 subnets is read back as it was set",
		  shape_by_subnets },
		{ "tc: check reports differences in rate, burst, limit and subnets",
		  check_finds_differences },
		{ "tc: a root qdisc of another program is neither replaced nor deleted",
		  foreign_qdisc },
		{ "tc: the ingress hook and its filters are reported", ingress_hook },
		{ "tc: ingress is redirected until the hook is deleted", redirect },
	};

	return cmocka_run_group_tests_name("tc", tests, test_enter, NULL);
}
