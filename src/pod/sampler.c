/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pod/sampler.c - the thread that reads processor times and counts what containers have written
 *
 * How:   a round begins every ten seconds. It reads the processor times, and continues to count with the
 *        container after the last one, for at most a tenth of the round. A count that takes longer waits
 *        for the next round in its middle.
 */
#include "pod/sampler.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/os/thread.h"
#include "base/os/tree-usage.h"
#include "base/time.h"

#define ROUND_MS  10000
#define BUDGET_MS (ROUND_MS / 10)
#define ENTRIES	  64 /* counted between two looks at the clock */

struct sampler {
	struct pods *pods;
	pthread_t thread;
	pthread_mutex_t lock; /* protects .stopping */
	pthread_cond_t changed;
	bool stopping;

	/* of the thread */
	int64_t round_end, budget_end;
	unsigned entries;
	char last[OBJECT_ID]; /* the container that was counted last */
};

/* ---- processor time ----------------------------------------------------------------- */

static void read_cpu(struct pods *p)
{
	AUTO(shared_unref) const struct containers_view *containers = containers_view(p);
	AUTO(shared_unref) const struct pods_view *pods = pods_view(p);
	autofree struct stats_subject *subjects =
		mem_new((containers->n + pods->n) * sizeof(*subjects));
	AUTO(stats_list_done) struct stats_list list = { 0 };
	struct hw_err e;
	size_t n = 0;

	for (size_t i = 0; i < containers->n; i++)
		if (containers->containers[i]->status.state == CONTAINER_RUNNING)
			subjects[n++].container = containers->containers[i];
	for (size_t i = 0; i < pods->n; i++)
		if (pods->pods[i]->state == POD_READY)
			subjects[n++].pod = pods->pods[i];
	if (pods_stats(p, subjects, n, STATS_CPU, TIME_NEVER, &list, &e) < 0 &&
	    e.code != -ECANCELED)
		log_event(LOG_WARN, "processor times cannot be read", "error", e.msg, NULL);
}

/* ---- rounds ------------------------------------------------------------------------- */

static void begin_round(struct sampler *s)
{
	read_cpu(s->pods);
	stats_forget_removed(s->pods);
	s->round_end = time_deadline(ROUND_MS);
	s->budget_end = time_deadline(BUDGET_MS);
}

/* Waits for the end of the round, and begins the next one. Return: false: the daemon ends */
static bool next_round(struct sampler *s)
{
	bool stopping;

	pthread_mutex_lock(&s->lock);
	while (!s->stopping && !time_has_passed(s->round_end))
		cond_wait_until(&s->changed, &s->lock, s->round_end);
	stopping = s->stopping;
	pthread_mutex_unlock(&s->lock);
	if (!stopping)
		begin_round(s);
	return !stopping;
}

/* Called before each entry that is counted. Return: false: the daemon ends */
static bool use_budget(void *ctx)
{
	struct sampler *s = ctx;

	if (++s->entries % ENTRIES || !time_has_passed(s->budget_end))
		return true;
	return next_round(s);
}

/* ---- what containers have written ---------------------------------------------------- */

/* Return: false: the daemon ends */
static bool count_layer(struct sampler *s, const struct container_view *c)
{
	autofree char *path = stats_layer_path(s->pods, c->o.id);
	struct stats_layer layer = { .time = time_real() };
	struct tree_usage usage;
	struct hw_err e;
	int r;

	memcpy(s->last, c->o.id, sizeof(s->last));
	r = tree_usage(path, use_budget, s, &usage, &e);
	if (r == 0) {
		layer.bytes = usage.bytes;
		layer.inodes = usage.inodes;
		stats_set_layer(s->pods, c->o.id, &layer);
	} else if (r != -ENOENT && r != -ECANCELED) { /* else it was removed meanwhile */
		log_debug("container %s: %s", c->o.id, e.msg);
	}
	return r != -ECANCELED;
}

/* Counts all containers once, beginning after the last one. Return: false: the daemon ends */
static bool count_layers(struct sampler *s)
{
	AUTO(shared_unref) const struct containers_view *view = containers_view(s->pods);
	size_t first = 0;

	while (first < view->n && strcmp(view->containers[first]->o.id, s->last) <= 0)
		first++;
	for (size_t i = 0; i < view->n; i++) {
		const struct container_view *c = view->containers[(first + i) % view->n];

		if (time_has_passed(s->budget_end))
			return true;
		if (stats_layer_is_due(s->pods, c) && !count_layer(s, c))
			return false;
	}
	return true;
}

static void *sample(void *arg)
{
	struct sampler *s = arg;

	begin_round(s);
	while (count_layers(s) && next_round(s))
		;
	return NULL;
}

/* ---- lifetime ----------------------------------------------------------------------- */

int sampler_open(struct pods *p, struct sampler **ret_sampler, struct hw_err *e)
{
	struct sampler *s = mem_new(sizeof(*s));
	int r;

	s->pods = p;
	pthread_mutex_init(&s->lock, NULL);
	cond_init(&s->changed);
	r = thread_start(sample, s, &s->thread, e);
	if (r < 0) {
		pthread_cond_destroy(&s->changed);
		pthread_mutex_destroy(&s->lock);
		free(s);
		return r;
	}
	*ret_sampler = s;
	return 0;
}

void sampler_close(struct sampler *s)
{
	if (!s)
		return;
	pthread_mutex_lock(&s->lock);
	s->stopping = true;
	pthread_cond_broadcast(&s->changed);
	pthread_mutex_unlock(&s->lock);
	pthread_join(s->thread, NULL);
	pthread_cond_destroy(&s->changed);
	pthread_mutex_destroy(&s->lock);
	free(s);
}
