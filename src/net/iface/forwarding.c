/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/iface/forwarding.c - enable IP forwarding on the host
 */
#include "net/iface/forwarding.h"

#include <errno.h>
#include <linux/netconf.h>
#include <linux/rtnetlink.h>
#include <stdbool.h>
#include <sys/socket.h>

#include "net/rtnl/rtnl.h"
#include "net/sysctl.h"

static int decode_forwarding(void *ctx, const struct nlmsghdr *answer, struct hw_err *e)
{
	const struct nlattr *attr;
	bool *on = ctx;

	(void)e;
	mnl_attr_for_each(attr, answer, sizeof(struct netconfmsg))
		if (mnl_attr_get_type(attr) == NETCONFA_FORWARDING)
			*on = rtnl_attr_number(attr) != 0;
	return 0;
}

int forwarding_enable(struct rtnl *nl, int family, struct hw_err *e)
{
	struct netconfmsg head = { .ncm_family = (uint8_t)family };
	struct hw_err ignored;
	struct nlmsghdr *m;
	bool on = false;
	int r;

	m = rtnl_put(nl, RTM_GETNETCONF, 0, &head, sizeof(head), "read the forwarding setting");
	mnl_attr_put_u32(m, NETCONFA_IFINDEX, (uint32_t)NETCONFA_IFINDEX_ALL);
	/* If the query fails, writing the sysctl gives a better error. */
	if (rtnl_query(nl, decode_forwarding, &on, &ignored) >= 0 && on)
		return 1;
	r = family == AF_INET ? sysctl_write(-1, "net/ipv4/ip_forward", "1", e)
			      : sysctl_write_conf(-1, AF_INET6, "all", "forwarding", "1", e);
	return r < 0 ? err_ctx(e, "enable %s forwarding", family == AF_INET ? "IPv4" : "IPv6") : r;
}
