/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/rtnl/test-addr.c - addresses as the real kernel has them
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

/* The broadcast address of the only IPv4 address of a link, "" without one. */
static int see_broadcast(void *ctx, const struct nlmsghdr *answer, struct hw_err *e)
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

static void broadcast_of(struct rtnl *nl, const struct link *link, char buf[HW_IP_TEXT])
{
	struct ifaddrmsg head = { .ifa_family = AF_INET, .ifa_index = link->index };
	struct hw_err e;

	buf[0] = '\0';
	rtnl_put(nl, RTM_GETADDR, NLM_F_DUMP, &head, sizeof(head), "list");
	assert_int_equal(rtnl_query(nl, see_broadcast, buf, &e), 0);
}

static void adds_and_deletes(void **state)
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
	broadcast_of(nl, &link, broadcast);
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
		broadcast_of(nl, &link, broadcast);
		assert_string_equal(broadcast, "");
		addr_put_del(nl, &link, &prefix);
		test_commit(nl);
	}
}

static void no_detection(void **state)
{
	AUTO(rtnl_close) struct rtnl *nl = test_rtnl();
	AUTO(addr_list_done) struct addr_list list = { 0 };
	struct link link;
	struct hw_prefix asked = test_prefix("fd00:1::1/64"), at_once = test_prefix("fd00:1::2/64");
	struct hw_err e;

	(void)state;
	/* the other end is down: there is nobody to ask, so the question stays open */
	test_put_veth(nl, "c0", "c1");
	test_commit(nl);
	link = test_link(nl, "c0");
	link_set_up(nl, &link);
	test_commit(nl);
	if (!link.ipv6) {
		print_message("IPv6 is switched off\n");
		skip();
	}
	addr_put_add(nl, &link, &asked, 0);
	addr_put_add(nl, &link, &at_once, IFA_F_NODAD);
	test_commit(nl);
	assert_int_equal(addr_get(nl, &link, AF_INET6, &list, &e), 0);
	for (size_t i = 0; i < list.n; i++) {
		if (hw_prefix_equal(&list.v[i].prefix, &asked))
			assert_true(list.v[i].flags & IFA_F_TENTATIVE);
		if (hw_prefix_equal(&list.v[i].prefix, &at_once))
			assert_false(list.v[i].flags & IFA_F_TENTATIVE);
	}
	assert_true(addr_list_has(&list, &asked));
	assert_true(addr_list_has(&list, &at_once));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{ "addr: lo that is up has its addresses, IPv4 first", addresses_of_lo },
		{ "addr: only addresses of that link come, and our end of a peer's address",
		  only_of_that_link },
		{ "addr: an address is added with its broadcast address, and deleted",
		  adds_and_deletes },
		{ "addr: /31 and /32 have no broadcast address", no_broadcast },
		{ "addr: IFA_F_NODAD makes an IPv6 address usable at once", no_detection },
	};

	return cmocka_run_group_tests_name("addr", tests, test_enter, NULL);
}
