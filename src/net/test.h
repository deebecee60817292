/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/test.h - what the unit tests of this folder share
 *
 * Every test program moves into a new network namespace of its own first; where
 * that is not allowed its tests are skipped.
 */
#ifndef NET_TEST_H
#define NET_TEST_H

#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the ones above */
#include <cmocka.h>

#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>

#include "net/rtnl.h"

static bool test_alone;

static int test_enter(void **state)
{
	(void)state;
	test_alone = unshare(CLONE_NEWNET) == 0;
	return 0;
}

/* The test ends here when it has no namespace of its own. */
static inline void test_require_netns(void)
{
	if (!test_alone) {
		print_message("not allowed to make a network namespace\n");
		skip();
	}
}

/* A socket in the namespace of the test. */
static inline struct rtnl *test_rtnl(void)
{
	struct rtnl *nl = NULL;
	struct hw_err e;

	test_require_netns();
	assert_int_equal(rtnl_open(-1, &nl, &e), 0);
	return nl;
}

/* Put "make the pair NAME and PEER" into the batch. */
static inline void test_put_veth(struct rtnl *nl, const char *name, const char *peer)
{
	struct ifinfomsg head = { 0 };
	struct nlmsghdr *m = rtnl_put(nl, RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, &head,
				      sizeof(head), "make link %s", name);
	struct nlattr *info, *data, *end;

	mnl_attr_put_strz(m, IFLA_IFNAME, name);
	info = mnl_attr_nest_start(m, IFLA_LINKINFO);
	mnl_attr_put_strz(m, IFLA_INFO_KIND, "veth");
	data = mnl_attr_nest_start(m, IFLA_INFO_DATA);
	end = mnl_attr_nest_start(m, VETH_INFO_PEER);
	mnl_nlmsg_put_extra_header(m, sizeof(struct ifinfomsg));
	mnl_attr_put_strz(m, IFLA_IFNAME, peer);
	mnl_attr_nest_end(m, end);
	mnl_attr_nest_end(m, data);
	mnl_attr_nest_end(m, info);
}

#endif
