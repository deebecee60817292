/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/supervisor-layer.c - the layers of a pull, on their way to be complete
 */
#include "fetch/supervisor-layer.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/str.h"
#include "fetch/unpack/implied.h"

/** conductor_layer_ctx() - which layer an error is about */
int conductor_layer_ctx(const struct conductor *c, const struct layer *l, struct hw_err *e)
{
	return err_ctx(e, "%s %s from %s: layer with diff id %s", job_verb(c->job),
		       c->job->reference, str_or(c->host, "its registry"), l->plan->diff_id);
}

/* Where nobody listens any more, its last words say why, or that there are none. */
static int say_layer(struct conductor *c, enum job_type type, size_t i, int along, struct hw_err *e)
{
	struct job_step step = { .layer = (int)i };
	int r = job_send_table(c->fetcher, type, job_step_fields, &step, along, c->job->idle_ms, e);

	return r == -EPIPE ? 0 : r;
}

/* The next time that it is fetched, its blob is kept. */
static int keep_blob(struct conductor *c, size_t i, struct hw_err *e)
{
	struct layer *l = &c->layers[i];
	autoclose int fd =
		open(l->plan->blob, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd < 0)
		return err_set(e, -errno, "make %s", l->plan->blob);
	l->has_blob = true;
	return say_layer(c, JOB_BLOB, i, fd, e);
}

static int start_layer(struct conductor *c, size_t i, struct hw_err *e)
{
	struct layer *l = &c->layers[i];
	autoclose int archive = -1;
	int r = layer_child_start(&l->child, c->job, l->plan, &archive, e);

	if (r == 0 && c->job->keep_blobs && l->plan->blob)
		r = keep_blob(c, i, e);
	if (r == 0)
		r = say_layer(c, JOB_FETCH, i, archive, e);
	l->state = RUNNING;
	c->running++;
	return r < 0 ? conductor_layer_ctx(c, l, e) : 0;
}

/* Only for the blob: nobody unpacks it this time. */
static int start_again(struct conductor *c, size_t i, struct hw_err *e)
{
	autoclose int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	int r = null < 0 ? err_set(e, -errno, "open /dev/null") : keep_blob(c, i, e);

	c->layers[i].fetched = false;
	c->layers[i].state = AGAIN;
	return r < 0 ? r : say_layer(c, JOB_FETCH, i, null, e);
}

static int start_layers(struct conductor *c, struct hw_err *e)
{
	int r = 0;

	for (size_t i = c->done; r == 0 && i < c->n && c->running < c->job->parallel; i++)
		if (c->layers[i].state == WAITING)
			r = start_layer(c, i, e);
	return r;
}

static int inherit_layer(const struct conductor *c, size_t i, struct hw_err *e)
{
	struct layer *l = &c->layers[i];
	autoclose int root = -1;
	autofree int *below = NULL;
	int r;

	if (l->result.implied.n == 0 || i == 0)
		return 0;
	root = open(l->plan->root, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (root < 0)
		return err_set(e, -errno, "open %s", l->plan->root);
	below = mem_new(i * sizeof(*below));
	for (size_t k = 0; k < i; k++)
		below[k] = c->layers[i - 1 - k].root;
	r = inherit(root, &l->result.implied, below, i, e);
	if (r > 0)
		l->result.rebuildable = false;
	return r < 0 ? r : 0;
}

static int tell_layer(const struct conductor *c, size_t i, struct hw_err *e)
{
	autofree char *json = unpacked_encode(&c->layers[i].result);
	struct job_step step = { .layer = (int)i, .unpacked = json };

	return job_send_table(c->daemon, JOB_LAYER, job_step_fields, &step, -1, c->job->idle_ms, e);
}

/* Return: 1 when the daemon knows of it, 0 when it is not complete yet */
static int finish_layer(struct conductor *c, size_t i, struct hw_err *e)
{
	struct layer *l = &c->layers[i];
	int r = 0;

	if (l->state == DONE)
		return 1;
	if (l->state == READY)
		r = inherit_layer(c, i, e);
	if (r == 0 && l->state == READY && !l->result.rebuildable && !l->has_blob && l->plan->blob)
		r = start_again(c, i, e);
	if (r < 0)
		return conductor_layer_ctx(c, l, e);
	if (l->state != READY && l->state != KEPT)
		return 0;
	l->state = DONE;
	hw_strings_free(&l->result.implied); /* the daemon has no use for them */
	r = tell_layer(c, i, e);
	return r < 0 ? r : 1;
}

static int finish_layers(struct conductor *c, struct hw_err *e)
{
	for (; c->done < c->n; c->done++) {
		int r = finish_layer(c, c->done, e);

		if (r <= 0)
			return r;
	}
	return 0;
}

/** conductor_go_on() - finish what is ready, start what there is room for */
int conductor_go_on(struct conductor *c, struct layer *l, struct hw_err *e)
{
	int r = 0;

	if (l && l->state == RUNNING && l->fetched && l->unpacked) {
		l->state = READY;
		c->running--;
	}
	if (l && l->state == AGAIN && l->fetched)
		l->state = KEPT;
	r = finish_layers(c, e);
	return r < 0 ? r : start_layers(c, e);
}
