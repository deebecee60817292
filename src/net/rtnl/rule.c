/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/rtnl/rule.c - policy routing rules, which select the routing table for a packet
 *
 * How:   the kernel cannot filter a dump of rules by table, so that is done here;
 *        there are only a few rules.
 */
#include "net/rtnl/rule.h"

#include <linux/fib_rules.h>
#include <linux/rtnetlink.h>
#include <stdlib.h>

#include "base/ip.h"
#include "net/rtnl/addr.h"
#include "net/rtnl/rtnl.h"

static void rule_put_prefix(struct nlmsghdr *m, uint16_t type, const struct hw_prefix *prefix)
{
	struct hw_ip network = prefix_network(prefix);

	if (prefix->ip.family)
		mnl_attr_put(m, type, ip_bits(&network) / 8, network.bytes);
}

static void rule_put(struct rtnl *nl, uint16_t type, uint16_t flags, const struct rule *rule)
{
	struct fib_rule_hdr head = { .family = rule->family,
				     .src_len = rule->src.len,
				     .dst_len = rule->dst.len,
				     .action = FR_ACT_TO_TBL };
	char src[HW_PREFIX_TEXT];
	struct nlmsghdr *m = rtnl_put(
		nl, type, flags, &head, sizeof(head), "failed to %s rule 'from %s lookup %u'",
		type == RTM_NEWRULE ? "add" : "delete",
		rule->src.ip.family ? hw_prefix_format(&rule->src, src) : "all", rule->table);

	rule_put_prefix(m, FRA_SRC, &rule->src);
	rule_put_prefix(m, FRA_DST, &rule->dst);
	if (rule->iif[0])
		mnl_attr_put_strz(m, FRA_IIFNAME, rule->iif);
	if (rule->mark_mask) {
		mnl_attr_put_u32(m, FRA_FWMARK, rule->mark);
		mnl_attr_put_u32(m, FRA_FWMASK, rule->mark_mask);
	}
	if (rule->priority)
		mnl_attr_put_u32(m, FRA_PRIORITY, rule->priority);
	mnl_attr_put_u32(m, FRA_TABLE, rule->table);
	if (rule->proto)
		mnl_attr_put_u8(m, FRA_PROTOCOL, rule->proto);
}

void rule_put_add(struct rtnl *nl, const struct rule *rule)
{
	rule_put(nl, RTM_NEWRULE, NLM_F_CREATE | NLM_F_EXCL, rule);
}

void rule_put_del(struct rtnl *nl, const struct rule *rule)
{
	rule_put(nl, RTM_DELRULE, 0, rule);
}

static void rule_decode_attr(const struct nlattr *attr, struct rule *rule)
{
	switch (mnl_attr_get_type(attr)) {
	case FRA_SRC:
		addr_decode_ip(attr, rule->family, &rule->src.ip);
		break;
	case FRA_DST:
		addr_decode_ip(attr, rule->family, &rule->dst.ip);
		break;
	case FRA_IIFNAME:
		rtnl_attr_text(attr, rule->iif, sizeof(rule->iif));
		break;
	case FRA_FWMARK:
		rule->mark = mnl_attr_get_u32(attr);
		break;
	case FRA_FWMASK:
		rule->mark_mask = mnl_attr_get_u32(attr);
		break;
	case FRA_PRIORITY:
		rule->priority = mnl_attr_get_u32(attr);
		break;
	case FRA_TABLE:
		rule->table = mnl_attr_get_u32(attr);
		break;
	case FRA_PROTOCOL:
		rule->proto = mnl_attr_get_u8(attr);
		break;
	}
}

struct rule_filter {
	uint32_t table;
	struct rule_list list;
};

static int rule_collect(void *ctx, const struct nlmsghdr *answer, struct hw_err *e)
{
	const struct fib_rule_hdr *head = mnl_nlmsg_get_payload(answer);
	struct rule_filter *filter = ctx;
	struct rule_list *list = &filter->list;
	struct rule rule = { .family = head->family,
			     .src.len = head->src_len,
			     .dst.len = head->dst_len,
			     .table = head->table };
	const struct nlattr *attr;

	(void)e;
	if (answer->nlmsg_type != RTM_NEWRULE)
		return 0;
	mnl_attr_for_each(attr, answer, sizeof(*head))
		rule_decode_attr(attr, &rule);
	if (filter->table && rule.table != filter->table)
		return 0;
	list->v = mem_resize(list->v, list->n + 1, sizeof(*list->v));
	list->v[list->n++] = rule;
	return 0;
}

int rule_get(struct rtnl *nl, int family, uint32_t table, struct rule_list *ret_list,
	     struct hw_err *e)
{
	struct fib_rule_hdr head = { .family = family };
	struct rule_filter filter = { .table = table };
	int r;

	rtnl_put(nl, RTM_GETRULE, NLM_F_DUMP, &head, sizeof(head), "list routing rules");
	r = rtnl_query(nl, rule_collect, &filter, e);
	if (r < 0)
		rule_list_done(&filter.list);
	else
		*ret_list = filter.list;
	return r;
}

void rule_list_done(struct rule_list *list)
{
	free(list->v);
	*list = (struct rule_list){ 0 };
}
