/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image/pull/pull.c - pulls that several requests share
 *
 * How:   each pull runs in its own thread, which may outlive the first request. A
 *        request finds a running pull by its key, a hash of reference, platform and
 *        credentials. It waits until the descriptor done_fd becomes readable; done_fd
 *        then stays readable. If all requests end before the pull does, the last
 *        request writes to cancel_fd.
 * Rules: puller.lock protects the struct puller and all reference counts. It is never
 *        held during a blocking operation.
 */
#include "image/pull/pull.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/list.h"
#include "base/map.h"
#include "base/os/thread.h"
#include "base/str.h"
#include "base/time.h"
#include "image/protocol/job.h"
#include "image/pull/incoming.h"
#include "image/pull/make-job.h"
#include "image/pull/session.h"
#include "image/pull/standby.h"
#include "image/reference.h"

#define PROGRESS_MS  200
#define SIGNAL_TRIES 100
#define STANDBY_MS   30000 /* lifetime of a standby process: pulls often come in bursts */

struct puller {
	struct store *store;
	struct standby *standby;
	pthread_mutex_t lock;
	pthread_cond_t idle; /* signalled when the last pull has finished */
	struct pull_settings settings;
	struct map *joinable;	/* maps a key to a struct shared_pull */
	struct map *registries; /* maps the host of a registry to the number of requests */
	struct list all;	/* list of struct shared_pull */
	struct pull_counts counts;
};

/* A pull, shared by all requests that wait for it. */
struct shared_pull {
	struct list link;
	struct puller *puller;
	char key[PULL_KEY];
	char *program;
	struct fetch_job job;
	unsigned int requests, users; /* users: all requests, and the thread */
	int done_fd, cancel_fd;	      /* eventfds */
	bool done;
	struct pull_progress progress;
	struct pull_result result;
	int code;
	struct hw_err error;
};

/* ---- puller ---------------------------------------------------------------- */

struct puller *puller_new(struct store *store, const struct pull_options *options)
{
	struct puller *p = mem_new(sizeof(*p));

	p->store = store;
	p->standby = standby_new(STANDBY_MS);
	p->joinable = map_new(NULL);
	p->registries = map_new(free);
	list_init(&p->all);
	pthread_mutex_init(&p->lock, NULL);
	pthread_cond_init(&p->idle, NULL);
	pull_settings_copy(options, &p->settings);
	return p;
}

void puller_set_options(struct puller *p, const struct pull_options *options)
{
	struct pull_settings next, old;

	pull_settings_copy(options, &next);
	pthread_mutex_lock(&p->lock);
	old = p->settings;
	p->settings = next;
	pthread_mutex_unlock(&p->lock);
	pull_settings_done(&old);
}

/* Retries, because another thread waits for the event and must not miss it. */
static void signal_event(int fd)
{
	for (int tries = 0; tries < SIGNAL_TRIES && eventfd_write(fd, 1) < 0; tries++)
		;
}

void puller_free(struct puller *p)
{
	if (!p)
		return;
	standby_stop(p->standby);
	pthread_mutex_lock(&p->lock);
	list_for_each(struct shared_pull, s, &p->all, link)
		signal_event(s->cancel_fd);
	while (!list_is_empty(&p->all))
		pthread_cond_wait(&p->idle, &p->lock);
	pthread_mutex_unlock(&p->lock);
	pthread_cond_destroy(&p->idle);
	pthread_mutex_destroy(&p->lock);
	map_free(p->joinable);
	map_free(p->registries);
	pull_settings_done(&p->settings);
	standby_free(p->standby);
	free(p);
}

void pull_counts(struct puller *p, struct pull_counts *ret_counts)
{
	pthread_mutex_lock(&p->lock);
	*ret_counts = p->counts;
	pthread_mutex_unlock(&p->lock);
}

/* ---- shared pulls ---------------------------------------------------------- */

static void shared_pull_free(struct shared_pull *s)
{
	mem_close_fd(&s->done_fd);
	mem_close_fd(&s->cancel_fd);
	pull_progress_done(&s->progress);
	job_done(&s->job);
	free(s->program);
	free(s);
}

/* Prevents further requests from joining the pull. The caller holds the lock. */
static void make_unjoinable(struct shared_pull *s)
{
	if (map_find(s->puller->joinable, s->key) == s)
		map_take(s->puller->joinable, s->key);
}

/* The caller holds the lock. */
static void shared_pull_unref(struct shared_pull *s)
{
	if (--s->users == 0)
		shared_pull_free(s);
}

/* Wakes up the requests, before the thread cleans up. */
static void publish_result(struct shared_pull *s)
{
	struct puller *p = s->puller;
	autofree struct pull_layer *layers = NULL;
	size_t n = pull_progress_read(&s->progress, &layers);
	int64_t bytes = 0;

	for (size_t i = 0; i < n; i++)
		if (layers[i].state != PULL_PRESENT)
			bytes += layers[i].bytes;
	pthread_mutex_lock(&p->lock);
	p->counts.running--;
	p->counts.good += s->code == 0;
	p->counts.failed += s->code < 0;
	p->counts.bytes += (uint64_t)bytes;
	s->done = true;
	signal_event(s->done_fd);
	make_unjoinable(s);
	pthread_mutex_unlock(&p->lock);
}

static void *pull_thread(void *arg)
{
	struct shared_pull *s = arg;
	struct puller *p = s->puller;
	struct helper *fetch = NULL;
	struct session_options options = { .store = p->store,
					   .program = s->program,
					   .standby = p->standby,
					   .job = &s->job,
					   .archive = -1,
					   .cancel_fd = s->cancel_fd,
					   .progress = &s->progress };
	struct incoming *image = NULL;

	s->code = session_run(&options, &image, &fetch, &s->error);
	if (s->code == 0)
		s->code = incoming_store(&image, 1, &s->result, &s->error);
	if (s->code < 0) {
		/* kill the process first: it might still write to the stages of the image */
		helper_free(take_ptr(fetch));
		incoming_free(take_ptr(image));
	}
	job_wipe(&s->job);
	incoming_free(image);
	publish_result(s);
	helper_free(fetch);
	if (s->code == 0)
		standby_keep(p->standby, s->program);
	pthread_mutex_lock(&p->lock);
	list_remove(&s->link);
	shared_pull_unref(s);
	if (list_is_empty(&p->all))
		pthread_cond_broadcast(&p->idle);
	pthread_mutex_unlock(&p->lock);
	return NULL;
}

/* The caller holds the lock. */
static int start_pull(struct puller *p, const struct pull_request *request,
		      const struct reference *ref, const char *key, struct shared_pull **ret_pull,
		      struct hw_err *e)
{
	struct shared_pull *s = mem_new(sizeof(*s));
	int r;

	s->puller = p;
	memcpy(s->key, key, sizeof(s->key));
	pull_progress_init(&s->progress);
	list_init(&s->link);
	make_pull_job(&p->settings, request, ref, &s->job);
	s->program = str_copy(p->settings.program);
	s->users = 1;
	s->done_fd = eventfd(0, EFD_CLOEXEC);
	s->cancel_fd = eventfd(0, EFD_CLOEXEC);
	if (s->done_fd < 0 || s->cancel_fd < 0) {
		r = err_set(e, -errno, "pull %s: create an eventfd", request->reference);
		shared_pull_free(s);
		return r;
	}
	r = thread_start(pull_thread, s, NULL, e);
	if (r < 0) {
		shared_pull_free(s);
		return err_ctx(e, "pull %s", request->reference);
	}
	p->counts.running++;
	map_set(p->joinable, s->key, s);
	list_append(&p->all, &s->link);
	*ret_pull = s;
	return 0;
}

/* ---- requests -------------------------------------------------------------- */

/* The caller holds the lock. */
static int count_request(struct puller *p, const struct pull_request *request, const char *host,
			 struct hw_err *e)
{
	unsigned *n = map_find(p->registries, host), max = p->settings.options.per_registry;

	if (n && max > 0 && *n >= max)
		return err_text(e, -EAGAIN,
				"pull %s: too many pulls from %s: limit %u (pulls-per-registry)",
				request->reference, host, max);
	if (!n) {
		n = mem_new(sizeof(*n));
		map_set(p->registries, host, n);
	}
	++*n;
	return 0;
}

/* The caller holds the lock. */
static void uncount_request(struct puller *p, const char *host)
{
	unsigned *n = map_find(p->registries, host);

	if (--*n == 0)
		free(map_take(p->registries, host));
}

static int wait_until_done(const struct pull_request *request, struct shared_pull *s,
			   struct hw_err *e)
{
	struct pollfd fds[] = { { .fd = s->done_fd, .events = POLLIN },
				{ .fd = request->cancel_fd, .events = POLLIN } };

	for (;;) {
		int64_t until = request->progress ? time_deadline(PROGRESS_MS) : TIME_NEVER;
		int n;

		n = poll(fds, ARRAY_SIZE(fds),
			 time_left_ms(time_earlier(until, request->deadline)));
		if (n < 0 && errno != EINTR)
			return err_set(e, -errno, "pull %s: poll", s->job.reference);
		if (request->progress) {
			autofree struct pull_layer *layers = NULL;
			size_t n_layers = pull_progress_read(&s->progress, &layers);

			request->progress(request->ctx, layers, n_layers);
		}
		if (n > 0 && fds[0].revents)
			return 0;
		if (n > 0 && fds[1].revents)
			return err_text(e, -ECANCELED, "pull %s: cancelled", s->job.reference);
		if (time_has_passed(request->deadline))
			return err_text(e, -ETIMEDOUT, "pull %s: deadline exceeded",
					s->job.reference);
	}
}

int pull(struct puller *p, const struct pull_request *request, struct pull_result *ret_result,
	 struct hw_err *e)
{
	AUTO(reference_done) struct reference ref = { 0 };
	char key[PULL_KEY];
	struct shared_pull *s;
	int r;

	r = reference_parse(request->reference, &ref, e);
	if (r < 0)
		return r;
	pull_key(request, &ref, key);
	pthread_mutex_lock(&p->lock);
	r = count_request(p, request, ref.domain, e);
	s = r == 0 ? map_find(p->joinable, key) : NULL;
	if (r == 0 && !s) {
		r = start_pull(p, request, &ref, key, &s, e);
		if (r < 0)
			uncount_request(p, ref.domain);
	}
	if (r == 0) {
		s->requests++;
		s->users++;
	}
	pthread_mutex_unlock(&p->lock);
	if (r < 0)
		return r;
	r = wait_until_done(request, s, e);
	/* the lock also makes the thread's writes visible; an eventfd does not guarantee that */
	pthread_mutex_lock(&p->lock);
	if (r == 0 && s->code == 0) {
		*ret_result = s->result;
	} else if (r == 0) {
		*e = s->error;
		r = s->code;
	}
	uncount_request(p, ref.domain);
	/* the last request that ends before the pull is done cancels it */
	if (--s->requests == 0 && !s->done) {
		make_unjoinable(s);
		signal_event(s->cancel_fd);
	}
	shared_pull_unref(s);
	pthread_mutex_unlock(&p->lock);
	return r;
}
