/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image/pull/pull.c - get an image from its registry into the store: who asks, and who shares
 *
 * How:   a pull has a thread of its own, which outlives whoever asked first. It is
 *        found by a hash of all that makes it what it is: reference, platform and
 *        credentials. Askers wait for its descriptor `ended`, which becomes
 *        readable and stays so; the last who leaves before that writes to `stop`.
 * Rules: puller.lock is for the struct puller and for all counts; nothing that
 *        waits is done under it.
 */
#include "image/pull/pull.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/list.h"
#include "base/map.h"
#include "base/str.h"
#include "base/time.h"
#include "image/protocol/job.h"
#include "image/pull/fetch-child.h"
#include "image/pull/make-job.h"
#include "image/pull/session.h"
#include "image/reference.h"

#define STACK	    (256 << 10)
#define PROGRESS_MS 200
#define RAISE_TRIES 100
#define SPARE_MS    30000      /* pulls come in bursts */
#define KNOWN_MAX   (48 << 10) /* bytes of documents: the job is to fit into a socket */
#define UNAVAILABLE 14	       /* gRPC's */

struct puller {
	struct store *store;
	struct spare *spare;
	pthread_mutex_t lock;
	pthread_cond_t idle; /* the last pull has ended */
	struct settings settings;
	struct map *shared; /* of struct shared, by key: those that may be joined */
	struct list all;    /* of struct shared */
	struct pull_counts counts;
};

/* A pull that several may wait for. */
struct shared {
	struct list link;
	struct puller *puller;
	char key[PULL_KEY];
	char *program;
	struct job job;
	unsigned int askers, users; /* users: askers and the thread */
	int ended, stop;	    /* eventfd */
	bool has_ended;
	struct board board;
	struct pull_result result;
	int code;
	struct hw_err error;
};

/* ---- the puller -------------------------------------------------------------- */

/** puller_new() - @store is borrowed, @options are copied */
struct puller *puller_new(struct store *store, const struct pull_options *options)
{
	struct puller *p = mem_new(sizeof(*p));

	p->store = store;
	p->spare = spare_new(SPARE_MS);
	p->shared = map_new(NULL);
	list_init(&p->all);
	pthread_mutex_init(&p->lock, NULL);
	pthread_cond_init(&p->idle, NULL);
	settings_copy(options, &p->settings);
	return p;
}

/** puller_set() - options for the pulls that begin from now on */
void puller_set(struct puller *p, const struct pull_options *options)
{
	struct settings next, old;

	settings_copy(options, &next);
	pthread_mutex_lock(&p->lock);
	old = p->settings;
	p->settings = next;
	pthread_mutex_unlock(&p->lock);
	settings_done(&old);
}

/* Somebody waits for it: a failure that passes is none. */
static void raise_event(int fd)
{
	for (int tries = 0; tries < RAISE_TRIES && eventfd_write(fd, 1) < 0; tries++)
		;
}

/** puller_free() - end the pulls that run, and free it; NULL is fine */
void puller_free(struct puller *p)
{
	if (!p)
		return;
	spare_stop(p->spare);
	pthread_mutex_lock(&p->lock);
	list_for_each(struct shared, s, &p->all, link)
		raise_event(s->stop);
	while (!list_is_empty(&p->all))
		pthread_cond_wait(&p->idle, &p->lock);
	pthread_mutex_unlock(&p->lock);
	pthread_cond_destroy(&p->idle);
	pthread_mutex_destroy(&p->lock);
	map_free(p->shared);
	settings_done(&p->settings);
	spare_free(p->spare);
	free(p);
}

/** pull_counts() - how much was done since the start */
void pull_counts(struct puller *p, struct pull_counts *ret_counts)
{
	pthread_mutex_lock(&p->lock);
	*ret_counts = p->counts;
	pthread_mutex_unlock(&p->lock);
}

/* ---- a shared pull --------------------------------------------------------- */

static struct shared *shared_new(struct puller *p, const char *key)
{
	struct shared *s = mem_new(sizeof(*s));

	s->puller = p;
	memcpy(s->key, key, sizeof(s->key));
	s->ended = eventfd(0, EFD_CLOEXEC);
	s->stop = eventfd(0, EFD_CLOEXEC);
	board_init(&s->board);
	list_init(&s->link);
	return s;
}

static void shared_free(struct shared *s)
{
	mem_close_fd(&s->ended);
	mem_close_fd(&s->stop);
	board_done(&s->board);
	job_done(&s->job);
	free(s->program);
	free(s);
}

/* Under the lock: nobody can join it any more. */
static void shared_hide(struct shared *s)
{
	if (map_find(s->puller->shared, s->key) == s)
		map_take(s->puller->shared, s->key);
}

/* Under the lock. */
static void shared_drop(struct shared *s)
{
	if (--s->users == 0)
		shared_free(s);
}

static int64_t blob_bytes(struct shared *s)
{
	autofree struct pull_layer *layers = NULL;
	size_t n = board_read(&s->board, &layers);
	int64_t bytes = 0;

	for (size_t i = 0; i < n; i++)
		if (layers[i].state != PULL_PRESENT)
			bytes += layers[i].bytes;
	return bytes;
}

/* Now those who asked know; it is over when the thread has cleared up. */
static void shared_tell(struct shared *s)
{
	struct puller *p = s->puller;
	int64_t bytes = blob_bytes(s);

	pthread_mutex_lock(&p->lock);
	p->counts.running--;
	p->counts.good += s->code == 0;
	p->counts.failed += s->code < 0;
	p->counts.bytes += (uint64_t)bytes;
	s->has_ended = true;
	raise_event(s->ended);
	shared_hide(s);
	pthread_mutex_unlock(&p->lock);
}

static void shared_end(struct shared *s)
{
	struct puller *p = s->puller;

	pthread_mutex_lock(&p->lock);
	list_remove(&s->link);
	shared_drop(s);
	if (list_is_empty(&p->all))
		pthread_cond_broadcast(&p->idle);
	pthread_mutex_unlock(&p->lock);
}

/* A document that is here need not be fetched: most names mean the same as the last time. */
static void add_known(struct store *store, struct job *job)
{
	AUTO(store_snapshot_put) const struct store_snapshot *snap = store_snapshot_get(store);
	AUTO(buf_done) struct buf manifest = { 0 }, config = { 0 };
	const struct store_image *image = NULL;
	struct hw_err ignored;

	if (store_snapshot_find(snap, job->reference, &image, &ignored) > 0 &&
	    store_image_read(store, image->id, &manifest, &config, &ignored) > 0 &&
	    manifest.len + config.len < KNOWN_MAX) {
		strings_add(&job->known, manifest.data);
		strings_add(&job->known, config.data);
	}
}

static void *shared_run(void *arg)
{
	struct shared *s = arg;
	struct fetch_child *fetch = NULL;
	struct pull_run run = { .store = s->puller->store,
				.program = s->program,
				.spare = s->puller->spare,
				.job = &s->job,
				.archive = -1,
				.stop = s->stop,
				.board = &s->board };
	struct pull_image *image = NULL;

	add_known(s->puller->store, &s->job);
	s->code = pull_run(&run, &image, &fetch, &s->error);
	if (s->code == 0)
		s->code = pull_image_put(image, &s->result, &s->error);
	if (s->code < 0) { /* who might still write there first */
		fetch_child_free(take_ptr(fetch));
		pull_image_free(take_ptr(image));
	}
	job_wipe(&s->job);
	pull_image_free(image);
	shared_tell(s);
	fetch_child_free(fetch);
	if (s->code == 0)
		spare_keep(s->puller->spare, s->program);
	shared_end(s);
	return NULL;
}

/* Under the lock. No signal of the daemon's is for this thread. */
static int shared_start(struct shared *s, struct hw_err *e)
{
	pthread_attr_t attr;
	sigset_t all, before;
	pthread_t thread;
	int r;

	if (s->ended < 0 || s->stop < 0)
		return err_set(e, -EMFILE, "start a pull");
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	r = -pthread_create(&thread, &attr, shared_run, s);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	return r < 0 ? err_set(e, r, "start a thread for a pull") : 0;
}

/* Under the lock. */
static int shared_add(struct puller *p, const struct pull_request *request,
		      const struct reference *ref, const char *key, struct shared **ret_shared,
		      struct hw_err *e)
{
	struct shared *s = shared_new(p, key);
	int r;

	settings_job(&p->settings, request, ref, &s->job);
	s->program = str_copy(p->settings.program);
	s->users = 1;
	r = shared_start(s, e);
	if (r < 0) {
		shared_free(s);
		return r;
	}
	p->counts.running++;
	map_set(p->shared, s->key, s);
	list_append(&p->all, &s->link);
	*ret_shared = s;
	return 0;
}

static int join(struct puller *p, const struct pull_request *request, const struct reference *ref,
		struct shared **ret_shared, struct hw_err *e)
{
	char key[PULL_KEY];
	int r = 0;

	pull_key(request, ref, key);
	pthread_mutex_lock(&p->lock);
	*ret_shared = map_find(p->shared, key);
	if (!*ret_shared)
		r = shared_add(p, request, ref, key, ret_shared, e);
	if (r == 0) {
		(*ret_shared)->askers++;
		(*ret_shared)->users++;
	}
	pthread_mutex_unlock(&p->lock);
	return r;
}

/* The last who leaves ends it. */
static void leave(struct shared *s)
{
	struct puller *p = s->puller;

	pthread_mutex_lock(&p->lock);
	if (--s->askers == 0 && !s->has_ended) {
		shared_hide(s);
		raise_event(s->stop);
	}
	shared_drop(s);
	pthread_mutex_unlock(&p->lock);
}

/* ---- asking ---------------------------------------------------------------- */

static void show(const struct pull_request *request, struct shared *s)
{
	autofree struct pull_layer *layers = NULL;
	size_t n;

	if (!request->progress)
		return;
	n = board_read(&s->board, &layers);
	request->progress(request->ctx, layers, n);
}

static int wait_for(const struct pull_request *request, struct shared *s, struct hw_err *e)
{
	struct pollfd fds[] = { { .fd = s->ended, .events = POLLIN },
				{ .fd = request->cancel_fd, .events = POLLIN } };

	for (;;) {
		int64_t until = request->progress ? time_deadline(PROGRESS_MS) : TIME_NEVER;
		int n = poll(fds, ARRAY_SIZE(fds),
			     time_left_ms(time_sooner(until, request->deadline)));

		if (n < 0 && errno != EINTR)
			return err_set(e, -errno, "wait for a pull");
		show(request, s);
		if (n > 0 && fds[0].revents)
			return 0;
		if (n > 0 && fds[1].revents)
			return err_text(e, -ECANCELED, "pull %s: cancelled", s->job.reference);
		if (time_is_over(request->deadline))
			return err_text(e, -ETIMEDOUT, "pull %s: the time allowed is over",
					s->job.reference);
	}
}

/* The lock orders it behind what the thread wrote; a descriptor does not promise that. */
static int take_result(struct shared *s, struct pull_result *ret_result, struct hw_err *e)
{
	pthread_mutex_lock(&s->puller->lock);
	if (s->code == 0)
		*ret_result = s->result;
	else
		*e = s->error;
	pthread_mutex_unlock(&s->puller->lock);
	return s->code;
}

/* Kubelet knows this word, and shows it to people as the reason. */
static int mean(struct hw_err *e)
{
	e->wire = job_grpc_code(e);
	e->domain = HW_DOMAIN_GRPC;
	return e->wire == UNAVAILABLE ? err_ctx(e, "RegistryUnavailable") : e->code;
}

/** pull() - get an image, or wait for somebody else's pull of the same */
int pull(struct puller *p, const struct pull_request *request, struct pull_result *ret_result,
	 struct hw_err *e)
{
	AUTO(reference_done) struct reference ref = { 0 };
	struct shared *s;
	int r = reference_parse(request->reference, &ref, e);

	if (r < 0) {
		e->domain = HW_DOMAIN_GRPC;
		e->wire = 3; /* INVALID_ARGUMENT */
		return r;
	}
	r = join(p, request, &ref, &s, e);
	if (r < 0)
		return mean(e);
	r = wait_for(request, s, e);
	if (r == 0)
		r = take_result(s, ret_result, e);
	leave(s);
	return r < 0 ? mean(e) : 0;
}
