/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image/pull/incoming.c - image received from hawser-fetch, until it is in the store
 */
#include "image/pull/incoming.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "image/config.h"
#include "image/manifest.h"
#include "image/reference.h"

#define NAMES_MAX 256 /* maximum number of names of one image in an archive */

struct incoming_layer {
	char chain_id[DIGEST_TEXT];
	bool existed;		   /* was in the store before; then the members below are unused */
	struct store_stage *stage; /* where it is unpacked */
	bool complete;		   /* unpacked completely in its stage */
	bool committed;		   /* added to the store */
	struct unpacked unpacked;
};

struct incoming {
	struct store *store;
	const struct fetch_job *job;
	struct pull_progress *progress;
	struct pull_result result;
	char *host;
	struct hw_strings names;
	int archive_images;
	struct manifest *manifest; /* the last document received: an index or the manifest */
	struct buf manifest_bytes, config_bytes;
	struct image_config *config;
	struct store_hold *hold;
	struct incoming_layer *layers;
	size_t n;
};

struct incoming *incoming_new(struct store *store, const struct fetch_job *job,
			      struct pull_progress *progress)
{
	struct incoming *in = mem_new(sizeof(*in));

	*in = (struct incoming){ .store = store, .job = job, .progress = progress };
	in->hold = store_hold_new(store);
	return in;
}

void incoming_free(struct incoming *in)
{
	if (!in)
		return;
	for (size_t i = 0; i < in->n; i++) {
		store_stage_free(in->layers[i].stage);
		unpacked_done(&in->layers[i].unpacked);
	}
	free(in->layers);
	store_hold_free(in->hold);
	image_config_free(in->config);
	manifest_free(in->manifest);
	buf_done(&in->manifest_bytes);
	buf_done(&in->config_bytes);
	hw_strings_free(&in->names);
	free(in->host);
	free(in);
}

const char *incoming_host(const struct incoming *in)
{
	return in->host;
}

int incoming_archive_images(const struct incoming *in)
{
	return in->archive_images;
}

/* ---- progress -------------------------------------------------------------- */

void pull_progress_init(struct pull_progress *p)
{
	*p = (struct pull_progress){ 0 };
	pthread_mutex_init(&p->lock, NULL);
}

void pull_progress_done(struct pull_progress *p)
{
	pthread_mutex_destroy(&p->lock);
	free(p->layers);
}

size_t pull_progress_read(struct pull_progress *p, struct pull_layer **ret_layers)
{
	size_t n;

	pthread_mutex_lock(&p->lock);
	n = p->n;
	*ret_layers = n > 0 ? mem_copy(p->layers, n * sizeof(*p->layers)) : NULL;
	pthread_mutex_unlock(&p->lock);
	return n;
}

/* State and bytes never decrease, and bytes never exceed the size of the blob. */
static void update_progress(struct pull_progress *p, size_t layer, enum pull_state state,
			    int64_t bytes)
{
	struct pull_layer *l = &p->layers[layer];

	pthread_mutex_lock(&p->lock);
	if (state > l->state)
		l->state = state;
	if (bytes > l->bytes)
		l->bytes = bytes < l->size ? bytes : l->size;
	pthread_mutex_unlock(&p->lock);
}

static void start_progress(const struct incoming *in)
{
	struct pull_layer *layers = mem_new((in->n + 1) * sizeof(*layers));
	struct pull_progress *p = in->progress;

	for (size_t i = 0; i < in->n; i++) {
		const struct descriptor *d = manifest_layer(in->manifest, i);

		layers[i].size = d->size;
		layers[i].bytes = in->layers[i].existed ? d->size : 0;
		layers[i].state = in->layers[i].existed ? PULL_PRESENT : PULL_WAITING;
		snprintf(layers[i].digest, sizeof(layers[i].digest), "%s", d->digest);
	}
	pthread_mutex_lock(&p->lock);
	free(p->layers);
	p->layers = layers;
	p->n = in->n;
	pthread_mutex_unlock(&p->lock);
}

/* ---- names ----------------------------------------------------------------- */

/* If the reference has a digest, its tag is not stored: the registry was not asked for the tag. */
static int add_pulled_names(struct incoming *in, const char *digest, struct hw_err *e)
{
	AUTO(reference_done) struct reference ref = { 0 };
	autofree char *name = NULL, *by_digest = NULL, *by_tag = NULL;
	int r;

	r = reference_parse(in->job->reference, &ref, e);
	if (r < 0)
		return r;
	if (ref.digest && !str_equal(ref.digest, digest))
		return err_text(e, -EBADMSG, "digest mismatch: got %.128s, want %s", digest,
				ref.digest);
	name = reference_name(&ref);
	by_digest = str_printf("%s@%s", name, digest);
	strings_add(&in->names, by_digest);
	if (ref.digest)
		return 0;
	by_tag = str_printf("%s:%s", name, ref.tag);
	strings_add(&in->names, by_tag);
	return 0;
}

/* Adds a name for a loaded image. It must not contain a digest, because the digest that a registry
 * has for this image is not known. */
static int add_name(struct incoming *in, const char *text, struct hw_err *e)
{
	AUTO(reference_done) struct reference ref = { 0 };
	autofree char *name = NULL;
	int r;

	r = reference_parse(text, &ref, e);
	if (r < 0)
		return r;
	if (ref.digest)
		return err_text(e, -EINVAL, "image name \"%.300s\" must not contain a digest",
				text);
	name = reference_format(&ref);
	if (!strings_has(&in->names, name))
		strings_add(&in->names, name);
	return 0;
}

int incoming_set_names(struct incoming *in, const char *const *names, size_t n, struct hw_err *e)
{
	int r = 0;

	hw_strings_free(&in->names);
	for (size_t i = 0; r == 0 && i < n; i++)
		r = add_name(in, names[i], e);
	return r;
}

const struct hw_strings *incoming_names(const struct incoming *in)
{
	return &in->names;
}

/* ---- documents ------------------------------------------------------------- */

int incoming_receive_resolved(struct incoming *in, const struct job_message *m, struct hw_err *e)
{
	AUTO(job_resolved_done) struct job_resolved resolved = { 0 };
	int r;

	r = job_decode(m, job_resolved_fields, &resolved, e);
	if (r < 0)
		return r;
	if (!digest_is_sha256(resolved.digest))
		return err_text(e, -EBADMSG, "resolved to an invalid SHA-256 digest: \"%.128s\"",
				resolved.digest);
	if (in->job->image == 0) {
		r = add_pulled_names(in, resolved.digest, e);
	} else {
		if (resolved.names.n > NAMES_MAX)
			return err_text(e, -EFBIG, "too many names: got %zu, want at most %d",
					resolved.names.n, NAMES_MAX);
		for (size_t i = 0; r == 0 && i < resolved.names.n; i++)
			r = add_name(in, resolved.names.v[i], e);
	}
	if (r < 0)
		return r;
	in->host = str_printf("%.256s", resolved.host);
	in->archive_images = resolved.images;
	memcpy(in->result.digest, resolved.digest, DIGEST_TEXT);
	return 0;
}

static bool index_contains(const struct manifest *index, const char *digest)
{
	const struct descriptor *v = index->manifests.v;

	for (size_t i = 0; i < index->manifests.n; i++)
		if (str_equal(v[i].digest, digest))
			return true;
	return false;
}

int incoming_receive_manifest(struct incoming *in, const struct job_message *m, struct hw_err *e)
{
	AUTO(manifest_free) struct manifest *next = NULL;
	char digest[DIGEST_TEXT];
	bool expected;
	int r;

	digest_of(str_or(m->data.data, ""), m->data.len, digest);
	expected = in->manifest ? index_contains(in->manifest, digest)
				: str_equal(in->result.digest, digest);
	if (!expected)
		return err_text(e, -EBADMSG, "unexpected document %s", digest);
	r = manifest_parse(str_or(m->data.data, ""), m->data.len, NULL, &next, e);
	if (r < 0)
		return r;
	if (next->kind == MANIFEST_IMAGE) {
		r = manifest_check_image(next, e);
		if (r < 0)
			return r;
		buf_add(&in->manifest_bytes, m->data.data, m->data.len);
	}
	manifest_free(in->manifest);
	in->manifest = take_ptr(next);
	return in->manifest->kind == MANIFEST_IMAGE ? 1 : 0;
}

/* ---- plan ------------------------------------------------------------------ */

static void plan_layer(const struct incoming *in, size_t i, struct job_layer *ret_layer)
{
	const struct incoming_layer *l = &in->layers[i];
	const char *root = store_root(in->store);

	*ret_layer = (struct job_layer){ .have = l->existed,
					 .diff_id = str_copy(in->config->diff_ids.v[i]) };
	if (l->existed) {
		ret_layer->root =
			str_printf("%s/layers/%s/root", root, strchr(l->chain_id, ':') + 1);
		return;
	}
	ret_layer->root = str_printf("%s/tmp/%s/root", root, l->stage->name);
	ret_layer->recipe = str_printf("%s/tmp/%s/recipe", root, l->stage->name);
	ret_layer->blob = str_printf("%s/tmp/%s/blob", root, l->stage->name);
}

int incoming_receive_config(struct incoming *in, const struct job_message *m,
			    struct job_plan *ret_plan, struct hw_err *e)
{
	struct job_layer *plan;
	int r;

	r = image_config_parse(str_or(m->data.data, ""), m->data.len, &in->config, e);
	if (r < 0)
		return r;
	if (!str_equal(in->config->id, in->manifest->config.digest))
		return err_text(e, -EBADMSG,
				"image configuration: digest mismatch: got %s, want %s",
				in->config->id, in->manifest->config.digest);
	buf_add(&in->config_bytes, m->data.data, m->data.len);
	r = image_config_check(in->config, in->manifest, e);
	if (r < 0)
		return r;
	/* hold the layers that exist, and create stages for the others */
	in->layers = mem_new((in->manifest->layers.n + 1) * sizeof(*in->layers));
	while (in->n < in->manifest->layers.n) {
		size_t i = in->n++;
		struct incoming_layer *l = &in->layers[i];

		digest_chain(i > 0 ? in->layers[i - 1].chain_id : NULL, in->config->diff_ids.v[i],
			     l->chain_id);
		r = store_hold_layer(in->hold, l->chain_id, e);
		l->existed = r > 0;
		if (r == 0)
			r = store_layer_begin(in->store, &l->stage, e);
		if (r < 0)
			return r;
	}
	plan = mem_new((in->n + 1) * sizeof(*plan));
	for (size_t i = 0; i < in->n; i++)
		plan_layer(in, i, &plan[i]);
	ret_plan->layers = (struct hw_list){ plan, in->n };
	start_progress(in);
	return 0;
}

/* ---- layers ---------------------------------------------------------------- */

static struct incoming_layer *find_layer(struct incoming *in, const struct job_step *step,
					 struct hw_err *e)
{
	if ((size_t)step->layer < in->n && !in->layers[step->layer].existed)
		return &in->layers[step->layer];
	err_text(e, -EBADMSG, "unexpected layer %d", step->layer);
	return NULL;
}

int incoming_receive_progress(struct incoming *in, const struct job_message *m, struct hw_err *e)
{
	AUTO(job_step_done) struct job_step step = { 0 };
	int r;

	r = job_decode(m, job_step_fields, &step, e);
	if (r < 0)
		return r;
	if (!find_layer(in, &step, e))
		return e->code;
	update_progress(in->progress, (size_t)step.layer,
			step.bytes == step.size ? PULL_UNPACKING : PULL_FETCHING, step.bytes);
	return 0;
}

/* A chain ID depends on all layers below, so layers must be completed in order. */
static bool is_next(const struct incoming *in, const struct incoming_layer *l)
{
	for (const struct incoming_layer *below = in->layers; below < l; below++)
		if (!below->existed && !below->complete)
			return false;
	return !l->complete;
}

int incoming_receive_layer(struct incoming *in, const struct job_message *m, struct hw_err *e)
{
	AUTO(job_step_done) struct job_step step = { 0 };
	AUTO(unpacked_done) struct unpacked unpacked = { 0 };
	struct incoming_layer *l;
	const char *json, *want;
	int r;

	r = job_decode(m, job_step_fields, &step, e);
	if (r < 0)
		return r;
	l = find_layer(in, &step, e);
	if (!l)
		return e->code;
	if (!is_next(in, l))
		return err_text(e, -EBADMSG, "layer %d: duplicate or out of order", step.layer);
	json = str_or(step.unpacked, "");
	r = unpacked_decode(json, strlen(json), &unpacked, e);
	if (r < 0)
		return r;
	want = in->config->diff_ids.v[step.layer];
	if (!str_equal(unpacked.diff_id, want))
		return err_text(e, -EBADMSG, "layer %d: diff ID mismatch: got %s, want %s",
				step.layer, unpacked.diff_id, want);
	l->complete = true;
	l->unpacked = unpacked;
	unpacked = (struct unpacked){ 0 };
	update_progress(in->progress, (size_t)step.layer, PULL_COMPLETE,
			manifest_layer(in->manifest, (size_t)step.layer)->size);
	return 0;
}

bool incoming_has_complete_layers(const struct incoming *in)
{
	for (size_t i = 0; i < in->n; i++)
		if (in->layers[i].complete && !in->layers[i].committed)
			return true;
	return false;
}

/* All names and digests were checked before: -EINVAL of the store is a defect, not a wrong request. */
static int fail_store(struct hw_err *e)
{
	return err_replace(e, -EINVAL, -EIO);
}

int incoming_commit_layers(struct incoming *in, struct hw_err *e)
{
	autofree struct store_new_layer *new = mem_new((in->n + 1) * sizeof(*new));
	size_t n = 0;
	int r;

	for (size_t i = 0; i < in->n; i++) {
		struct incoming_layer *l = &in->layers[i];
		const struct descriptor *d = manifest_layer(in->manifest, i);

		if (l->complete && !l->committed)
			new[n++] = (struct store_new_layer){ l->stage, l->chain_id, &l->unpacked,
							     d->digest, d->size };
	}
	r = store_layers_commit(in->store, new, n, e);
	for (size_t i = 0; r == 0 && i < in->n; i++)
		in->layers[i].committed = in->layers[i].complete;
	return r < 0 ? fail_store(e) : 0;
}

/* ---- image ----------------------------------------------------------------- */

bool incoming_is_complete(const struct incoming *in)
{
	for (size_t i = 0; i < in->n; i++)
		if (!in->layers[i].existed)
			return false;
	return true;
}

int incoming_receive_done(struct incoming *in, struct hw_err *e)
{
	for (size_t i = 0; i < in->n; i++)
		if (!in->layers[i].existed && !in->layers[i].complete)
			return err_text(e, -EBADMSG, "layer %zu is missing", i);
	return incoming_commit_layers(in, e);
}

int incoming_store(struct incoming *const *images, size_t n, struct pull_result *ret_results,
		   struct hw_err *e)
{
	autofree struct store_new_image *new = mem_new(n * sizeof(*new));
	autofree char(*ids)[DIGEST_TEXT] = mem_new(n * sizeof(*ids));
	const struct incoming *first = images[0];
	int r;

	for (size_t i = 0; i < n; i++)
		new[i] = (struct store_new_image){
			.manifest = images[i]->manifest_bytes.data,
			.manifest_len = images[i]->manifest_bytes.len,
			.config = images[i]->config_bytes.data,
			.config_len = images[i]->config_bytes.len,
			.names = (const char *const *)images[i]->names.v,
			.n_names = images[i]->names.n,
		};
	r = store_images_add(first->store, new, n, ids, e);
	if (r < 0) {
		fail_store(e);
		return err_ctx(e, "%s %s from %s", job_verb(first->job), first->job->reference,
			       first->host);
	}
	for (size_t i = 0; i < n; i++) {
		ret_results[i] = images[i]->result;
		memcpy(ret_results[i].id, ids[i], DIGEST_TEXT);
	}
	return 0;
}
