/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image/pull/standby.c - a hawser-fetch process that is ready for the next pull
 */
#include "image/pull/standby.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/eventfd.h>

#include "base/log.h"
#include "base/os/environment.h"

/* The only variables that hawser-fetch gets, see hawser-cri(8). libcurl is linked with GnuTLS by way of
 * librtmp, but does not use it; its initialization would be a tenth of the time to start the
 * process. */
static const char *const variables[] = {
	ENVIRONMENT_SERVERS,
	"GNUTLS_NO_IMPLICIT_INIT=1",
	NULL,
};

int fetch_start(const char *program, struct helper **ret_fetch, struct hw_err *e)
{
	const char *const argv[] = { program, NULL };
	const struct helper_start start = { .argv = argv, .env = variables };

	return helper_start(&start, ret_fetch, e);
}

/* State of the thread that runs standby_keep(), on its stack. Other threads access it only under
 * the lock, while standby.keeper points to it. */
struct keeper {
	struct helper *child;
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

struct helper *standby_take(struct standby *s)
{
	struct helper *h = NULL;

	pthread_mutex_lock(&s->lock);
	if (s->keeper && s->keeper->child && helper_is_running(s->keeper->child)) {
		h = take_ptr(s->keeper->child);
		wake_keeper(s);
	}
	pthread_mutex_unlock(&s->lock);
	return h;
}

void standby_keep(struct standby *s, const char *program)
{
	autoclose int wake = -1;
	struct keeper k = { 0 };
	struct helper *h;
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
	if (fetch_start(program, &h, &e) == 0) {
		struct pollfd fds[] = { { .fd = helper_exit_fd(h), .events = POLLIN },
					{ .fd = wake, .events = POLLIN } };

		pthread_mutex_lock(&s->lock);
		k.child = h;
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
	helper_free(k.child);
}

void standby_stop(struct standby *s)
{
	pthread_mutex_lock(&s->lock);
	s->stopped = true;
	wake_keeper(s);
	pthread_mutex_unlock(&s->lock);
}
