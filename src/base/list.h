/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/list.h - intrusive doubly linked list
 *
 *	struct item { struct list link; ... };
 *	struct list items = LIST_INIT(items);
 *	list_append(&items, &item->link);
 *	list_for_each(struct item, i, &items, link) ...
 */
#ifndef BASE_LIST_H
#define BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

struct list {
	struct list *next, *prev;
};

#define LIST_INIT(name)                                                                            \
	{                                                                                          \
		&(name), &(name)                                                                   \
	}
#define list_entry(p, type, member) ((type *)((char *)(p)-offsetof(type, member)))

static inline void list_init(struct list *l)
{
	l->next = l->prev = l;
}

static inline bool list_is_empty(const struct list *l)
{
	return l->next == l;
}

static inline void list_insert_before(struct list *at, struct list *item)
{
	item->next = at;
	item->prev = at->prev;
	at->prev->next = item;
	at->prev = item;
}

static inline void list_append(struct list *l, struct list *item)
{
	list_insert_before(l, item);
}

static inline void list_prepend(struct list *l, struct list *item)
{
	list_insert_before(l->next, item);
}

/* Removing an item twice is harmless. */
static inline void list_remove(struct list *item)
{
	item->prev->next = item->next;
	item->next->prev = item->prev;
	list_init(item);
}

#define list_for_each(type, var, head, member)                                                     \
	for (type *var = list_entry((head)->next, type, member); &var->member != (head);           \
	     var = list_entry(var->member.next, type, member))

/* The current entry may be removed and freed. */
#define list_for_each_safe(type, var, head, member)                                                \
	for (type *var = list_entry((head)->next, type, member),                                   \
		  *var##_next = list_entry(var->member.next, type, member);                        \
	     &var->member != (head);                                                               \
	     var = var##_next, var##_next = list_entry(var->member.next, type, member))

#endif
