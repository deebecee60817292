/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/host-local/range.h - address ranges, range sets and address lists of host-local
 *
 * What:  a range is a part of a subnet. A range set is a list of ranges from
 *        which each attachment gets one address.
 * Rules: no I/O. Checks, defaults, the order of allocation and the error texts are
 *        the same as in upstream.
 */
#ifndef PLUGINS_HOST_LOCAL_RANGE_H
#define PLUGINS_HOST_LOCAL_RANGE_H

#include <stdbool.h>
#include <stddef.h>

#include <hawser/addr.h>

#include "base/err.h"
#include "base/mem.h"

struct range {
	struct hw_prefix subnet;
	struct hw_ip start, end; /* inclusive */
	struct hw_ip gateway;	 /* never allocated; may be outside the subnet */
};

struct range_set {
	struct range *v;
	size_t n;
};

/* Check a set, and set the defaults for missing start, end and gateway addresses of its ranges. */
int range_set_init(struct range_set *set, struct hw_err *e);
/* Do the sets have an address in common? */
bool range_set_overlaps(const struct range_set *a, const struct range_set *b);
/* Return: the range that contains the address, or NULL */
const struct range *range_set_find(const struct range_set *set, const struct hw_ip *ip);
/* Return: a text such as "A-B,C-D"; the caller frees it */
char *range_set_format(const struct range_set *set);

/* An iterator over all addresses of a set, except the gateways. After the last address it continues
 * with the first, until all were visited. */
struct range_walk {
	const struct range_set *set;
	size_t at; /* index of the range that contains cur */
	struct hw_ip cur, first;
};

/* Start a walk after @last, or at the first address if @last is not in the set. */
void range_walk_init(struct range_walk *w, const struct range_set *set, const struct hw_ip *last);
/* Move w->cur to the next address. Return: the range of that address, or NULL at the end of the
 * walk */
const struct range *range_walk_next(struct range_walk *w);

struct ip_list {
	struct hw_ip *v;
	size_t n, room;
};

void ip_list_add(struct ip_list *list, const struct hw_ip *ip);
void ip_list_sort(struct ip_list *list);
bool ip_list_has(const struct ip_list *list, const struct hw_ip *ip); /* the list must be sorted */
void ip_list_done(struct ip_list *list);

AUTO_VALUE_DEFINE(ip_list_done, struct ip_list);

#endif
