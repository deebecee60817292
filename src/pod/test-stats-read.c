/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pod/test-stats-read.c - lists of items that may not answer
 *
 * How:   a reader hangs in an item whose .pid is HANGS until the test lets it continue.
 */
#include "pod/stats-read.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the headers above */
#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <stdio.h>

#include "base/os/thread.h"
#include "base/str.h"
#include "base/time.h"

#define HANGS	 -1
#define LIMIT_MS 1000 /* no other item takes so long */
#define SHORT_MS 20   /* for tests in which all items hang */
#define LONG_MS	 60000

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed;
static bool hanging;	   /* readers hang */
static unsigned n_hanging; /* readers that hang now */
static unsigned n_read;	   /* items that were read, or are being read */

static void read_or_hang(const struct cgroup_fs *fs, const struct read_item *item,
			 struct stats *ret)
{
	(void)fs;
	stats_init(ret);
	pthread_mutex_lock(&lock);
	n_read++;
	n_hanging++;
	pthread_cond_broadcast(&changed);
	while (item->pid == HANGS && hanging)
		pthread_cond_wait(&changed, &lock);
	n_hanging--;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
	ret->time = item->pid;
}

static void let_continue(void)
{
	pthread_mutex_lock(&lock);
	hanging = false;
	pthread_cond_broadcast(&changed);
	while (n_hanging)
		assert_true(cond_wait_until(&changed, &lock, time_deadline(LONG_MS)));
	pthread_mutex_unlock(&lock);
}

static unsigned count_reads(void)
{
	unsigned n;

	pthread_mutex_lock(&lock);
	n = n_read;
	pthread_mutex_unlock(&lock);
	return n;
}

static int setup(void **state)
{
	hanging = true;
	n_read = 0;
	*state = readers_new(NULL, read_or_hang, LIMIT_MS);
	return 0;
}

static int teardown(void **state)
{
	let_continue();
	shared_unref(*state);
	return 0;
}

/* @hangs: which item hangs; -1: none */
static struct read_list *make_list(struct readers *r, size_t n, int hangs)
{
	struct read_list *list = read_list_new(r, n);

	for (size_t i = 0; i < n; i++) {
		autofree char *id = str_printf("item%zu", i);

		list->items[i].id = arena_copy(&list->arena, id);
		list->items[i].pid = (int)i == hangs ? HANGS : (int)i + 1;
	}
	return list;
}

static void read_list(struct read_list *list)
{
	struct hw_err e;

	if (stats_read(list, TIME_NEVER, &e) < 0)
		fail_msg("%s", e.msg);
}

/* The reader of the item that was stuck returns soon. */
static void read_until_known(struct read_list *list, size_t item)
{
	int64_t deadline = time_deadline(LONG_MS);

	do {
		assert_false(time_has_passed(deadline));
		read_list(list);
	} while (list->items[item].result.time == 0);
}

static void all_are_read(void **state)
{
	AUTO(shared_unref) struct read_list *list = make_list(*state, 100, -1);
	AUTO(shared_unref) struct read_list *empty = make_list(*state, 0, -1);

	read_list(list);
	for (size_t i = 0; i < list->n; i++)
		assert_int_equal(list->items[i].result.time, i + 1);
	read_list(empty);
}

static void a_stuck_item_costs_its_own_values(void **state)
{
	AUTO(shared_unref) struct read_list *first = make_list(*state, 5, 2);
	AUTO(shared_unref) struct read_list *second = make_list(*state, 5, 2);
	AUTO(shared_unref) struct read_list *third = make_list(*state, 5, -1);

	read_list(first);
	for (size_t i = 0; i < first->n; i++)
		assert_int_equal(first->items[i].result.time, i == 2 ? 0 : i + 1);
	assert_int_equal(count_reads(), 5);
	/* it is not read while its reader hangs */
	read_list(second);
	assert_int_equal(count_reads(), 9);
	assert_int_equal(second->items[2].result.time, 0);
	let_continue();
	/* the reader stores nothing, but the item can be read again */
	assert_int_equal(first->items[2].result.time, 0);
	read_until_known(third, 2);
	assert_int_equal(third->items[2].result.time, 3);
}

static void the_last_item_may_be_stuck(void **state)
{
	AUTO(shared_unref) struct read_list *list = make_list(*state, 2, 1);

	read_list(list);
	assert_int_equal(list->items[0].result.time, 1);
	assert_int_equal(list->items[1].result.time, 0);
}

static void stuck_readers_are_limited(void **state)
{
	AUTO(shared_unref) struct readers *r = readers_new(NULL, read_or_hang, SHORT_MS);
	AUTO(shared_unref) struct read_list *list = make_list(r, READERS_STUCK_MAX + 10, -1);
	AUTO(shared_unref) struct read_list *other = make_list(r, 1, -1);

	(void)state;
	for (size_t i = 0; i < list->n; i++)
		list->items[i].pid = HANGS;
	read_list(list);
	assert_int_equal(count_reads(), READERS_STUCK_MAX);
	other->items[0].id = "other";
	read_list(other);
	assert_int_equal(count_reads(), READERS_STUCK_MAX);
	assert_int_equal(other->items[0].result.time, 0);
	let_continue();
	read_until_known(other, 0);
	assert_int_equal(other->items[0].result.time, 1);
}

static void a_deadline_ends_the_list(void **state)
{
	AUTO(shared_unref) struct read_list *list = make_list(*state, 5, 1);
	struct hw_err e;

	assert_int_equal(stats_read(list, time_now(), &e), -ETIMEDOUT);
	assert_int_equal(stats_read(list, time_deadline(SHORT_MS), &e), -ETIMEDOUT);
	assert_string_equal(e.msg, "statistics: timed out");
	assert_true(count_reads() <= 3);
}

static void *cancel(void *arg)
{
	pthread_mutex_lock(&lock);
	while (!n_hanging)
		pthread_cond_wait(&changed, &lock);
	pthread_mutex_unlock(&lock);
	readers_cancel(arg);
	return NULL;
}

static void a_reader_outlives_its_list(void **state)
{
	struct readers *r = readers_new(NULL, read_or_hang, LONG_MS);
	struct read_list *list = make_list(r, 3, 0);
	pthread_t thread;
	struct hw_err e;

	(void)state;
	assert_int_equal(thread_start(cancel, r, &thread, &e), 0);
	assert_int_equal(stats_read(list, TIME_NEVER, &e), -ECANCELED);
	pthread_join(thread, NULL);
	assert_int_equal(stats_read(list, TIME_NEVER, &e), -ECANCELED);
	shared_unref(list);
	shared_unref(r);
}

#define READ_TEST(sentence, f)                                                                     \
	{                                                                                          \
		sentence, f, setup, teardown, NULL                                                 \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		READ_TEST("stats: all items of a list are read", all_are_read),
		READ_TEST("stats: a stuck item costs its own values, until its reader returns",
			  a_stuck_item_costs_its_own_values),
		READ_TEST("stats: the last item may be stuck", the_last_item_may_be_stuck),
		READ_TEST("stats: the number of stuck readers is limited",
			  stuck_readers_are_limited),
		READ_TEST("stats: a deadline ends the reading", a_deadline_ends_the_list),
		READ_TEST("stats: a reader may outlive the list and the readers",
			  a_reader_outlives_its_list),
	};

	cond_init(&changed);
	return cmocka_run_group_tests_name("stats-read", tests, NULL, NULL);
}
