/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/test-link.c - links as the real kernel has them
 */
#include "net/test.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "net/link.h"

static void lo_in_a_new_namespace(void **state)
{
	AUTO(rtnl_close) struct rtnl *nl = test_rtnl();
	char mac[HW_MAC_TEXT];
	struct link lo;
	struct hw_err e;

	(void)state;
	assert_int_equal(link_get(nl, "lo", &lo, &e), 0);
	assert_int_equal(lo.index, 1);
	assert_string_equal(lo.name, "lo");
	assert_string_equal(lo.kind, "");
	assert_int_equal(lo.mtu, 65536);
	assert_string_equal(hw_mac_format(&lo.mac, mac), "00:00:00:00:00:00");
	assert_true(lo.flags & IFF_LOOPBACK);
	assert_false(lo.flags & IFF_UP);
}

static void up_and_down(void **state)
{
	AUTO(rtnl_close) struct rtnl *nl = test_rtnl();
	struct link lo;
	struct hw_err e;

	(void)state;
	assert_int_equal(link_get(nl, "lo", &lo, &e), 0);
	link_set_up(nl, &lo);
	assert_int_equal(link_get_index(nl, 1, &lo, &e), 0);
	assert_true(lo.flags & IFF_UP);
	link_set_down(nl, &lo);
	assert_int_equal(rtnl_commit(nl, &e), 0);
	assert_int_equal(link_get(nl, "lo", &lo, &e), 0);
	assert_false(lo.flags & IFF_UP);
}

static void missing_link(void **state)
{
	AUTO(rtnl_close) struct rtnl *nl = test_rtnl();
	struct link link = { .index = 7 };
	struct hw_err e;

	(void)state;
	assert_int_equal(link_get(nl, "nosuch", &link, &e), -ENODEV);
	assert_string_equal(e.msg, "find link nosuch: No such device");
	assert_int_equal(link_get(nl, "a-name-that-is-much-too-long", &link, &e), -ENODEV);
	assert_int_equal(link_get_index(nl, 4711, &link, &e), -ENODEV);
	assert_int_equal(link.index, 7);
}

static void kind_of_a_veth(void **state)
{
	AUTO(rtnl_close) struct rtnl *nl = test_rtnl();
	struct link link;
	struct hw_err e;

	(void)state;
	test_put_veth(nl, "left", "right");
	assert_int_equal(rtnl_commit(nl, &e), 0);
	assert_int_equal(link_get(nl, "right", &link, &e), 0);
	assert_string_equal(link.kind, "veth");
	assert_int_equal(link.mac.len, 6);
	assert_int_equal(link.mtu, 1500);
}

static void write_disable_ipv6(const char *value)
{
	autoclose int fd = open("/proc/sys/net/ipv6/conf/lo/disable_ipv6", O_WRONLY | O_CLOEXEC);

	if (fd < 0) {
		print_message("the kernel has no IPv6 or its sysctls are read-only\n");
		skip();
	}
	assert_int_equal(write(fd, value, 1), 1);
}

static void ipv6_switch(void **state)
{
	AUTO(rtnl_close) struct rtnl *nl = test_rtnl();
	struct link lo;
	struct hw_err e;

	(void)state;
	write_disable_ipv6("1");
	assert_int_equal(link_get(nl, "lo", &lo, &e), 0);
	assert_false(lo.ipv6);
	write_disable_ipv6("0");
	assert_int_equal(link_get(nl, "lo", &lo, &e), 0);
	assert_true(lo.ipv6);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{ "link: lo of a new namespace is down and has a MAC of zeros",
		  lo_in_a_new_namespace },
		{ "link: a link can be set up and down", up_and_down },
		{ "link: a missing link is ENODEV and nothing is written", missing_link },
		{ "link: a veth says so", kind_of_a_veth },
		{ "link: IPv6 switched off on the link is seen", ipv6_switch },
	};

	return cmocka_run_group_tests_name("link", tests, test_enter, NULL);
}
