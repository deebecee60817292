/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pod/events.h - what happens to pods and containers, in order
 *
 * What:  a numbered ring of events, and readers with a cursor each. A pod is treated like a
 *        container: its events have its own ID.
 * Rules: events are in the order of the commits to the database. A writer never waits for a reader.
 *        A reader that falls behind by the size of the ring gets -EOVERFLOW, once, instead of a
 *        stream with gaps: it lists everything again.
 */
#ifndef POD_EVENTS_H
#define POD_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/shared.h"
#include "pod/containers.h"

/* The numbers are those of CRI. */
enum event_type { EVENT_CREATED, EVENT_STARTED, EVENT_STOPPED, EVENT_DELETED };

/* Immutable. */
struct event {
	struct shared shared;
	enum event_type type;
	char id[OBJECT_ID]; /* of the pod or container */
	int64_t time;	    /* ns since 1970 */
	/* the pod and all its containers, as they are after the event */
	const struct pod_view *pod;
	size_t n_containers;
	const struct container_view *containers[];
};

struct events;
struct event_reader;

struct events *events_new(void);
void events_free(struct events *events); /* there must be no reader; NULL is allowed */

/* Return: false if there is no reader: then events need not be added */
bool events_wanted(struct events *events);
/* Adds an event; takes over the reference. */
void events_add(struct events *events, struct event *event);

/* A reader gets the events from now on. */
int event_reader_new(struct events *events, struct event_reader **ret_reader, struct hw_err *e);
void event_reader_free(struct event_reader *r); /* NULL is allowed */
/* Becomes readable when there may be an event. */
int event_reader_fd(const struct event_reader *r);
/* Return: 1 with a reference to the next event; 0 if it has not happened yet; -EOVERFLOW if events
 * were lost, with their number in the message */
int event_reader_next(struct event_reader *r, const struct event **ret_event, struct hw_err *e);

AUTO_DEFINE(event_reader_free, struct event_reader);

#endif
