/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/rtnl/test-addr.c - list, add and delete addresses
 */
#include "net/test.h"

#include <errno.h>
#include <linux/if_addr.h>
#include <string.h>
#include <sys/socket.h>

#include "net/rtnl/addr.h"
#include "net/rtnl/link.h"

static void put_address(struct rtnl *nl, const struct link *link, const char *local,
			const char *peer)
{
	struct hw_prefix own, other;
	struct hw_err e;
	struct nlmsghdr *m;

	assert_int_equal(hw_prefix_parse(local, &own, &e), 0);
	assert_int_equal(hw_prefix_parse(peer, &other, &e), 0);
	m = rtnl_put(nl, RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL,
		     &(struct ifaddrmsg){ .ifa_family = AF_INET,
					  .ifa_prefixlen = own.len,
					  .ifa_index = link->index },
		     sizeof(struct ifaddrmsg), "add address %s", local);
	mnl_attr_put(m, IFA_LOCAL, 4, own.ip.bytes);
	mnl_attr_put(m, IFA_ADDRESS, 4, other.ip.bytes);
}

static const char *format_addr(const struct addr_list *list, size_t i)
{
	static char buf[HW_PREFIX_TEXT];

	assert_true(i < list->n);
	return hw_prefix_format(&list->v[i].prefix, buf);
}

static void set_lo_up(struct rtnl *nl, struct link *ret_lo)
{
	struct hw_err e;

	*ret_lo = test_link(nl, "lo");
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
	set_lo_up(nl, &lo);
	assert_int_equal(addr_get(nl, &lo, AF_INET, &v4, &e), 0);
	assert_int_equal(v4.n, 1);
	assert_string_equal(format_addr(&v4, 0), "127.0.0.1/8");
	assert_int_equal(v4.v[0].scope, RT_SCOPE_HOST);
	assert_true(v4.v[0].flags & IFA_F_PERMANENT);

	assert_int_equal(addr_get(nl, &lo, AF_UNSPEC, &both, &e), 0);
	assert_string_equal(format_addr(&both, 0), "127.0.0.1/8");
	if (test_link(nl, "lo").ipv6)
		assert_string_equal(format_addr(&both, 1), "::1/128");
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
	set_lo_up(nl, &lo);
	test_put_veth(nl, "left", "right");
	assert_int_equal(rtnl_commit(nl, &e), 0);
	veth = test_link(nl, "left");
	assert_int_equal(addr_get(nl, &veth, AF_UNSPEC, &list, &e), 0);
	assert_int_equal(list.n, 0);
	put_address(nl, &veth, "10.1.2.3/32", "10.1.2.4/32");
	assert_int_equal(rtnl_commit(nl, &e), 0);
	assert_int_equal(addr_get(nl, &veth, AF_UNSPEC, &list, &e), 0);
	assert_int_equal(list.n, 1);
	assert_string_equal(format_addr(&list, 0), "10.1.2.3/32");
}

/* Writes the broadcast address to ctx, if the IPv4 address has one. */
static int decode_broadcast(void *ctx, const struct nlmsghdr *answer, struct hw_err *e)
{
	const struct nlattr *attr;
	struct hw_ip ip = { .family = AF_INET };

	(void)e;
	mnl_attr_for_each(attr, answer, sizeof(struct ifaddrmsg)) {
		if (mnl_attr_get_type(attr) != IFA_BROADCAST)
			continue;
		memcpy(ip.bytes, mnl_attr_get_payload(attr), 4);
		hw_ip_format(&ip, ctx);
	}
	return 0;
}

static void get_broadcast(struct rtnl *nl, const struct link *link, char buf[HW_IP_TEXT])
{
	struct ifaddrmsg head = { .ifa_family = AF_INET, .ifa_index = link->index };
	struct hw_err e;

	buf[0] = '\0';
	rtnl_put(nl, RTM_GETADDR, NLM_F_DUMP, &head, sizeof(head), "list");
	assert_int_equal(rtnl_query(nl, decode_broadcast, buf, &e), 0);
}

static void add_and_delete(void **state)
{
	AUTO(rtnl_close) struct rtnl *nl = test_rtnl();
	AUTO(addr_list_done) struct addr_list list = { 0 }, after = { 0 };
	struct link link = test_pair(nl, "a0", "a1");
	struct hw_prefix v4 = test_prefix("10.1.2.3/24");
	char broadcast[HW_IP_TEXT];
	struct hw_err e;

	(void)state;
	addr_put_add(nl, &link, &v4, 0);
	test_commit(nl);
	assert_int_equal(addr_get(nl, &link, AF_INET, &list, &e), 0);
	assert_int_equal(list.n, 1);
	assert_true(addr_list_has(&list, &v4));
	assert_int_equal(list.v[0].scope, RT_SCOPE_UNIVERSE);
	get_broadcast(nl, &link, broadcast);
	assert_string_equal(broadcast, "10.1.2.255");

	addr_put_add(nl, &link, &v4, 0);
	assert_int_equal(rtnl_commit(nl, &e), -EEXIST);
	assert_non_null(strstr(e.msg, "failed to add IP addr 10.1.2.3/24 to \"a0\": "));

	addr_put_del(nl, &link, &v4);
	test_commit(nl);
	assert_int_equal(addr_get(nl, &link, AF_INET, &after, &e), 0);
	assert_int_equal(after.n, 0);
	addr_put_del(nl, &link, &v4);
	assert_int_equal(rtnl_commit(nl, &e), -EADDRNOTAVAIL);
	assert_non_null(strstr(e.msg, "failed to delete IP addr 10.1.2.3/24 from \"a0\": "));
}

static void no_broadcast(void **state)
{
	static const char *const lengths[] = { "10.1.3.2/31", "10.1.3.4/32" };
	AUTO(rtnl_close) struct rtnl *nl = test_rtnl();
	struct link link = test_pair(nl, "b0", "b1");
	char broadcast[HW_IP_TEXT];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
		struct hw_prefix prefix = test_prefix(lengths[i]);

		addr_put_add(nl, &link, &prefix, 0);
		test_commit(nl);
		get_broadcast(nl, &link, broadcast);
		assert_string_equal(broadcast, "");
		addr_put_del(nl, &link, &prefix);
		test_commit(nl);
	}
}

static void add_without_dad(void **state)
{
	AUTO(rtnl_close) struct rtnl *nl = test_rtnl();
	AUTO(addr_list_done) struct addr_list list = { 0 };
	struct link link;
	struct hw_prefix tentative = test_prefix("fd00:1::1/64"),
			 nodad = test_prefix("fd00:1::2/64");
	struct hw_err e;

	(void)state;
	/* the peer is down, so duplicate address detection does not finish */
	test_put_veth(nl, "c0", "c1");
	test_commit(nl);
	link = test_link(nl, "c0");
	link_set_up(nl, &link);
	test_commit(nl);
	if (!link.ipv6) {
		print_message("IPv6 is disabled\n");
		skip();
	}
	addr_put_add(nl, &link, &tentative, 0);
	addr_put_add(nl, &link, &nodad, IFA_F_NODAD);
	test_commit(nl);
	assert_int_equal(addr_get(nl, &link, AF_INET6, &list, &e), 0);
	for (size_t i = 0; i < list.n; i++) {
		if (hw_prefix_equal(&list.v[i].prefix, &tentative))
			assert_true(list.v[i].flags & IFA_F_TENTATIVE);
		if (hw_prefix_equal(&list.v[i].prefix, &nodad))
			assert_false(list.v[i].flags & IFA_F_TENTATIVE);
	}
	assert_true(addr_list_has(&list, &tentative));
	assert_true(addr_list_has(&list, &nodad));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{ "addr: the addresses of lo are listed, IPv4 first", addresses_of_lo },
		{ "addr: only addresses of the given link are listed, not those of a peer",
		  only_of_that_link },
		{ "addr: an IPv4 address is added with its broadcast address, and can be deleted",
		  add_and_delete },
		{ "addr: a /31 or /32 address gets no broadcast address", no_broadcast },
		{ "addr: IFA_F_NODAD makes an IPv6 address usable at once", add_without_dad },
	};

	return cmocka_run_group_tests_name("addr", tests, test_enter, NULL);
}
