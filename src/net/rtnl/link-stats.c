/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/rtnl/link-stats.c - what the interfaces of a namespace have received and sent
 *
 * How:   a dump of all links. That is cheap in a pod's namespace, which has few.
 */
#include "net/rtnl/link-stats.h"

#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "net/rtnl/rtnl.h"

static void decode_traffic(const struct nlattr *attr, struct link_stats *s)
{
	struct rtnl_link_stats64 from = { 0 };
	size_t len = mnl_attr_get_payload_len(attr);

	/* newer kernels append members; older ones lack some at the end */
	memcpy(&from, mnl_attr_get_payload(attr), len < sizeof(from) ? len : sizeof(from));
	s->received = (struct link_traffic){ from.rx_bytes, from.rx_packets, from.rx_errors,
					     from.rx_dropped };
	s->sent = (struct link_traffic){ from.tx_bytes, from.tx_packets, from.tx_errors,
					 from.tx_dropped };
}

static int add_link(void *ctx, const struct nlmsghdr *answer, struct hw_err *e)
{
	const struct ifinfomsg *head = mnl_nlmsg_get_payload(answer);
	struct hw_list *list = ctx;
	const struct nlattr *attr;
	struct link_stats *s;

	(void)e;
	if (answer->nlmsg_type != RTM_NEWLINK || head->ifi_flags & IFF_LOOPBACK ||
	    list->n == LINK_STATS_MAX)
		return 0;
	list->v = s = mem_resize(list->v, list->n + 1, sizeof(*s));
	s += list->n++;
	*s = (struct link_stats){ .index = head->ifi_index };
	mnl_attr_for_each(attr, answer, sizeof(*head))
		switch (mnl_attr_get_type(attr)) {
		case IFLA_IFNAME:
			rtnl_attr_text(attr, s->name, sizeof(s->name));
			break;
		case IFLA_STATS64:
			decode_traffic(attr, s);
			break;
		}
	return 0;
}

static int compare_index(const void *a, const void *b)
{
	const struct link_stats *one = a, *other = b;

	return (one->index > other->index) - (one->index < other->index);
}

int link_stats_list(struct rtnl *nl, struct hw_list *ret_list, struct hw_err *e)
{
	struct ifinfomsg head = { .ifi_family = AF_UNSPEC };
	struct hw_list list = { 0 };
	int r;

	rtnl_put(nl, RTM_GETLINK, NLM_F_DUMP, &head, sizeof(head), "list interfaces");
	r = rtnl_query(nl, add_link, &list, e);
	if (r < 0) {
		free(list.v);
		return r;
	}
	if (list.n)
		qsort(list.v, list.n, sizeof(struct link_stats), compare_index);
	*ret_list = list;
	return 0;
}
