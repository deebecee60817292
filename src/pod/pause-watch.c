/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pod/pause-watch.c - notice that a hawser-pause has ended
 *
 * What:  all processes of a PID namespace end with its first one, and no other can be started in
 *        it. So a pod whose hawser-pause ends is stopped, and a client sees that it must create
 *        another one. This happens, for example, if a process of a container sends SIGTERM to
 *        process 1.
 * How:   one thread waits for the descriptors of all hawser-pause. It only hands the pod to
 *        finish.c, which may block. An entry exists until the process ends, also if that is part of
 *        a stop.
 */
#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/os/namespace.h"
#include "base/os/thread.h"
#include "oci/pause.h"
#include "pod/pod.h"

#define EVENTS 64

struct pause_watch {
	int epoll, stop;
	pthread_mutex_t lock; /* protects the list */
	struct list entries;  /* struct entry */
	pthread_t thread;
	bool running;
};

/* Its address is the data of the epoll event. */
struct entry {
	struct list link;
	struct pod *pod; /* a reference */
	int pidfd;
};

/* A child that was just forked may have a copy of the descriptor: then closing it does not end its
 * events. */
static void entry_free(struct pause_watch *w, struct entry *entry)
{
	epoll_ctl(w->epoll, EPOLL_CTL_DEL, entry->pidfd, NULL);
	pthread_mutex_lock(&w->lock);
	list_remove(&entry->link);
	pthread_mutex_unlock(&w->lock);
	shared_unref(entry->pod);
	mem_close_fd(&entry->pidfd);
	free(entry);
}

static bool is_wanted(struct pod *pod)
{
	const struct pod_view *view;
	bool wanted;

	pthread_mutex_lock(&pod->o.table->lock);
	view = (const void *)pod->o.view;
	wanted = view->state == POD_MAKING || view->state == POD_READY;
	pthread_mutex_unlock(&pod->o.table->lock);
	return wanted;
}

static void on_end(struct pause_watch *w, struct entry *entry)
{
	siginfo_t info;

	/* it is our child, unless an earlier daemon has started it; a stop that has killed it may
	 * be faster */
	(void)waitid(P_PIDFD, (id_t)entry->pidfd, &info, WEXITED | WNOHANG | __WALL);
	if (is_wanted(entry->pod))
		finisher_add(&entry->pod->o, 0);
	entry_free(w, entry);
}

static void *watch_thread(void *arg)
{
	struct epoll_event events[EVENTS];
	struct pause_watch *w = arg;

	for (;;) {
		int n = epoll_wait(w->epoll, events, EVENTS, -1);

		for (int i = 0; i < n; i++) {
			if (!events[i].data.ptr)
				return NULL;
			on_end(w, events[i].data.ptr);
		}
	}
}

static int add_fd(struct pause_watch *w, int fd, void *data, struct hw_err *e)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = data };

	if (epoll_ctl(w->epoll, EPOLL_CTL_ADD, fd, &event) < 0)
		return err_set(e, -errno, "watch hawser-pause");
	return 0;
}

/* ---- interface ---------------------------------------------------------------------- */

int pause_watch_add(struct pod *pod, struct hw_err *e)
{
	autofree char *pin = pod_path(pod->pods, pod->o.id, "pid");
	struct pause_watch *w = pod->pods->pause_watch;
	struct entry *entry;
	struct namespace_id ns;
	int r, fd = -1;

	if (pod->pid == 0)
		return 0;
	r = namespace_get(pin, &ns, e);
	if (r > 0)
		r = pause_open(pod->pid, &ns, &fd, e);
	if (r == 0)
		finisher_add(&pod->o, 0);
	if (r <= 0)
		return r;
	entry = mem_new(sizeof(*entry));
	*entry = (struct entry){ .pod = shared_ref(pod), .pidfd = fd };
	pthread_mutex_lock(&w->lock);
	list_append(&w->entries, &entry->link);
	pthread_mutex_unlock(&w->lock);
	r = add_fd(w, fd, entry, e);
	if (r < 0)
		entry_free(w, entry);
	return r;
}

int pause_watch_open(struct pods *p, struct hw_err *e)
{
	struct pause_watch *w = mem_new(sizeof(*w));
	int r;

	*w = (struct pause_watch){ .lock = PTHREAD_MUTEX_INITIALIZER,
				   .epoll = epoll_create1(EPOLL_CLOEXEC),
				   .stop = eventfd(0, EFD_CLOEXEC) };
	list_init(&w->entries);
	p->pause_watch = w;
	if (w->epoll < 0 || w->stop < 0)
		return err_set(e, -errno, "watch hawser-pause");
	r = add_fd(w, w->stop, NULL, e);
	if (r == 0)
		r = thread_start(watch_thread, w, &w->thread, e);
	w->running = r == 0;
	return r;
}

void pause_watch_close(struct pods *p)
{
	struct pause_watch *w = p->pause_watch;

	if (!w)
		return;
	if (w->running) {
		eventfd_write(w->stop, 1);
		pthread_join(w->thread, NULL);
	}
	list_for_each_safe(struct entry, entry, &w->entries, link)
		entry_free(w, entry);
	pthread_mutex_destroy(&w->lock);
	mem_close_fd(&w->epoll);
	mem_close_fd(&w->stop);
	free(w);
	p->pause_watch = NULL;
}
