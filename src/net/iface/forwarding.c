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

/* The settings that are needed and known to be on, by family */
struct forwarding {
	int family;
	bool needed, on;
	const char *name;
};

static int decode_forwarding(void *ctx, const struct nlmsghdr *answer, struct hw_err *e)
{
	const struct netconfmsg *head = mnl_nlmsg_get_payload(answer);
	const struct nlattr *attr;
	struct forwarding *v = ctx;

	(void)e;
	mnl_attr_for_each(attr, answer, sizeof(*head))
		if (mnl_attr_get_type(attr) == NETCONFA_FORWARDING)
			v[head->ncm_family == AF_INET6].on = rtnl_attr_number(attr) != 0;
	return 0;
}

int forwarding_enable(struct rtnl *nl, const struct hw_result *result, struct hw_err *e)
{
	struct forwarding v[] = { { .family = AF_INET, .name = "IPv4" },
				  { .family = AF_INET6, .name = "IPv6" } };
	struct hw_err ignored;
	int ret = 1, r;

	for (size_t i = 0; i < result->n_ips; i++)
		v[result->ips[i].address.ip.family == AF_INET6].needed = true;
	for (size_t i = 0; i < ARRAY_SIZE(v); i++) {
		struct netconfmsg head = { .ncm_family = (uint8_t)v[i].family };

		if (v[i].needed)
			mnl_attr_put_u32(rtnl_put(nl, RTM_GETNETCONF, 0, &head, sizeof(head),
						  "read the forwarding setting"),
					 NETCONFA_IFINDEX, (uint32_t)NETCONFA_IFINDEX_ALL);
	}
	/* If the query fails, writing the sysctl gives a better error. */
	(void)rtnl_query(nl, decode_forwarding, v, &ignored);
	for (size_t i = 0; i < ARRAY_SIZE(v); i++) {
		if (!v[i].needed || v[i].on)
			continue;
		r = v[i].family == AF_INET
			    ? sysctl_write(-1, "net/ipv4/ip_forward", "1", e)
			    : sysctl_write_conf(-1, AF_INET6, "all", "forwarding", "1", e);
		if (r < 0)
			return err_ctx(e, "enable %s forwarding", v[i].name);
		ret = 0;
	}
	return ret;
}
