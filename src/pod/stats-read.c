/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pod/stats-read.c - reads cgroups that may not answer
 *
 * How:   the reader takes the lock only between two items. It stores a result if it still is the current
 *        reader of the list. The caller is not woken for each item: it sleeps until the list is read, or
 *        the current item has taken too long.
 */
#include "pod/stats-read.h"

#include <errno.h>
#include <linux/close_range.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/log.h"
#include "base/map.h"
#include "base/os/thread.h"
#include "base/time.h"

struct readers {
	struct shared shared;
	struct cgroup_fs *fs;
	read_item_fn *read;
	int limit_ms;
	pthread_mutex_t lock;
	pthread_cond_t changed; /* a list was read, or .cancelled */
	struct map *stuck;	/* IDs of items whose reader has not returned */
	bool cancelled;
};

/* The argument of a reader. */
struct reader {
	struct read_list *list;
	unsigned number;
};

/* ---- the reader --------------------------------------------------------------------- */

/* Return: the next item to read; NULL: none, or another reader works. The caller holds the lock. */
static struct read_item *next_item(const struct reader *reader)
{
	struct read_list *list = reader->list;

	if (list->current != reader->number)
		return NULL;
	while (list->at < list->end && map_find(list->readers->stuck, list->items[list->at].id))
		list->at++;
	if (list->at >= list->end) {
		pthread_cond_broadcast(&list->readers->changed);
		return NULL;
	}
	list->since = time_now();
	return &list->items[list->at];
}

/* An item was read. The caller holds the lock. */
static void store(const struct reader *reader, struct read_item *item, struct stats *result)
{
	struct read_list *list = reader->list;

	if (list->current == reader->number) {
		item->result = *result;
		list->at++;
		return;
	}
	stats_done(result);
	if (map_take(list->readers->stuck, item->id))
		log_event(LOG_INFO, "statistics can be read again", "id", item->id, NULL);
}

/* A reader uses no descriptor of the daemon. So if it hangs when the daemon is killed, the locks and sockets
 * are released, and the next daemon can start. TSan expects that threads share their descriptors. */
static void drop_descriptors(void)
{
#ifndef __SANITIZE_THREAD__
	close_range(STDERR_FILENO + 1, ~0U, CLOSE_RANGE_UNSHARE);
#endif
}

static void *read_items(void *arg)
{
	struct reader *reader = arg;
	struct readers *r = shared_ref(reader->list->readers);
	struct read_item *item;
	struct stats result;

	drop_descriptors();
	pthread_mutex_lock(&r->lock);
	while ((item = next_item(reader))) {
		pthread_mutex_unlock(&r->lock);
		r->read(r->fs, item, &result);
		pthread_mutex_lock(&r->lock);
		store(reader, item, &result);
	}
	pthread_mutex_unlock(&r->lock);
	shared_unref(reader->list);
	free(reader);
	shared_unref(r);
	return NULL;
}

/* Starts a reader, which continues with item .at. The caller holds the lock. */
static int start_reader(struct read_list *list, struct hw_err *e)
{
	struct reader *reader = mem_new(sizeof(*reader));
	int r;

	*reader = (struct reader){ shared_ref(list), ++list->current };
	list->since = 0;
	r = thread_start(read_items, reader, NULL, e);
	if (r < 0) {
		shared_unref(list);
		free(reader);
	}
	return r;
}

/* The current item is stuck: abandons its reader. The caller holds the lock. */
static int give_up_item(struct read_list *list, struct hw_err *e)
{
	const char *id = list->items[list->at++].id;
	struct readers *r = list->readers;

	if (!map_find(r->stuck, id))
		log_event(LOG_WARN, "statistics cannot be read: no answer from the kernel", "id",
			  id, NULL);
	map_set(r->stuck, id, r);
	if (map_count(r->stuck) >= READERS_STUCK_MAX)
		list->end = list->at;
	list->current++;
	return list->at < list->end ? start_reader(list, e) : 0;
}

/* Waits until all items were read. The caller holds the lock. */
static int wait_for_items(struct read_list *list, int64_t deadline, struct hw_err *e)
{
	struct readers *readers = list->readers;
	int r = 0;

	while (r == 0 && list->at < list->end) {
		int64_t limit = list->since ? list->since + (int64_t)readers->limit_ms * 1000000
					    : time_deadline(readers->limit_ms);

		if (readers->cancelled)
			return err_text(e, -ECANCELED, "statistics: the daemon ends");
		if (list->since && time_has_passed(limit)) {
			r = give_up_item(list, e);
			continue;
		}
		if (time_has_passed(deadline)) /* the item that is being read is the last one */
			list->end = list->since ? list->at + 1 : list->at;
		else
			limit = time_earlier(limit, deadline);
		if (list->at < list->end)
			cond_wait_until(&readers->changed, &readers->lock, limit);
	}
	if (r == 0 && list->end < list->n && time_has_passed(deadline))
		return err_text(e, -ETIMEDOUT, "statistics: timed out");
	return r;
}

int stats_read(struct read_list *list, int64_t deadline, struct hw_err *e)
{
	struct readers *readers = list->readers;
	int r = 0;

	pthread_mutex_lock(&readers->lock);
	list->at = 0;
	list->end = map_count(readers->stuck) < READERS_STUCK_MAX ? list->n : 0;
	if (list->end)
		r = start_reader(list, e);
	if (r == 0)
		r = wait_for_items(list, deadline, e);
	list->current++; /* a reader that still works does not touch the list any more */
	pthread_mutex_unlock(&readers->lock);
	return r;
}

/* ---- lists and readers -------------------------------------------------------------- */

static void list_free(void *object)
{
	struct read_list *list = object;

	for (size_t i = 0; i < list->n; i++)
		stats_done(&list->items[i].result);
	shared_unref(list->readers);
	arena_done(&list->arena);
	free(list);
}

struct read_list *read_list_new(struct readers *r, size_t n)
{
	struct read_list *list = mem_new(sizeof(*list));

	shared_init(&list->shared, list_free);
	list->readers = shared_ref(r);
	list->n = n;
	list->items = arena_new(&list->arena, n * sizeof(*list->items));
	for (size_t i = 0; i < n; i++)
		stats_init(&list->items[i].result);
	return list;
}

static void readers_free(void *object)
{
	struct readers *r = object;

	cgroup_fs_free(r->fs);
	map_free(r->stuck);
	pthread_cond_destroy(&r->changed);
	pthread_mutex_destroy(&r->lock);
	free(r);
}

struct readers *readers_new(struct cgroup_fs *fs, read_item_fn *read, int limit_ms)
{
	struct readers *r = mem_new(sizeof(*r));

	shared_init(&r->shared, readers_free);
	r->fs = fs;
	r->read = read;
	r->limit_ms = limit_ms;
	r->stuck = map_new(NULL);
	pthread_mutex_init(&r->lock, NULL);
	cond_init(&r->changed);
	return r;
}

void readers_cancel(struct readers *r)
{
	pthread_mutex_lock(&r->lock);
	r->cancelled = true;
	pthread_cond_broadcast(&r->changed);
	pthread_mutex_unlock(&r->lock);
}
