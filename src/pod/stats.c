/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pod/stats.c - what pods and containers use
 *
 * How:   a *sample* of each pod and container has the last two points of its processor time, and the size
 *        of what it has written. A call adds a point, too, if the last one is old enough.
 */
#include "pod/stats.h"

#include <errno.h>
#include <stdlib.h>

#include "base/map.h"
#include "base/str.h"
#include "base/time.h"
#include "pod/container.h"
#include "pod/sampler.h"
#include "pod/stats-read.h"

#define ITEM_MS	 2000 /* a pod or container that takes longer is stuck; also on a busy machine */
#define POINT_NS 1000000000 /* between two points: a rate is an average over at least this time */

/* Processor time at a time of time_now(); 0: there is no point. */
struct cpu_point {
	int64_t at;
	uint64_t usage;
};

struct sample {
	struct cpu_point last, before;
	struct stats_layer layer;
};

struct pod_stats {
	struct readers *readers;
	struct sampler *sampler;
	pthread_mutex_t lock; /* protects the samples; held for a few instructions each */
	struct map *samples;  /* struct sample, by ID */
};

/* ---- samples ------------------------------------------------------------------------ */

/* The caller holds the lock. */
static struct sample *get_sample(struct pod_stats *s, const char *id)
{
	struct sample *sample;

	sample = map_find(s->samples, id);
	if (!sample) {
		sample = mem_new(sizeof(*sample));
		map_set(s->samples, id, sample);
	}
	return sample;
}

static uint64_t compute_rate(const struct sample *sample, const struct cpu_point *now)
{
	const struct cpu_point *from =
		now->at - sample->last.at >= POINT_NS ? &sample->last : &sample->before;

	if (!from->at || now->at <= from->at || now->usage < from->usage)
		return CGROUP_UNKNOWN;
	return (uint64_t)((double)(now->usage - from->usage) * 1e9 / (double)(now->at - from->at));
}

/* Adds what was read to the sample, and what the sample has to the result. */
static void use_sample(struct pod_stats *s, const char *id, struct stats *stats)
{
	struct cpu_point now = { stats->at, stats->cgroup.v[CGROUP_CPU_USAGE] };
	struct sample *sample;

	pthread_mutex_lock(&s->lock);
	sample = get_sample(s, id);
	if (now.at && now.usage != CGROUP_UNKNOWN) {
		stats->cpu_rate = compute_rate(sample, &now);
		if (!sample->last.at || now.at - sample->last.at >= POINT_NS) {
			sample->before = sample->last;
			sample->last = now;
		}
	}
	if (stats->layer.time)
		sample->layer = stats->layer;
	stats->layer = sample->layer;
	pthread_mutex_unlock(&s->lock);
}

static int64_t layer_time(struct pod_stats *s, const char *id)
{
	struct sample *sample;
	int64_t time;

	pthread_mutex_lock(&s->lock);
	sample = map_find(s->samples, id);
	time = sample ? sample->layer.time : 0;
	pthread_mutex_unlock(&s->lock);
	return time;
}

static void keep_sample(const char *id, struct map *from, struct map *to)
{
	void *sample = map_take(from, id);

	if (sample)
		map_set(to, id, sample);
}

void stats_forget_removed(struct pods *p)
{
	AUTO(shared_unref) const struct containers_view *containers = containers_view(p);
	AUTO(shared_unref) const struct pods_view *pods = pods_view(p);
	AUTO(map_free) struct map *old = NULL;
	struct map *kept = map_new(free);

	pthread_mutex_lock(&p->stats->lock);
	old = p->stats->samples;
	for (size_t i = 0; i < containers->n; i++)
		keep_sample(containers->containers[i]->o.id, old, kept);
	for (size_t i = 0; i < pods->n; i++)
		keep_sample(pods->pods[i]->o.id, old, kept);
	p->stats->samples = kept;
	pthread_mutex_unlock(&p->stats->lock);
}

/* ---- layers ------------------------------------------------------------------------- */

bool stats_layer_is_due(struct pods *p, const struct container_view *c)
{
	int64_t counted = layer_time(p->stats, c->o.id);

	switch (c->status.state) {
	case CONTAINER_CREATED:
	case CONTAINER_RUNNING:
		return true;
	case CONTAINER_EXITED: /* it writes nothing any more */
		return counted <= c->status.finished_at;
	default:
		return false;
	}
}

char *stats_layer_path(const struct pods *p, const char *id)
{
	return str_printf("%s/containers/%s/upper", p->root, id);
}

void stats_set_layer(struct pods *p, const char *id, const struct stats_layer *layer)
{
	pthread_mutex_lock(&p->stats->lock);
	get_sample(p->stats, id)->layer = *layer;
	pthread_mutex_unlock(&p->stats->lock);
}

void pods_layers(struct pods *p, struct stats_layer *ret)
{
	AUTO(shared_unref) const struct containers_view *view = containers_view(p);
	struct stats_layer sum = { .time = view->n ? 0 : time_real() };

	pthread_mutex_lock(&p->stats->lock);
	for (size_t i = 0; i < view->n; i++) {
		const struct sample *s;

		s = map_find(p->stats->samples, view->containers[i]->o.id);
		if (!s || !s->layer.time)
			continue;
		if (!sum.time || s->layer.time < sum.time)
			sum.time = s->layer.time;
		sum.bytes += s->layer.bytes;
		sum.inodes += s->layer.inodes;
	}
	pthread_mutex_unlock(&p->stats->lock);
	*ret = sum;
}

/* ---- reading ------------------------------------------------------------------------ */

static void prepare_container(struct pods *p, const struct container_view *view, struct arena *a,
			      struct read_item *item)
{
	AUTO(shared_unref) struct container *c = object_get(&p->containers, view->o.id);
	autofree char *cgroup = NULL, *layer = NULL;

	item->id = arena_copy(a, view->o.id);
	item->pid = view->pid;
	if (c && c->pod && view->status.state == CONTAINER_RUNNING) {
		cgroup = container_cgroup(c);
		item->cgroup = arena_copy(a, cgroup);
	}
	if (item->detail != STATS_CPU && !layer_time(p->stats, view->o.id)) {
		layer = stats_layer_path(p, view->o.id);
		item->layer = arena_copy(a, layer);
	}
}

static void prepare_pod(const struct pods *p, const struct pod_view *view, struct arena *a,
			struct read_item *item)
{
	autofree char *netns = NULL;

	item->id = arena_copy(a, view->o.id);
	if (view->state != POD_READY)
		return;
	/* the root contains everything, not only this pod */
	if (item->detail != STATS_METRICS && cgroup_path_is_valid(view->cgroup))
		item->cgroup = arena_copy(a, view->cgroup);
	if (item->detail != STATS_CPU) {
		netns = pods_namespace(p, view, POD_NETWORK);
		item->netns = arena_copy(a, netns);
	}
}

void stats_list_done(struct stats_list *list)
{
	for (size_t i = 0; i < list->n; i++)
		stats_done(&list->v[i]);
	free(take_ptr(list->v));
	list->n = 0;
}

static void take_results(struct pod_stats *s, struct read_list *list, struct stats_list *ret)
{
	*ret = (struct stats_list){ list->n, mem_new(list->n * sizeof(*ret->v)) };
	for (size_t i = 0; i < list->n; i++) {
		ret->v[i] = list->items[i].result;
		list->items[i].result = (struct stats){ 0 };
		use_sample(s, list->items[i].id, &ret->v[i]);
	}
}

int pods_stats(struct pods *p, const struct stats_subject *subjects, size_t n,
	       enum stats_detail detail, int64_t deadline, struct stats_list *ret, struct hw_err *e)
{
	AUTO(shared_unref) struct read_list *list = read_list_new(p->stats->readers, n);
	int r;

	for (size_t i = 0; i < n; i++) {
		list->items[i].detail = detail;
		if (subjects[i].container)
			prepare_container(p, subjects[i].container, &list->arena, &list->items[i]);
		else
			prepare_pod(p, subjects[i].pod, &list->arena, &list->items[i]);
	}
	r = n ? stats_read(list, deadline, e) : 0;
	if (r == 0)
		take_results(p->stats, list, ret);
	return r;
}

/* ---- lifetime ----------------------------------------------------------------------- */

int stats_open(struct pods *p, struct hw_err *e)
{
	struct cgroup_fs *fs;
	int r;

	/* a copy, which readers may use longer than the daemon has its own */
	r = cgroup_fs_new("", &fs, e);
	if (r < 0)
		return r;
	p->stats = mem_new(sizeof(*p->stats));
	p->stats->readers = readers_new(fs, stats_read_item, ITEM_MS);
	p->stats->samples = map_new(free);
	pthread_mutex_init(&p->stats->lock, NULL);
	return sampler_open(p, &p->stats->sampler, e);
}

void stats_close(struct pods *p)
{
	if (!p->stats)
		return;
	readers_cancel(p->stats->readers);
	sampler_close(p->stats->sampler);
	shared_unref(p->stats->readers);
	map_free(p->stats->samples);
	pthread_mutex_destroy(&p->stats->lock);
	free(take_ptr(p->stats));
}
