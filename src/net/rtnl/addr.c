/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/rtnl/addr.c - addresses of a link
 *
 * How:   addresses are listed with a dump that the kernel filters by link and family.
 */
#include "net/rtnl/addr.h"

#include <linux/if_addr.h>
#include <linux/rtnetlink.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/ip.h"
#include "net/rtnl/link.h"
#include "net/rtnl/rtnl.h"

void addr_decode_ip(const struct nlattr *attr, uint8_t family, struct hw_ip *ret_ip)
{
	size_t len = family == AF_INET ? 4 : 16;

	if (mnl_attr_get_payload_len(attr) != len)
		return;
	*ret_ip = (struct hw_ip){ .family = family };
	memcpy(ret_ip->bytes, mnl_attr_get_payload(attr), len);
}

/* IFA_LOCAL is the link's own address. IFA_ADDRESS is the address of the peer, or the same as
 * IFA_LOCAL if there is no peer. An IPv6 address without a peer has only IFA_ADDRESS. */
static int addr_collect(void *ctx, const struct nlmsghdr *answer, struct hw_err *e)
{
	const struct ifaddrmsg *head = mnl_nlmsg_get_payload(answer);
	struct addr a = { .prefix.len = head->ifa_prefixlen, .scope = head->ifa_scope };
	struct hw_ip local = { 0 };
	struct addr_list *list = ctx;
	const struct nlattr *attr;

	(void)e;
	if (answer->nlmsg_type != RTM_NEWADDR)
		return 0;
	mnl_attr_for_each(attr, answer, sizeof(*head)) {
		switch (mnl_attr_get_type(attr)) {
		case IFA_ADDRESS:
			addr_decode_ip(attr, head->ifa_family, &a.prefix.ip);
			break;
		case IFA_LOCAL:
			addr_decode_ip(attr, head->ifa_family, &local);
			break;
		case IFA_FLAGS:
			if (mnl_attr_validate(attr, MNL_TYPE_U32) >= 0)
				a.flags = mnl_attr_get_u32(attr);
			break;
		}
	}
	if (local.family)
		a.prefix.ip = local;
	list->v = mem_resize(list->v, list->n + 1, sizeof(*list->v));
	list->v[list->n++] = a;
	return 0;
}

int addr_get(struct rtnl *nl, const struct link *link, int family, struct addr_list *ret_list,
	     struct hw_err *e)
{
	struct ifaddrmsg head = { .ifa_family = family, .ifa_index = link->index };
	AUTO(addr_list_done) struct addr_list list = { 0 };
	int r;

	rtnl_put(nl, RTM_GETADDR, NLM_F_DUMP, &head, sizeof(head), "list addresses of %s",
		 link->name);
	r = rtnl_query(nl, addr_collect, &list, e);
	if (r < 0)
		return r;
	*ret_list = list;
	list = (struct addr_list){ 0 };
	return 0;
}

bool addr_list_has(const struct addr_list *list, const struct hw_prefix *prefix)
{
	for (size_t i = 0; i < list->n; i++)
		if (hw_prefix_equal(&list->v[i].prefix, prefix))
			return true;
	return false;
}

void addr_list_done(struct addr_list *list)
{
	free(list->v);
	*list = (struct addr_list){ 0 };
}

static struct nlmsghdr *addr_put(struct rtnl *nl, const struct link *link,
				 const struct hw_prefix *prefix, uint16_t type, uint16_t flags)
{
	size_t len = ip_bits(&prefix->ip) / 8;
	struct ifaddrmsg head = { .ifa_family = prefix->ip.family,
				  .ifa_prefixlen = prefix->len,
				  .ifa_index = link->index };
	char text[HW_PREFIX_TEXT];
	struct nlmsghdr *m =
		rtnl_put(nl, type, flags, &head, sizeof(head), "failed to %s IP addr %s %s \"%s\"",
			 type == RTM_NEWADDR ? "add" : "delete", hw_prefix_format(prefix, text),
			 type == RTM_NEWADDR ? "to" : "from", link->name);

	mnl_attr_put(m, IFA_LOCAL, len, prefix->ip.bytes);
	mnl_attr_put(m, IFA_ADDRESS, len, prefix->ip.bytes);
	return m;
}

void addr_put_add(struct rtnl *nl, const struct link *link, const struct hw_prefix *prefix,
		  uint32_t flags)
{
	struct nlmsghdr *m = addr_put(nl, link, prefix, RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL);

	if (prefix->ip.family == AF_INET && prefix->len < 31) {
		struct hw_ip last = prefix_last(prefix);

		mnl_attr_put(m, IFA_BROADCAST, 4, last.bytes);
	}
	if (flags)
		mnl_attr_put_u32(m, IFA_FLAGS, flags);
}

void addr_put_del(struct rtnl *nl, const struct link *link, const struct hw_prefix *prefix)
{
	addr_put(nl, link, prefix, RTM_DELADDR, 0);
}
