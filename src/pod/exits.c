/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pod/exits.c - notice the end of containers
 *
 * How:   one thread waits for two kinds of events. inotify reports an exit code that conmon has written to
 *        STATE/exits. A descriptor for each conmon reports its end: usually the exit code is known by then;
 *        if not, conmon was killed, and the container, whose output has no reader any more, is killed by
 *        finish.c.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/list.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/os/thread.h"
#include "base/str.h"
#include "base/time.h"
#include "pod/container.h"

#define EVENTS	       64
#define MONITOR_KILLED 255 /* exit code of a container whose own is not known */

struct exits {
	struct pods *pods;
	int epoll, inotify, stop;
	pthread_mutex_t lock; /* protects the list */
	struct list watches;  /* struct watch */
	pthread_t thread;
	bool running;
};

/* A monitor that is watched; its address is the data of the epoll event. */
struct watch {
	struct list link;
	struct container *container; /* a reference */
	int pidfd;
};

/* ---- the status of a container that has ended ------------------------------------------- */

static bool set_exit(struct container_status *status, void *ctx)
{
	const struct monitor_exit *exit = ctx;

	if (status->state != CONTAINER_CREATED && status->state != CONTAINER_RUNNING &&
	    status->state != CONTAINER_MAKING)
		return false;
	status->state = CONTAINER_EXITED;
	status->exit_code = exit->code;
	/* the time of a file is up to a tick of the kernel's clock too early */
	status->finished_at = exit->time > status->started_at ? exit->time : status->started_at;
	status->oom = exit->oom;
	if (exit->oom && exit->code == 137)
		status->reason = CONTAINER_OOM_KILLED;
	else
		status->reason = exit->code == 0 ? CONTAINER_COMPLETED : CONTAINER_ERROR;
	return true;
}

static bool set_unknown_exit(struct container_status *status, void *ctx)
{
	struct monitor_exit exit = { .code = MONITOR_KILLED, .time = time_real() };

	if (!set_exit(status, &exit))
		return false;
	free(status->message);
	status->message = str_copy(ctx);
	return true;
}

static void log_exit_error(const struct container *c, const struct hw_err *e)
{
	log_event(LOG_ERROR, "exit of a container", "container", c->o.id, "error", e->msg, NULL);
}

static void note_exit(struct container *c,
		      bool (*change)(struct container_status *status, void *ctx), void *ctx)
{
	struct hw_err e;

	if (container_state_change(c, change, ctx, &e) < 0) /* it has changed nevertheless */
		log_exit_error(c, &e);
	container_drop_process(c);
}

/* Return: 1; 0 if there is no exit code, or a malformed one; or a negative errno */
static int read_exit(struct container *c, struct hw_err *e)
{
	autofree char *bundle = container_dir(c->pods, c->o.id);
	struct monitor_exit exit;
	int r;

	r = monitor_get_exit(bundle, &exit, e);
	if (r == 1)
		note_exit(c, set_exit, &exit);
	if (r != -EBADMSG)
		return r;
	log_exit_error(c, e);
	return 0;
}

/* @why: if the exit code is not known */
static int collect(struct container *c, char *why, struct hw_err *e)
{
	int r;

	r = read_exit(c, e);
	if (r == 0)
		note_exit(c, set_unknown_exit, why);
	return r < 0 ? r : 0;
}

int exits_collect(struct container *c, struct hw_err *e)
{
	char why[] = "the exit code was lost with its monitor, or by a restart of the node";

	return collect(c, why, e);
}

/* ---- the thread --------------------------------------------------------------------- */

/* A child that was just forked may have a copy of the descriptor: then closing it does not end its events. */
static void watch_free(struct exits *x, struct watch *w)
{
	epoll_ctl(x->epoll, EPOLL_CTL_DEL, w->pidfd, NULL);
	pthread_mutex_lock(&x->lock);
	list_remove(&w->link);
	pthread_mutex_unlock(&x->lock);
	shared_unref(w->container);
	mem_close_fd(&w->pidfd);
	free(w);
}

static void set_watched(struct container *c, bool watched)
{
	pthread_mutex_lock(&c->o.table->lock);
	c->watched = watched;
	pthread_mutex_unlock(&c->o.table->lock);
}

/* finish.c kills what is left of the container's processes: that may take long. It also tries again to read an
 * exit code that cannot be read now. */
static void on_monitor_end(struct exits *x, struct watch *w)
{
	char why[] = "conmon has ended unexpectedly";
	struct hw_err e;

	if (collect(w->container, why, &e) < 0)
		log_exit_error(w->container, &e);
	set_watched(w->container, false);
	finisher_add(&w->container->o, 0);
	watch_free(x, w);
}

static void on_exit_file(struct exits *x, const char *id)
{
	AUTO(shared_unref) struct container *c = NULL;
	struct hw_err e;

	if (!object_is_id(id)) /* the temporary name of a file */
		return;
	c = object_get(&x->pods->containers, id);
	if (c && c->spec && read_exit(c, &e) < 0) /* it is read again when conmon has ended */
		log_exit_error(c, &e);
}

static void on_inotify(struct exits *x)
{
	union {
		struct inotify_event event;
		char bytes[64 * (sizeof(struct inotify_event) + NAME_MAX + 1)];
	} room;
	ssize_t n;

	n = read(x->inotify, &room, sizeof(room));
	for (ssize_t at = 0; n - at >= (ssize_t)sizeof(struct inotify_event);) {
		const struct inotify_event *event = (const void *)(room.bytes + at);

		/* after an overflow, the end of each conmon still reports its container */
		if (event->len)
			on_exit_file(x, event->name);
		at += (ssize_t)(sizeof(*event) + event->len);
	}
}

static void *exits_thread(void *arg)
{
	struct epoll_event events[EVENTS];
	struct exits *x = arg;

	for (;;) {
		int n = epoll_wait(x->epoll, events, EVENTS, -1);

		for (int i = 0; i < n; i++) {
			if (events[i].data.ptr == &x->stop)
				return NULL;
			if (events[i].data.ptr == &x->inotify)
				on_inotify(x);
			else
				on_monitor_end(x, events[i].data.ptr);
		}
	}
}

/* ---- interface ---------------------------------------------------------------------- */

static int add_fd(struct exits *x, int fd, void *data, struct hw_err *e)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = data };

	if (epoll_ctl(x->epoll, EPOLL_CTL_ADD, fd, &event) < 0)
		return err_set(e, -errno, "watch a descriptor");
	return 0;
}

int exits_watch(struct container *c, struct monitor *m, struct hw_err *e)
{
	struct watch *w = mem_new(sizeof(*w));
	struct exits *x = c->pods->exits;
	int r;

	*w = (struct watch){ .container = shared_ref(c), .pidfd = take_fd(m->pidfd) };
	pthread_mutex_lock(&x->lock);
	list_append(&x->watches, &w->link);
	pthread_mutex_unlock(&x->lock);
	set_watched(c, true); /* before the first event */
	r = add_fd(x, w->pidfd, w, e);
	if (r < 0) {
		set_watched(c, false);
		watch_free(x, w);
	}
	return r;
}

bool exits_is_watched(struct container *c)
{
	bool watched;

	pthread_mutex_lock(&c->o.table->lock);
	watched = c->watched;
	pthread_mutex_unlock(&c->o.table->lock);
	return watched;
}

int exits_open(struct pods *p, struct hw_err *e)
{
	autofree char *dir = str_printf("%s/exits", p->state);
	struct exits *x = mem_new(sizeof(*x));
	int r;

	*x = (struct exits){ .pods = p,
			     .lock = PTHREAD_MUTEX_INITIALIZER,
			     .epoll = epoll_create1(EPOLL_CLOEXEC),
			     .inotify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK),
			     .stop = eventfd(0, EFD_CLOEXEC) };
	list_init(&x->watches);
	p->exits = x;
	if (x->epoll < 0 || x->inotify < 0 || x->stop < 0)
		return err_set(e, -errno, "watch containers");
	if (inotify_add_watch(x->inotify, dir, IN_MOVED_TO | IN_CLOSE_WRITE | IN_ONLYDIR) < 0)
		return err_set(e, -errno, "watch %s", dir);
	r = add_fd(x, x->inotify, &x->inotify, e);
	if (r == 0)
		r = add_fd(x, x->stop, &x->stop, e);
	if (r == 0)
		r = thread_start(exits_thread, x, &x->thread, e);
	x->running = r == 0;
	return r;
}

void exits_close(struct pods *p)
{
	struct exits *x = p->exits;

	if (!x)
		return;
	if (x->running) {
		eventfd_write(x->stop, 1);
		pthread_join(x->thread, NULL);
	}
	list_for_each_safe(struct watch, w, &x->watches, link)
		watch_free(x, w);
	pthread_mutex_destroy(&x->lock);
	mem_close_fd(&x->epoll);
	mem_close_fd(&x->inotify);
	mem_close_fd(&x->stop);
	free(x);
	p->exits = NULL;
}
