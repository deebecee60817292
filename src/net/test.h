/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/test.h - helpers for the unit tests in this folder
 *
 * Every test program first moves into a new network namespace; if that is not
 * permitted, its tests are skipped.
 */
#ifndef NET_TEST_H
#define NET_TEST_H

#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the headers above */
#include <cmocka.h>

#include <fcntl.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>

#include <hawser/addr.h>

#include "net/netns.h"
#include "net/rtnl/link.h"
#include "net/rtnl/rtnl.h"

static bool test_has_netns;

static int test_enter(void **state)
{
	(void)state;
	test_has_netns = unshare(CLONE_NEWNET) == 0;
	return 0;
}

/* Skips the test if the test program could not create its own network namespace. */
static inline void test_require_netns(void)
{
	if (!test_has_netns) {
		print_message("not permitted to create a network namespace\n");
		skip();
	}
}

/* Opens a socket in the test's namespace. */
static inline struct rtnl *test_rtnl(void)
{
	struct rtnl *nl = NULL;
	struct hw_err e;

	test_require_netns();
	assert_int_equal(rtnl_open(-1, &nl, &e), 0);
	return nl;
}

/* Adds a request that creates a veth pair to the batch. */
static inline void test_put_veth(struct rtnl *nl, const char *name, const char *peer)
{
	struct link_new other = { .name = peer };
	struct link_new pair = { .name = name, .kind = "veth", .peer = &other };

	link_put_new(nl, &pair);
}

/* Creates a namespace, which exists until its descriptor is closed; the caller does not move into
 * it. */
static inline int test_new_netns(void)
{
	AUTO(netns_leave) struct netns_home home = NETNS_HOME;
	int fd;

	test_require_netns();
	home.fd = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
	assert_true(home.fd >= 0);
	assert_int_equal(unshare(CLONE_NEWNET), 0);
	fd = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	return fd;
}

/* Reads a link, which must exist. */
static inline struct link test_link(struct rtnl *nl, const char *name)
{
	struct link link;
	struct hw_err e;

	assert_int_equal(link_get(nl, name, &link, &e), 0);
	return link;
}

/* Commits the batch; if that fails, the test fails and shows the error text. */
static inline void test_commit(struct rtnl *nl)
{
	struct hw_err e = { 0 };

	rtnl_commit(nl, &e);
	assert_string_equal(e.msg, "");
}

/* Creates a veth pair with both ends up and in the test's namespace. Return: the first end */
static inline struct link test_pair(struct rtnl *nl, const char *name, const char *peer)
{
	struct link link, other;

	test_put_veth(nl, name, peer);
	test_commit(nl);
	link = test_link(nl, name);
	other = test_link(nl, peer);
	link_set_up(nl, &link);
	link_set_up(nl, &other);
	test_commit(nl);
	return test_link(nl, name);
}

static inline struct hw_prefix test_prefix(const char *text)
{
	struct hw_prefix prefix = { 0 };
	struct hw_err e;

	assert_int_equal(hw_prefix_parse(text, &prefix, &e), 0);
	return prefix;
}

static inline struct hw_ip test_ip(const char *text)
{
	struct hw_ip ip = { 0 };
	struct hw_err e;

	assert_int_equal(hw_ip_parse(text, &ip, &e), 0);
	return ip;
}

#endif
