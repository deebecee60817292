/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/test-addr.c - addresses as the real kernel has them
 */
#include "net/test.h"

#include <linux/if_addr.h>
#include <string.h>
#include <sys/socket.h>

#include "net/addr.h"
#include "net/link.h"

static void put_address(struct rtnl *nl, const struct link *link, const char *local,
			const char *peer)
{
	struct hw_prefix ours, theirs;
	struct hw_err e;
	struct nlmsghdr *m;

	assert_int_equal(hw_prefix_parse(local, &ours, &e), 0);
	assert_int_equal(hw_prefix_parse(peer, &theirs, &e), 0);
	m = rtnl_put(nl, RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL,
		     &(struct ifaddrmsg){ .ifa_family = AF_INET,
					  .ifa_prefixlen = ours.len,
					  .ifa_index = link->index },
		     sizeof(struct ifaddrmsg), "add address %s", local);
	mnl_attr_put(m, IFA_LOCAL, 4, ours.ip.bytes);
	mnl_attr_put(m, IFA_ADDRESS, 4, theirs.ip.bytes);
}

static const char *text(const struct addr_list *list, size_t i)
{
	static char buf[HW_PREFIX_TEXT];

	assert_true(i < list->n);
	return hw_prefix_format(&list->v[i].prefix, buf);
}

static struct link get_link(struct rtnl *nl, const char *name)
{
	struct link link;
	struct hw_err e;

	assert_int_equal(link_get(nl, name, &link, &e), 0);
	return link;
}

static void lo_up(struct rtnl *nl, struct link *ret_lo)
{
	struct hw_err e;

	*ret_lo = get_link(nl, "lo");
	link_set_up(nl, ret_lo);
	assert_int_equal(rtnl_commit(nl, &e), 0);
}

static void addresses_of_lo(void **state)
{
	AUTO(rtnl_close) struct rtnl *nl = test_rtnl();
	AUTO(addr_list_done) struct addr_list v4 = { 0 }, both = { 0 };
	struct hw_prefix prefix;
	struct link lo;
	struct hw_err e;

	(void)state;
	lo_up(nl, &lo);
	assert_int_equal(addr_get(nl, &lo, AF_INET, &v4, &e), 0);
	assert_int_equal(v4.n, 1);
	assert_string_equal(text(&v4, 0), "127.0.0.1/8");
	assert_int_equal(v4.v[0].scope, RT_SCOPE_HOST);
	assert_true(v4.v[0].flags & IFA_F_PERMANENT);

	assert_int_equal(addr_get(nl, &lo, AF_UNSPEC, &both, &e), 0);
	assert_string_equal(text(&both, 0), "127.0.0.1/8");
	if (get_link(nl, "lo").ipv6)
		assert_string_equal(text(&both, 1), "::1/128");
	assert_int_equal(hw_prefix_parse("127.0.0.1/8", &prefix, &e), 0);
	assert_true(addr_list_has(&both, &prefix));
	prefix.len = 16;
	assert_false(addr_list_has(&both, &prefix));
}

static void only_of_that_link(void **state)
{
	AUTO(rtnl_close) struct rtnl *nl = test_rtnl();
	AUTO(addr_list_done) struct addr_list list = { 0 };
	struct link lo, veth;
	struct hw_err e;

	(void)state;
	lo_up(nl, &lo);
	test_put_veth(nl, "left", "right");
	assert_int_equal(rtnl_commit(nl, &e), 0);
	veth = get_link(nl, "left");
	assert_int_equal(addr_get(nl, &veth, AF_UNSPEC, &list, &e), 0);
	assert_int_equal(list.n, 0);
	put_address(nl, &veth, "10.1.2.3/32", "10.1.2.4/32");
	assert_int_equal(rtnl_commit(nl, &e), 0);
	assert_int_equal(addr_get(nl, &veth, AF_UNSPEC, &list, &e), 0);
	assert_int_equal(list.n, 1);
	assert_string_equal(text(&list, 0), "10.1.2.3/32");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{ "addr: lo that is up has its addresses, IPv4 first", addresses_of_lo },
		{ "addr: only addresses of that link come, and our end of a peer's address",
		  only_of_that_link },
	};

	return cmocka_run_group_tests_name("addr", tests, test_enter, NULL);
}
