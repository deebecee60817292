/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/host-local/range.h - the address ranges of host-local
 *
 * What:  a range is a part of a subnet, a set of ranges gives one address to
 *        each attachment. Checked, filled in and walked as upstream does.
 * Rules: plain values without I/O. The texts of errors are upstream's.
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
	struct hw_ip gateway;	 /* never handed out; need not be inside */
};

struct range_set {
	struct range *v;
	size_t n;
};

/* Check a set, and fill in what its ranges leave out. */
int range_set_init(struct range_set *set, struct hw_err *e);
bool range_set_overlaps(const struct range_set *a, const struct range_set *b);
const struct range *range_set_find(const struct range_set *set, const struct hw_ip *ip);
char *range_set_format(const struct range_set *set); /* "A-B,C-D" */

/* A walk over all addresses of a set but the gateways, round and round from one to itself. */
struct range_walk {
	const struct range_set *set;
	size_t at; /* the range of cur */
	struct hw_ip cur, first;
};

/* Begins after @last, or at the beginning where @last is not of the set. */
void range_walk_init(struct range_walk *w, const struct range_set *set, const struct hw_ip *last);
/* The range of the next address, which is w->cur; NULL when all have been seen. */
const struct range *range_walk_next(struct range_walk *w);

struct ip_list {
	struct hw_ip *v;
	size_t n, room;
};

void ip_list_add(struct ip_list *list, const struct hw_ip *ip);
bool ip_list_has(const struct ip_list *list, const struct hw_ip *ip); /* sorted */
void ip_list_sort(struct ip_list *list);
void ip_list_done(struct ip_list *list);

AUTO_VALUE_DEFINE(ip_list_done, struct ip_list);

#endif
