/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pod/test-events.c - tests of pod/events.c
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the headers above */
#include <cmocka.h>

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "base/mem.h"
#include "base/str.h"
#include "pod/events.h"

#define RING 4096

static int alive; /* events that were not freed */

static void free_event(void *object)
{
	alive--;
	free(object);
}

static void add(struct events *events, int64_t time)
{
	struct event *event = mem_new(sizeof(*event));

	shared_init(&event->shared, free_event);
	event->time = time;
	alive++;
	events_add(events, event);
}

static struct event_reader *new_reader(struct events *events)
{
	struct event_reader *r = NULL;
	struct hw_err e = { 0 };

	assert_int_equal(event_reader_new(events, &r, &e), 0);
	return r;
}

static bool is_readable(const struct event_reader *r)
{
	struct pollfd fd = { .fd = event_reader_fd(r), .events = POLLIN };

	return poll(&fd, 1, 0) == 1;
}

static void assert_next(struct event_reader *r, int64_t time)
{
	AUTO(shared_unref) const struct event *event = NULL;
	struct hw_err e = { 0 };

	assert_int_equal(event_reader_next(r, &event, &e), 1);
	assert_int_equal(event->time, time);
}

static void assert_end(struct event_reader *r)
{
	const struct event *event;
	struct hw_err e = { 0 };

	assert_int_equal(event_reader_next(r, &event, &e), 0);
	assert_false(is_readable(r));
}

static void order(void **state)
{
	struct events *events = events_new();
	struct event_reader *first, *second;

	(void)state;
	assert_false(events_wanted(events));
	add(events, 1);
	first = new_reader(events);
	assert_true(events_wanted(events));
	assert_end(first); /* the event before the reader */
	add(events, 2);
	second = new_reader(events);
	add(events, 3);
	assert_true(is_readable(first));
	assert_next(first, 2);
	assert_next(second, 3);
	assert_end(second);
	assert_next(first, 3);
	assert_end(first);
	event_reader_free(first);
	event_reader_free(second);
	events_free(events);
	assert_int_equal(alive, 0);
}

static void overflow(void **state)
{
	struct events *events = events_new();
	struct event_reader *slow = new_reader(events), *quick = new_reader(events);
	const struct event *event;
	struct hw_err e = { 0 };

	(void)state;
	for (int i = 0; i < RING; i++) {
		add(events, i);
		assert_next(quick, i);
	}
	assert_next(slow, 0); /* just not too late */
	add(events, RING);
	assert_next(slow, 1);
	add(events, RING + 1);
	add(events, RING + 2);
	assert_int_equal(event_reader_next(slow, &event, &e), -EOVERFLOW);
	assert_string_equal(e.msg, "4097 events were missed: list pods and containers again");
	assert_end(slow);
	for (int i = RING; i <= RING + 2; i++)
		assert_next(quick, i);
	add(events, RING + 3);
	assert_next(slow, RING + 3);
	event_reader_free(slow);
	event_reader_free(quick);
	events_free(events);
	assert_int_equal(alive, 0);
}

static void no_descriptor(void **state)
{
	struct events *events = events_new();
	struct event_reader *r = NULL;
	struct rlimit before, none;
	struct hw_err e = { 0 };

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = (struct rlimit){ 0, before.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	assert_int_equal(event_reader_new(events, &r, &e), -EMFILE);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_null(r);
	assert_string_equal(e.msg, "read events: create an eventfd: Too many open files");
	assert_false(events_wanted(events));
	events_free(events);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{ "events: each reader gets all later events, in order", order, NULL, NULL, NULL },
		{ "events: only a reader that falls behind is told so", overflow, NULL, NULL,
		  NULL },
		{ "events: a reader for which no descriptor is left is an error", no_descriptor,
		  NULL, NULL, NULL },
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
