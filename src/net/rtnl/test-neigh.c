/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/rtnl/test-neigh.c - add, replace, read and delete neighbour entries
 */
#include "net/test.h"

#include <errno.h>
#include <linux/neighbour.h>
#include <sys/socket.h>

#include "net/rtnl/neigh.h"

static struct hw_mac parse_mac(const char *text)
{
	struct hw_mac mac = { 0 };
	struct hw_err e;

	assert_int_equal(hw_mac_parse(text, &mac, &e), 0);
	return mac;
}

static void check_permanent_entry(struct rtnl *nl, const struct link *link, const char *ip)
{
	struct neigh neigh = { .ip = test_ip(ip), .mac = parse_mac("02:00:00:00:00:01") }, found;
	char text[HW_MAC_TEXT];
	struct hw_err e;

	assert_int_equal(neigh_get(nl, link, &neigh.ip, 0, &found, &e), 0);
	neigh_put_add(nl, link, &neigh);
	neigh.mac = parse_mac("02:00:00:00:00:02");
	neigh_put_add(nl, link, &neigh);
	test_commit(nl);
	assert_int_equal(neigh_get(nl, link, &neigh.ip, 0, &found, &e), 1);
	assert_true(hw_ip_equal(&found.ip, &neigh.ip));
	assert_string_equal(hw_mac_format(&found.mac, text), "02:00:00:00:00:02");
	assert_int_equal(found.state, NUD_PERMANENT);
	neigh_put_del(nl, link, &neigh);
	test_commit(nl);
}

static void permanent(void **state)
{
	AUTO(rtnl_close) struct rtnl *nl = test_rtnl();
	struct link link = test_pair(nl, "a0", "a1");

	(void)state;
	check_permanent_entry(nl, &link, "10.1.2.3");
	if (link.ipv6)
		check_permanent_entry(nl, &link, "fd00::3");
}

static void proxy(void **state)
{
	AUTO(rtnl_close) struct rtnl *nl = test_rtnl();
	struct link link = test_pair(nl, "b0", "b1");
	struct neigh neigh = { .ip = test_ip("169.254.1.1"), .flags = NTF_PROXY }, found;
	struct hw_err e;

	(void)state;
	neigh_put_add(nl, &link, &neigh);
	test_commit(nl);
	assert_int_equal(neigh_get(nl, &link, &neigh.ip, NTF_PROXY, &found, &e), 1);
	assert_true(found.flags & NTF_PROXY);
	neigh_put_del(nl, &link, &neigh);
	test_commit(nl);
	assert_int_equal(neigh_get(nl, &link, &neigh.ip, NTF_PROXY, &found, &e), 0);
	neigh_put_del(nl, &link, &neigh);
	assert_int_equal(rtnl_commit(nl, &e), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{ "neigh: a neighbour entry is added, replaced and deleted", permanent },
		{ "neigh: a proxy entry is added and deleted", proxy },
	};

	return cmocka_run_group_tests_name("neigh", tests, test_enter, NULL);
}
