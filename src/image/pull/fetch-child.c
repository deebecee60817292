/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image/pull/fetch-child.c - a process of hawser-fetch, and the socket to it
 */
#include "image/pull/fetch-child.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "base/str.h"

/* ---- the process ----------------------------------------------------------- */

/** fetch_child_start() - one that waits for its job */
int fetch_child_start(const char *program, struct fetch_child **ret_child, struct hw_err *e)
{
	AUTO(fetch_child_free) struct fetch_child *f = mem_new(sizeof(*f));
	int pair[2];
	int r;

	*f = (struct fetch_child){ .socket = -1, .theirs = -1, .argv = { str_copy(program) } };
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return err_set(e, -errno, "make a socket");
	f->socket = pair[0];
	f->theirs = pair[1];
	f->start = (struct child_start){ .path = f->argv[0],
					 .argv = f->argv,
					 .in = f->theirs,
					 .out = f->theirs,
					 .err = STDERR_FILENO };
	r = child_start(&f->start, &f->child, e);
	if (r < 0)
		return r;
	*ret_child = take_ptr(f);
	return 0;
}

/** fetch_child_runs() - there is a sign of it */
void fetch_child_runs(struct fetch_child *f)
{
	mem_close_fd(&f->theirs);
	f->theirs = -1;
}

/** fetch_child_free() - end it */
void fetch_child_free(struct fetch_child *f)
{
	struct hw_err ignored;
	int status;

	if (!f)
		return;
	mem_close_fd(&f->socket); /* first: then it ends by itself, should the kill fail */
	if (f->child) {
		child_kill(f->child);
		child_wait(f->child, &status, &ignored);
	}
	mem_close_fd(&f->theirs);
	free((char *)f->argv[0]);
	free(f);
}

/* ---- one that waits -------------------------------------------------------- */

/* Who keeps one; on that thread's stack, for others under the lock alone. */
struct keeper {
	struct fetch_child *child;
	int wake; /* eventfd */
};

struct spare {
	pthread_mutex_t lock;
	int keep_ms;
	struct keeper *keeper; /* NULL: nobody */
	bool over;
};

/** spare_new() - nobody keeps one yet */
struct spare *spare_new(int keep_ms)
{
	struct spare *s = mem_new(sizeof(*s));

	s->keep_ms = keep_ms;
	pthread_mutex_init(&s->lock, NULL);
	return s;
}

/** spare_free() - free it */
void spare_free(struct spare *s)
{
	pthread_mutex_destroy(&s->lock);
	free(s);
}

/* Under the lock. Should it not be heard, the keeper goes when its time is over. */
static void dismiss(struct spare *s)
{
	if (s->keeper)
		eventfd_write(s->keeper->wake, 1);
	s->keeper = NULL;
}

static bool waits(const struct fetch_child *f)
{
	struct pollfd poller = { .fd = child_fd(f->child), .events = POLLIN };

	return poll(&poller, 1, 0) == 0;
}

/** spare_take() - the one that waits */
struct fetch_child *spare_take(struct spare *s)
{
	struct fetch_child *f = NULL;

	pthread_mutex_lock(&s->lock);
	if (s->keeper && s->keeper->child && waits(s->keeper->child)) {
		f = take_ptr(s->keeper->child);
		dismiss(s);
	}
	pthread_mutex_unlock(&s->lock);
	return f;
}

/* Return: is it for us to keep one? */
static bool come(struct spare *s, struct keeper *k)
{
	bool mine;

	pthread_mutex_lock(&s->lock);
	mine = !s->keeper && !s->over;
	if (mine)
		s->keeper = k;
	pthread_mutex_unlock(&s->lock);
	return mine;
}

static void go(struct spare *s, struct keeper *k)
{
	pthread_mutex_lock(&s->lock);
	if (s->keeper == k)
		s->keeper = NULL;
	pthread_mutex_unlock(&s->lock);
}

/* Wait until it is taken, or needed no more. */
static void offer(struct spare *s, struct keeper *k, struct fetch_child *f)
{
	struct pollfd fds[] = { { .fd = child_fd(f->child), .events = POLLIN },
				{ .fd = k->wake, .events = POLLIN } };

	pthread_mutex_lock(&s->lock);
	k->child = f;
	pthread_mutex_unlock(&s->lock);
	while (poll(fds, ARRAY_SIZE(fds), s->keep_ms) < 0 && errno == EINTR)
		;
}

/** spare_keep() - keep one for a while */
void spare_keep(struct spare *s, const char *program)
{
	struct keeper k = { .wake = eventfd(0, EFD_CLOEXEC) };
	struct fetch_child *f;
	struct hw_err e;

	if (k.wake >= 0 && come(s, &k)) {
		if (fetch_child_start(program, &f, &e) == 0)
			offer(s, &k, f);
		else
			log_debug("have a hawser-fetch ready: %s", e.msg);
		go(s, &k);
	}
	fetch_child_free(k.child);
	mem_close_fd(&k.wake);
}

/** spare_stop() - none is kept any more */
void spare_stop(struct spare *s)
{
	pthread_mutex_lock(&s->lock);
	s->over = true;
	dismiss(s);
	pthread_mutex_unlock(&s->lock);
}
