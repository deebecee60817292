/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/rtnl/test-route.c - add, replace, list and delete routes
 */
#include "net/test.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "net/rtnl/addr.h"
#include "net/rtnl/link.h"
#include "net/rtnl/route.h"

/* Creates a link with the addresses 10.N.0.1/24 and fdNN::1/64. */
static struct link create_link(struct rtnl *nl, const char *name, const char *peer, int n)
{
	struct link link = test_pair(nl, name, peer);
	struct hw_prefix v4 = test_prefix("10.0.0.1/24"), v6 = test_prefix("fd00::1/64");

	v4.ip.bytes[1] = n;
	v6.ip.bytes[1] = n;
	addr_put_add(nl, &link, &v4, 0);
	if (link.ipv6)
		addr_put_add(nl, &link, &v6, 0x02 /* IFA_F_NODAD */);
	test_commit(nl);
	return link;
}

static struct route_list list_routes(struct rtnl *nl, const struct link *link, int family,
				     uint32_t table)
{
	struct route_list list = { 0 };
	struct hw_err e = { 0 };

	route_get(nl, link, family, table, &list, &e);
	assert_string_equal(e.msg, "");
	return list;
}

static void all_members(void **state)
{
	AUTO(rtnl_close) struct rtnl *nl = test_rtnl();
	struct link link = create_link(nl, "a0", "a1", 1);
	AUTO(route_list_done) struct route_list list = { 0 };
	struct route r = { .dst = test_prefix("192.168.7.9/16"),
			   .gw = test_ip("10.1.0.9"),
			   .src = test_ip("10.1.0.1"),
			   .priority = 77,
			   .mtu = 1400,
			   .advmss = 1300,
			   .proto = ROUTE_PROTO_HAWSER };
	const struct route *found;

	(void)state;
	route_put_add(nl, &link, &r);
	test_commit(nl);
	list = list_routes(nl, &link, AF_INET, 0);
	found = route_find(&list, &r);
	assert_non_null(found);
	assert_int_equal(found->oif, link.index);
	assert_int_equal(found->mtu, 1400);
	assert_int_equal(found->advmss, 1300);
	assert_int_equal(found->priority, 77);
	assert_int_equal(found->table, RT_TABLE_MAIN);
	assert_int_equal(found->proto, ROUTE_PROTO_HAWSER);
	assert_int_equal(found->type, RTN_UNICAST);
	assert_true(hw_ip_equal(&found->src, &r.src));
	assert_int_equal(found->dst.ip.bytes[2], 0);

	r.gw = test_ip("10.1.0.8");
	assert_null(route_find(&list, &r));
	assert_non_null(route_find_dst(&list, &r.dst));
	r.dst.len = 24;
	assert_null(route_find_dst(&list, &r.dst));
}

static void ipv6_and_default(void **state)
{
	AUTO(rtnl_close) struct rtnl *nl = test_rtnl();
	struct link link = create_link(nl, "b0", "b1", 2);
	AUTO(route_list_done) struct route_list list = { 0 };
	struct route v6 = { .dst = test_prefix("::/0"), .gw = test_ip("fd02::9"), .mtu = 1300 };
	struct route v4 = { .dst = test_prefix("0.0.0.0/0"), .gw = test_ip("10.2.0.9") };

	(void)state;
	if (!link.ipv6) {
		print_message("IPv6 is disabled\n");
		skip();
	}
	route_put_add(nl, &link, &v4);
	route_put_add(nl, &link, &v6);
	test_commit(nl);
	list = list_routes(nl, &link, AF_UNSPEC, 0);
	assert_int_equal(list.v[0].dst.ip.family, AF_INET);
	assert_non_null(route_find(&list, &v4));
	assert_non_null(route_find(&list, &v6));
	assert_int_equal(route_find(&list, &v6)->mtu, 1300);
	assert_int_equal(route_find(&list, &v6)->proto, RTPROT_BOOT);
	v6.priority = 5;
	assert_null(route_find(&list, &v6));
	route_put_del(nl, &link, &(struct route){ .dst = v6.dst });
	route_put_del(nl, &link, &v4);
	test_commit(nl);
}

static void second_gateway(void **state)
{
	AUTO(rtnl_close) struct rtnl *nl = test_rtnl();
	struct link link = create_link(nl, "c0", "c1", 3);
	AUTO(route_list_done) struct route_list two = { 0 }, one = { 0 };
	struct route r = { .dst = test_prefix("192.168.0.0/24"), .gw = test_ip("10.3.0.8") };
	struct hw_err e;

	(void)state;
	route_put_add(nl, &link, &r);
	test_commit(nl);
	route_put_add(nl, &link, &r);
	assert_int_equal(rtnl_commit(nl, &e), -EEXIST);
	assert_string_equal(e.msg, "failed to add route '192.168.0.0/24 via 10.3.0.8 dev c0 "
				   "metric 0 (Scope: universe, Table: 254)': File exists");
	r.gw = test_ip("10.3.0.9");
	route_put_add_only(nl, &link, &r);
	assert_int_equal(rtnl_commit(nl, &e), -EEXIST);
	route_put_add(nl, &link, &r);
	test_commit(nl);
	two = list_routes(nl, &link, AF_INET, 0);
	assert_int_equal(two.n, 3); /* both routes and the connected route */
	route_put_del(nl, &link, &r);
	r.gw = test_ip("10.3.0.7");
	route_put_replace(nl, &link, &r);
	route_put_replace(nl, &link, &r);
	test_commit(nl);
	one = list_routes(nl, &link, AF_INET, 0);
	assert_int_equal(one.n, 2);
	assert_non_null(route_find(&one, &r));
}

static void ipv6_next_hops(void **state)
{
	AUTO(rtnl_close) struct rtnl *nl = test_rtnl();
	struct link link = create_link(nl, "d0", "d1", 4), other = create_link(nl, "e0", "e1", 5);
	AUTO(route_list_done) struct route_list list = { 0 };
	struct route here = { .dst = test_prefix("fdff::/64"), .gw = test_ip("fd04::8") };
	struct route more = { .dst = here.dst, .gw = test_ip("fd04::9") };
	struct route there = { .dst = here.dst, .gw = test_ip("fd05::9") };

	(void)state;
	if (!link.ipv6) {
		print_message("IPv6 is disabled\n");
		skip();
	}
	route_put_add(nl, &link, &here);
	route_put_add(nl, &link, &more);
	route_put_add(nl, &other, &there);
	test_commit(nl);
	list = list_routes(nl, &link, AF_INET6, 0);
	assert_non_null(route_find(&list, &here));
	assert_non_null(route_find(&list, &more));
	assert_null(route_find(&list, &there));
}

static void filter_by_link_and_table(void **state)
{
	AUTO(rtnl_close) struct rtnl *nl = test_rtnl();
	struct link link = create_link(nl, "f0", "f1", 6), other = create_link(nl, "g0", "g1", 7);
	AUTO(route_list_done) struct route_list of_main = { 0 }, of_100 = { 0 }, of_none = { 0 };
	struct route r = { .dst = test_prefix("192.168.1.0/24"), .scope = RT_SCOPE_LINK };
	struct route in_100 = { .dst = r.dst, .scope = RT_SCOPE_LINK, .table = 100000 };

	(void)state;
	route_put_add(nl, &other, &r);
	route_put_add(nl, &link, &in_100);
	test_commit(nl);
	of_main = list_routes(nl, &link, AF_INET, 0);
	assert_int_equal(of_main.n, 1);
	assert_int_equal(of_main.v[0].scope, RT_SCOPE_LINK);
	assert_int_equal(of_main.v[0].proto, RTPROT_KERNEL);
	of_100 = list_routes(nl, &link, AF_UNSPEC, 100000);
	assert_int_equal(of_100.n, 1);
	assert_non_null(route_find(&of_100, &in_100));
	of_none = list_routes(nl, &link, AF_UNSPEC, 4711);
	assert_int_equal(of_none.n, 0);
}

static void delete_by_scope_and_proto(void **state)
{
	AUTO(rtnl_close) struct rtnl *nl = test_rtnl();
	struct link link = create_link(nl, "h0", "h1", 8);
	AUTO(route_list_done) struct route_list list = { 0 };
	struct route any = { .dst = test_prefix("10.8.0.0/24"), .scope = RT_SCOPE_NOWHERE };
	struct route wrong = { .dst = any.dst, .scope = RT_SCOPE_HOST };
	struct hw_err e;

	(void)state;
	route_put_del(nl, &link, &wrong);
	assert_int_equal(rtnl_commit(nl, &e), -ESRCH);
	assert_non_null(strstr(e.msg, "failed to delete route '10.8.0.0/24 dev h0 metric 0 "
				      "(Scope: host, Table: 254)'"));
	any.proto = ROUTE_PROTO_HAWSER;
	route_put_del(nl, &link, &any);
	assert_int_equal(rtnl_commit(nl, &e), -ESRCH);
	any.proto = 0;
	route_put_del(nl, &link, &any);
	test_commit(nl);
	list = list_routes(nl, &link, AF_INET, 0);
	assert_int_equal(list.n, 0);
}

static void gateway_off_link(void **state)
{
	AUTO(rtnl_close) struct rtnl *nl = test_rtnl();
	struct link link = create_link(nl, "i0", "i1", 9);
	AUTO(route_list_done) struct route_list list = { 0 };
	struct route far = { .dst = test_prefix("192.168.2.0/24"), .gw = test_ip("169.254.1.1") };
	struct route v6 = { .dst = test_prefix("192.168.3.0/24"), .gw = test_ip("fd09::7") };
	struct hw_err e;

	(void)state;
	route_put_add(nl, &link, &far);
	assert_int_equal(rtnl_commit(nl, &e), -ENETUNREACH);
	far.onlink = true;
	route_put_add(nl, &link, &far);
	if (link.ipv6)
		route_put_add(nl, &link, &v6);
	test_commit(nl);
	list = list_routes(nl, &link, AF_INET, 0);
	assert_non_null(route_find(&list, &far));
	assert_true(route_find(&list, &far)->onlink);
	if (link.ipv6)
		assert_non_null(route_find(&list, &v6));
}

static void route_without_link(void **state)
{
	AUTO(rtnl_close) struct rtnl *nl = test_rtnl();
	struct route hole = { .dst = test_prefix("192.168.4.0/26"),
			      .type = RTN_BLACKHOLE,
			      .proto = ROUTE_PROTO_HAWSER };
	struct hw_err e;

	(void)state;
	route_put_add_only(nl, NULL, &hole);
	test_commit(nl);
	route_put_add_only(nl, NULL, &hole);
	assert_int_equal(rtnl_commit(nl, &e), -EEXIST);
	route_put_del(nl, NULL, &hole);
	test_commit(nl);
}

static void longest_text(void **state)
{
	const char *far = "1111:2222:3333:4444:5555:6666:7777:8888";
	struct link link = { .name = "fifteen-letters" };
	struct route r = { .dst = { .ip = test_ip(far), .len = 128 },
			   .gw = test_ip(far),
			   .priority = UINT32_MAX,
			   .table = UINT32_MAX };
	char text[ROUTE_TEXT];

	(void)state;
	assert_string_equal(route_format(&r, &link, text),
			    "1111:2222:3333:4444:5555:6666:7777:8888/128 via "
			    "1111:2222:3333:4444:5555:6666:7777:8888 dev fifteen-letters "
			    "metric 4294967295 (Scope: universe, Table: 4294967295)");
	r = (struct route){ .dst = test_prefix("10.0.0.0/8"), .scope = 42 };
	assert_string_equal(route_format(&r, NULL, text),
			    "10.0.0.0/8 metric 0 (Scope: 42, Table: 254)");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{ "route: a route is read back with all members", all_members },
		{ "route: default routes are found; metric 0 of IPv6 means the kernel's default",
		  ipv6_and_default },
		{ "route: if a route with another gateway exists, add keeps it, add_only fails, "
		  "and replace changes it",
		  second_gateway },
		{ "route: each next hop on the given link is listed as one route", ipv6_next_hops },
		{ "route: only routes of the given link and table are listed",
		  filter_by_link_and_table },
		{ "route: delete matches scope and origin; RT_SCOPE_NOWHERE matches any scope",
		  delete_by_scope_and_proto },
		{ "route: a route can have an onlink gateway, or an IPv6 gateway for IPv4",
		  gateway_off_link },
		{ "route: a blackhole route is added and deleted without a link",
		  route_without_link },
		{ "route: the longest text of a route fits in ROUTE_TEXT bytes", longest_text },
	};

	return cmocka_run_group_tests_name("route", tests, test_enter, NULL);
}
