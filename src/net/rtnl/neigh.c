/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/rtnl/neigh.c - neighbour entries: the MAC address of an IP address on a link
 *
 * How:   an entry is read with a request for this one entry, never with a dump.
 */
#include "net/rtnl/neigh.h"

#include <errno.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <string.h>

#include "base/ip.h"
#include "net/rtnl/addr.h"
#include "net/rtnl/link.h"
#include "net/rtnl/rtnl.h"

static struct nlmsghdr *neigh_put(struct rtnl *nl, uint16_t type, uint16_t flags,
				  const struct link *link, const struct neigh *neigh,
				  const char *verb)
{
	struct ndmsg head = { .ndm_family = neigh->ip.family,
			      .ndm_ifindex = link->index,
			      .ndm_state = neigh->state,
			      .ndm_flags = neigh->flags };
	char text[HW_IP_TEXT];
	struct nlmsghdr *m = rtnl_put(nl, type, flags, &head, sizeof(head), "%s neighbour %s of %s",
				      verb, hw_ip_format(&neigh->ip, text), link->name);

	mnl_attr_put(m, NDA_DST, ip_bits(&neigh->ip) / 8, neigh->ip.bytes);
	return m;
}

void neigh_put_add(struct rtnl *nl, const struct link *link, const struct neigh *neigh)
{
	struct neigh full = *neigh;
	struct nlmsghdr *m;

	if (full.state == 0)
		full.state = NUD_PERMANENT;
	m = neigh_put(nl, RTM_NEWNEIGH, NLM_F_CREATE | NLM_F_REPLACE, link, &full, "add");
	if (full.mac.len)
		mnl_attr_put(m, NDA_LLADDR, full.mac.len, full.mac.bytes);
}

void neigh_put_del(struct rtnl *nl, const struct link *link, const struct neigh *neigh)
{
	neigh_put(nl, RTM_DELNEIGH, 0, link, neigh, "delete");
}

static int neigh_decode(void *ctx, const struct nlmsghdr *answer, struct hw_err *e)
{
	const struct ndmsg *head = mnl_nlmsg_get_payload(answer);
	struct neigh *neigh = ctx;
	const struct nlattr *attr;

	(void)e;
	if (answer->nlmsg_type != RTM_NEWNEIGH)
		return 0;
	neigh->state = head->ndm_state;
	neigh->flags = head->ndm_flags;
	mnl_attr_for_each(attr, answer, sizeof(*head)) {
		size_t len = mnl_attr_get_payload_len(attr);

		if (mnl_attr_get_type(attr) == NDA_DST)
			addr_decode_ip(attr, head->ndm_family, &neigh->ip);
		if (mnl_attr_get_type(attr) == NDA_LLADDR && len <= sizeof(neigh->mac.bytes)) {
			neigh->mac.len = len;
			memcpy(neigh->mac.bytes, mnl_attr_get_payload(attr), len);
		}
	}
	return 0;
}

int neigh_get(struct rtnl *nl, const struct link *link, const struct hw_ip *ip, uint8_t flags,
	      struct neigh *ret_neigh, struct hw_err *e)
{
	struct neigh found = { .ip = *ip, .flags = flags };
	int r;

	neigh_put(nl, RTM_GETNEIGH, 0, link, &found, "find");
	r = rtnl_query(nl, neigh_decode, &found, e);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	*ret_neigh = found;
	return 1;
}
