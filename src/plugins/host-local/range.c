/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/host-local/range.c - address ranges, range sets and address lists of host-local
 */
#include "plugins/host-local/range.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/buf.h"
#include "base/ip.h"

static bool range_has(const struct range *r, const struct hw_ip *ip)
{
	return hw_prefix_contains(&r->subnet, ip) &&
	       (!r->start.family || ip_compare(ip, &r->start) >= 0) &&
	       (!r->end.family || ip_compare(ip, &r->end) <= 0);
}

static bool range_overlaps(const struct range *a, const struct range *b)
{
	return range_has(a, &b->start) || range_has(a, &b->end) || range_has(b, &a->start) ||
	       range_has(b, &a->end);
}

static void range_print(const struct range *r, struct buf *b)
{
	char start[HW_IP_TEXT], end[HW_IP_TEXT];

	buf_printf(b, "%s-%s", hw_ip_format(&r->start, start), hw_ip_format(&r->end, end));
}

static int range_check_bound(const struct range *r, const char *name, const struct hw_ip *bound,
			     struct hw_err *e)
{
	char text[HW_IP_TEXT], network[HW_PREFIX_TEXT];

	if (range_has(r, bound))
		return 0;
	return err_text(e, -EINVAL, "%s %s not in network %s", name, hw_ip_format(bound, text),
			hw_prefix_format(&r->subnet, network));
}

static int range_init(struct range *r, struct hw_err *e)
{
	struct hw_ip first, network = prefix_network(&r->subnet);
	char text[HW_PREFIX_TEXT];
	int ret = 0;

	if (!r->subnet.ip.family)
		return err_text(e, -EINVAL, "IP <nil> not v4 nor v6");
	if (r->subnet.len + 2u > ip_bits(&r->subnet.ip))
		return err_text(e, -EINVAL, "Network %s too small to allocate from",
				hw_prefix_format(&r->subnet, text));
	if (!hw_ip_equal(&r->subnet.ip, &network))
		return err_text(e, -EINVAL,
				"Network has host bits set. For a subnet mask of length %d the "
				"network address is %s",
				r->subnet.len, hw_ip_format(&network, text));
	ip_next(&r->subnet.ip, &first); /* cannot fail: the subnet has at least four addresses */
	if (!r->gateway.family)
		r->gateway = first;
	if (r->start.family)
		ret = range_check_bound(r, "RangeStart", &r->start, e);
	else
		r->start = first;
	if (ret < 0)
		return ret;
	if (r->end.family)
		return range_check_bound(r, "RangeEnd", &r->end, e);
	r->end = prefix_last(&r->subnet);
	if (r->end.family == AF_INET) /* the last address is the broadcast address */
		ip_prev(&r->end, &r->end);
	return 0;
}

int range_set_init(struct range_set *set, struct hw_err *e)
{
	if (set->n == 0)
		return err_text(e, -EINVAL, "empty range set");
	for (size_t i = 0; i < set->n; i++) {
		int r;

		r = range_init(&set->v[i], e);
		if (r < 0)
			return r;
		if (set->v[i].start.family != set->v[0].start.family)
			return err_text(e, -EINVAL, "mixed address families");
	}
	for (size_t i = 0; i < set->n; i++)
		for (size_t j = i + 1; j < set->n; j++) {
			AUTO(buf_done) struct buf a = { 0 }, b = { 0 };

			if (!range_overlaps(&set->v[i], &set->v[j]))
				continue;
			range_print(&set->v[i], &a);
			range_print(&set->v[j], &b);
			return err_text(e, -EINVAL, "subnets %s and %s overlap", a.data, b.data);
		}
	return 0;
}

bool range_set_overlaps(const struct range_set *a, const struct range_set *b)
{
	for (size_t i = 0; i < a->n; i++)
		for (size_t j = 0; j < b->n; j++)
			if (range_overlaps(&a->v[i], &b->v[j]))
				return true;
	return false;
}

const struct range *range_set_find(const struct range_set *set, const struct hw_ip *ip)
{
	for (size_t i = 0; i < set->n; i++)
		if (range_has(&set->v[i], ip))
			return &set->v[i];
	return NULL;
}

char *range_set_format(const struct range_set *set)
{
	AUTO(buf_done) struct buf b = { 0 };

	for (size_t i = 0; i < set->n; i++) {
		if (i > 0)
			buf_putc(&b, ',');
		range_print(&set->v[i], &b);
	}
	return buf_take(&b);
}

void range_walk_init(struct range_walk *w, const struct range_set *set, const struct hw_ip *last)
{
	const struct range *r = range_set_find(set, last);

	*w = (struct range_walk){ .set = set };
	if (r) {
		w->at = (size_t)(r - set->v);
		w->cur = *last;
	}
}

const struct range *range_walk_next(struct range_walk *w)
{
	for (;;) {
		const struct range *r = &w->set->v[w->at];

		if (w->cur.family && ip_compare(&w->cur, &r->end) < 0) {
			ip_next(&w->cur, &w->cur);
		} else {
			if (w->cur.family)
				w->at = (w->at + 1) % w->set->n;
			r = &w->set->v[w->at];
			w->cur = r->start;
		}
		if (!w->first.family)
			w->first = w->cur;
		else if (hw_ip_equal(&w->cur, &w->first))
			return NULL;
		if (!hw_ip_equal(&w->cur, &r->gateway))
			return r;
	}
}

/* ---- address lists ------------------------------------------------------------- */

static int compare_ips(const void *a, const void *b)
{
	return ip_compare(a, b);
}

void ip_list_add(struct ip_list *list, const struct hw_ip *ip)
{
	if (list->n == list->room) {
		list->room = list->room ? 2 * list->room : 16;
		list->v = mem_resize(list->v, list->room, sizeof(*list->v));
	}
	list->v[list->n++] = *ip;
}

bool ip_list_has(const struct ip_list *list, const struct hw_ip *ip)
{
	return list->n && bsearch(ip, list->v, list->n, sizeof(*list->v), compare_ips);
}

void ip_list_sort(struct ip_list *list)
{
	if (list->n > 1)
		qsort(list->v, list->n, sizeof(*list->v), compare_ips);
}

void ip_list_done(struct ip_list *list)
{
	free(list->v);
	*list = (struct ip_list){ 0 };
}
