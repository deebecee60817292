/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image/pull/standby.c - hawser-fetch as a child process; standby process
 */
#include "image/pull/standby.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "base/str.h"

/* ---- child process ----------------------------------------------------------- */

int fetch_child_start(const char *program, struct fetch_child **ret_child, struct hw_err *e)
{
	AUTO(fetch_child_free) struct fetch_child *f = mem_new(sizeof(*f));
	int pair[2];
	int r;

	*f = (struct fetch_child){ .socket = -1, .child_end = -1, .argv = { str_copy(program) } };
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return err_set(e, -errno, "create a socket pair");
	f->socket = pair[0];
	f->child_end = pair[1];
	f->start = (struct child_start){ .path = f->argv[0],
					 .argv = f->argv,
					 .in = f->child_end,
					 .out = f->child_end,
					 .err = STDERR_FILENO };
	r = child_start(&f->start, &f->child, e);
	if (r < 0)
		return r;
	*ret_child = take_ptr(f);
	return 0;
}

void fetch_child_running(struct fetch_child *f)
{
	mem_close_fd(&f->child_end);
	f->child_end = -1;
}

void fetch_child_free(struct fetch_child *f)
{
	struct hw_err ignored;
	int status;

	if (!f)
		return;
	mem_close_fd(
		&f->socket); /* close it first: the process exits on EOF even if the kill fails */
	if (f->child) {
		child_kill(f->child);
		child_wait(f->child, &status, &ignored);
	}
	mem_close_fd(&f->child_end);
	free((char *)f->argv[0]);
	free(f);
}

/* ---- standby process --------------------------------------------------------- */

/* State of the thread that runs standby_keep(), on its stack. Other threads access it only under
 * the lock, while standby.keeper points to it. */
struct keeper {
	struct fetch_child *child;
	int wake; /* eventfd */
};

struct standby {
	pthread_mutex_t lock;
	int keep_ms;
	struct keeper *keeper; /* or NULL */
	bool stopped;
};

struct standby *standby_new(int keep_ms)
{
	struct standby *s = mem_new(sizeof(*s));

	s->keep_ms = keep_ms;
	pthread_mutex_init(&s->lock, NULL);
	return s;
}

void standby_free(struct standby *s)
{
	pthread_mutex_destroy(&s->lock);
	free(s);
}

/* The caller holds the lock. If the write fails, the keeper returns after keep_ms. */
static void wake_keeper(struct standby *s)
{
	if (s->keeper)
		eventfd_write(s->keeper->wake, 1);
	s->keeper = NULL;
}

static bool is_running(const struct fetch_child *f)
{
	struct pollfd poller = { .fd = child_fd(f->child), .events = POLLIN };

	return poll(&poller, 1, 0) == 0;
}

struct fetch_child *standby_take(struct standby *s)
{
	struct fetch_child *f = NULL;

	pthread_mutex_lock(&s->lock);
	if (s->keeper && s->keeper->child && is_running(s->keeper->child)) {
		f = take_ptr(s->keeper->child);
		wake_keeper(s);
	}
	pthread_mutex_unlock(&s->lock);
	return f;
}

void standby_keep(struct standby *s, const char *program)
{
	autoclose int wake = -1;
	struct keeper k = { 0 };
	struct fetch_child *f;
	struct hw_err e;
	bool mine;

	wake = eventfd(0, EFD_CLOEXEC);
	if (wake < 0)
		return;
	k.wake = wake;
	pthread_mutex_lock(&s->lock);
	mine = !s->keeper && !s->stopped;
	if (mine)
		s->keeper = &k;
	pthread_mutex_unlock(&s->lock);
	if (!mine)
		return;
	if (fetch_child_start(program, &f, &e) == 0) {
		struct pollfd fds[] = { { .fd = child_fd(f->child), .events = POLLIN },
					{ .fd = wake, .events = POLLIN } };

		pthread_mutex_lock(&s->lock);
		k.child = f;
		pthread_mutex_unlock(&s->lock);
		while (poll(fds, ARRAY_SIZE(fds), s->keep_ms) < 0 && errno == EINTR)
			;
	} else {
		log_debug("start a standby hawser-fetch: %s", e.msg);
	}
	pthread_mutex_lock(&s->lock);
	if (s->keeper == &k)
		s->keeper = NULL;
	pthread_mutex_unlock(&s->lock);
	fetch_child_free(k.child);
}

void standby_stop(struct standby *s)
{
	pthread_mutex_lock(&s->lock);
	s->stopped = true;
	wake_keeper(s);
	pthread_mutex_unlock(&s->lock);
}
