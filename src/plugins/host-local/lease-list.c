/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/host-local/lease-list.c - lists of addresses
 */
#include <stdlib.h>

#include "base/ip.h"
#include "plugins/host-local/lease.h"

static int compare(const void *a, const void *b)
{
	return ip_compare(a, b);
}

/**
 * lease_list_add() - append an address
 */
void lease_list_add(struct lease_list *list, const struct hw_ip *ip)
{
	if (list->n == list->room) {
		list->room = list->room ? 2 * list->room : 16;
		list->v = mem_resize(list->v, list->room, sizeof(*list->v));
	}
	list->v[list->n++] = *ip;
}

/**
 * lease_list_has() - is the address in the sorted list?
 */
bool lease_list_has(const struct lease_list *list, const struct hw_ip *ip)
{
	return list->n && bsearch(ip, list->v, list->n, sizeof(*list->v), compare);
}

/**
 * lease_list_sort() - bring a list into order
 */
void lease_list_sort(struct lease_list *list)
{
	if (list->n > 1)
		qsort(list->v, list->n, sizeof(*list->v), compare);
}

/**
 * lease_list_done() - free what the list holds
 */
void lease_list_done(struct lease_list *list)
{
	free(list->v);
	*list = (struct lease_list){ 0 };
}
