/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pod/events.c - what happens to pods and containers, in order
 */
#include "pod/events.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/list.h"

/* Each of 500 containers and its pod can be created, started, stopped and deleted before a reader
 * has read anything. */
#define RING 4096

struct events {
	pthread_mutex_t lock; /* held for a few instructions, and to wake readers */
	uint64_t next;	      /* number of the next event */
	const struct event *ring[RING];
	struct list readers;
};

struct event_reader {
	struct events *events;
	struct list link;
	int fd;		 /* eventfd */
	uint64_t cursor; /* number of the next event that it reads */
};

struct events *events_new(void)
{
	struct events *events = mem_new(sizeof(*events));

	pthread_mutex_init(&events->lock, NULL);
	list_init(&events->readers);
	return events;
}

void events_free(struct events *events)
{
	if (!events)
		return;
	for (size_t i = 0; i < RING; i++)
		shared_unref(events->ring[i]);
	pthread_mutex_destroy(&events->lock);
	free(events);
}

bool events_wanted(struct events *events)
{
	bool wanted;

	pthread_mutex_lock(&events->lock);
	wanted = !list_is_empty(&events->readers);
	pthread_mutex_unlock(&events->lock);
	return wanted;
}

void events_add(struct events *events, struct event *event)
{
	const struct event *old;

	pthread_mutex_lock(&events->lock);
	old = events->ring[events->next % RING];
	events->ring[events->next++ % RING] = event;
	list_for_each(struct event_reader, r, &events->readers, link)
		eventfd_write(r->fd, 1);
	pthread_mutex_unlock(&events->lock);
	shared_unref(old);
}

int event_reader_new(struct events *events, struct event_reader **ret_reader, struct hw_err *e)
{
	struct event_reader *r;
	int fd;

	fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (fd < 0)
		return err_set(e, -errno, "read events: create an eventfd");
	r = mem_new(sizeof(*r));
	r->events = events;
	r->fd = fd;
	pthread_mutex_lock(&events->lock);
	r->cursor = events->next;
	list_append(&events->readers, &r->link);
	pthread_mutex_unlock(&events->lock);
	*ret_reader = r;
	return 0;
}

void event_reader_free(struct event_reader *r)
{
	if (!r)
		return;
	pthread_mutex_lock(&r->events->lock);
	list_remove(&r->link);
	pthread_mutex_unlock(&r->events->lock);
	mem_close_fd(&r->fd);
	free(r);
}

int event_reader_fd(const struct event_reader *r)
{
	return r->fd;
}

int event_reader_next(struct event_reader *r, const struct event **ret_event, struct hw_err *e)
{
	struct events *events = r->events;
	uint64_t lost = 0;
	eventfd_t ignored;
	int found = 0;

	pthread_mutex_lock(&events->lock);
	if (events->next - r->cursor > RING) {
		lost = events->next - r->cursor;
		r->cursor = events->next;
	} else if (r->cursor < events->next) {
		*ret_event = shared_ref(events->ring[r->cursor++ % RING]);
		found = 1;
	} else {
		eventfd_read(r->fd, &ignored);
	}
	pthread_mutex_unlock(&events->lock);
	if (lost)
		return err_text(e, -EOVERFLOW,
				"%" PRIu64 " events were missed: list pods and containers again",
				lost);
	return found;
}
