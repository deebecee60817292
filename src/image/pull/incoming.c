/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image/pull/incoming.c - an image on its way into the store
 */
#include "image/pull/incoming.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "image/config.h"
#include "image/manifest.h"
#include "image/reference.h"

#define NAMES_MAX 256 /* of one image */

/* ---- progress --- */

/** board_init() - nothing is known yet */
void board_init(struct board *b)
{
	*b = (struct board){ 0 };
	pthread_mutex_init(&b->lock, NULL);
}

/** board_done() - free it */
void board_done(struct board *b)
{
	pthread_mutex_destroy(&b->lock);
	free(b->layers);
}

/** board_start() - the layers are known now */
void board_start(struct board *b, const struct pull_layer *layers, size_t n)
{
	pthread_mutex_lock(&b->lock);
	free(b->layers);
	b->layers = mem_copy(layers, n * sizeof(*layers));
	b->n = n;
	pthread_mutex_unlock(&b->lock);
}

/** board_set() - one has got further; never back, and never beyond its size */
void board_set(struct board *b, size_t layer, enum pull_state state, int64_t bytes)
{
	struct pull_layer *l = &b->layers[layer];

	pthread_mutex_lock(&b->lock);
	if (state > l->state)
		l->state = state;
	if (bytes > l->bytes)
		l->bytes = bytes < l->size ? bytes : l->size;
	pthread_mutex_unlock(&b->lock);
}

/** board_read() - a copy of what is known; 0: nothing yet, or there are no layers */
size_t board_read(struct board *b, struct pull_layer **ret_layers)
{
	size_t n;

	pthread_mutex_lock(&b->lock);
	n = b->n;
	*ret_layers = n > 0 ? mem_copy(b->layers, n * sizeof(*b->layers)) : NULL;
	pthread_mutex_unlock(&b->lock);
	return n;
}

/* ---- names --- */

/**
 * names_pulled() - the names of an image that was pulled
 *
 * By digest it has no tag, even if one was written there too: nobody has asked what
 * it stands for.
 *
 * Return: 0; -EBADMSG: the reference has another digest
 */
int names_pulled(const char *reference, const char *digest, struct hw_strings *names,
		 struct hw_err *e)
{
	AUTO(reference_done) struct reference ref = { 0 };
	autofree char *name = NULL, *by_digest = NULL, *by_tag = NULL;
	int r = reference_parse(reference, &ref, e);

	if (r < 0)
		return r;
	if (ref.digest && !str_equal(ref.digest, digest))
		return err_text(e, -EBADMSG, "the reference does not stand for %.128s", digest);
	name = reference_name(&ref);
	by_digest = str_printf("%s@%s", name, digest);
	strings_add(names, by_digest);
	if (ref.digest)
		return 0;
	by_tag = str_printf("%s:%s", name, ref.tag);
	strings_add(names, by_tag);
	return 0;
}

/** names_add() - one more, made complete */
int names_add(struct hw_strings *names, const char *text, struct hw_err *e)
{
	AUTO(reference_done) struct reference ref = { 0 };
	autofree char *name = NULL;
	int r = reference_parse(text, &ref, e);

	if (r < 0)
		return r;
	if (ref.digest)
		return err_text(e, -EINVAL, "\"%.300s\": a digest is no name to be given", text);
	name = reference_format(&ref);
	if (!strings_has(names, name))
		strings_add(names, name);
	return 0;
}

/**
 * names_loaded() - the names of an image that an archive has
 *
 * Tags alone: what a registry would give for a digest, an archive does not say.
 *
 * Return: 0, or -EINVAL, -EFBIG
 */
int names_loaded(const struct hw_strings *written, struct hw_strings *names, struct hw_err *e)
{
	int r = 0;

	if (written->n > NAMES_MAX)
		return err_text(e, -EFBIG, "%zu names are more than %d", written->n, NAMES_MAX);
	for (size_t i = 0; r == 0 && i < written->n; i++)
		r = names_add(names, written->v[i], e);
	return r;
}

/* ---- the image --- */

struct layer {
	char chain_id[DIGEST_TEXT];
	bool have;		   /* it is in the store */
	struct store_stage *stage; /* else */
	bool complete;		   /* in its stage */
	bool kept;		   /* from there it was put into the store */
	struct unpacked unpacked;
};

struct pull_image {
	struct store *store;
	const struct job *job;
	struct board *board;
	struct pull_result result;
	char *host;
	struct hw_strings names; /* that it gets, complete */
	int images;		 /* of the archive it is in */
	char *next; /* digest that the next document must have; NULL: as the last index says */
	struct manifest *manifest; /* the last document */
	struct buf manifest_bytes, config_bytes;
	struct image_config *config;
	struct store_hold *hold;
	struct layer *layers;
	size_t n;
};

/** pull_image_new() - of which nothing is known yet */
struct pull_image *pull_image_new(struct store *store, const struct job *job, struct board *board)
{
	struct pull_image *i = mem_new(sizeof(*i));

	*i = (struct pull_image){ .store = store, .job = job, .board = board };
	i->hold = store_hold_new(store);
	return i;
}

/** pull_image_free() - with the stages, and what is in them */
void pull_image_free(struct pull_image *i)
{
	if (!i)
		return;
	for (size_t k = 0; k < i->n; k++) {
		store_stage_free(i->layers[k].stage);
		unpacked_done(&i->layers[k].unpacked);
	}
	free(i->layers);
	store_hold_free(i->hold);
	image_config_free(i->config);
	manifest_free(i->manifest);
	buf_done(&i->manifest_bytes);
	buf_done(&i->config_bytes);
	hw_strings_free(&i->names);
	free(i->next);
	free(i->host);
	free(i);
}

/** pull_image_host() - who has it; NULL: not known yet */
const char *pull_image_host(const struct pull_image *i)
{
	return i->host;
}

/** pull_image_images() - how many images the archive has that it is in */
int pull_image_images(const struct pull_image *i)
{
	return i->images;
}

/** pull_image_names() - those that it gets, complete; may be changed before it is put */
struct hw_strings *pull_image_names(struct pull_image *i)
{
	return &i->names;
}

/* ---- documents ------------------------------------------------------------- */

/** pull_image_resolved() - what the reference stands for */
int pull_image_resolved(struct pull_image *i, const struct job_message *m, struct hw_err *e)
{
	AUTO(job_resolved_done) struct job_resolved said = { 0 };
	int r = job_decode(m, job_resolved_fields, &said, e);

	if (r == 0 && !digest_is_sha256(said.digest))
		r = err_text(e, -EBADMSG, "the reference does not stand for %.128s", said.digest);
	if (r == 0)
		r = i->job->image > 0 ? names_loaded(&said.names, &i->names, e)
				      : names_pulled(i->job->reference, said.digest, &i->names, e);
	if (r < 0)
		return r;
	i->next = str_copy(said.digest);
	i->host = str_printf("%.256s", said.host);
	i->images = said.images;
	memcpy(i->result.digest, said.digest, DIGEST_TEXT);
	return 0;
}

static bool index_names(const struct manifest *index, const char *digest)
{
	const struct descriptor *v = index->manifests.v;

	for (size_t k = 0; k < index->manifests.n; k++)
		if (str_equal(v[k].digest, digest))
			return true;
	return false;
}

/* The first is what the reference stands for, and each index names what follows it. */
static int check_document(const struct pull_image *i, const char *digest, struct hw_err *e)
{
	bool right = i->manifest ? index_names(i->manifest, digest) : str_equal(i->next, digest);

	return right ? 0 : err_text(e, -EBADMSG, "document %s was not asked for", digest);
}

/** pull_image_document() - an index, or the image's manifest */
int pull_image_document(struct pull_image *i, const struct job_message *m, struct hw_err *e)
{
	AUTO(manifest_free) struct manifest *next = NULL;
	char digest[DIGEST_TEXT];
	int r;

	digest_of(str_or(m->data.data, ""), m->data.len, digest);
	r = check_document(i, digest, e);
	if (r == 0)
		r = manifest_parse(str_or(m->data.data, ""), m->data.len, NULL, &next, e);
	if (r == 0 && next->kind == MANIFEST_IMAGE)
		r = manifest_check_image(next, e);
	if (r < 0)
		return r;
	manifest_free(i->manifest);
	i->manifest = take_ptr(next);
	if (i->manifest->kind != MANIFEST_IMAGE)
		return 0;
	buf_add(&i->manifest_bytes, m->data.data, m->data.len);
	return 1;
}

static int parse_config(struct pull_image *i, const struct job_message *m, struct hw_err *e)
{
	int r = image_config_parse(str_or(m->data.data, ""), m->data.len, &i->config, e);

	if (r < 0)
		return r;
	if (!str_equal(i->config->id, i->manifest->config.digest))
		return err_text(e, -EBADMSG, "the configuration's digest is %s and not %s",
				i->config->id, i->manifest->config.digest);
	buf_add(&i->config_bytes, m->data.data, m->data.len);
	return image_config_check(i->config, i->manifest, e);
}

/* ---- the plan -------------------------------------------------------------- */

static int place_layer(struct pull_image *i, size_t k, struct hw_err *e)
{
	struct layer *l = &i->layers[k];
	int r;

	digest_chain(k > 0 ? i->layers[k - 1].chain_id : NULL, i->config->diff_ids.v[k],
		     l->chain_id);
	r = store_hold_layer(i->hold, l->chain_id, e);
	l->have = r > 0;
	return r == 0 ? store_layer_begin(i->store, &l->stage, e) : r;
}

static void plan_layer(const struct pull_image *i, size_t k, struct job_layer *ret_layer)
{
	const struct layer *l = &i->layers[k];
	const char *root = store_root(i->store);

	*ret_layer = (struct job_layer){ .have = l->have,
					 .diff_id = str_copy(i->config->diff_ids.v[k]) };
	if (l->have) {
		ret_layer->root =
			str_printf("%s/layers/%s/root", root, strchr(l->chain_id, ':') + 1);
		return;
	}
	ret_layer->root = str_printf("%s/tmp/%s/root", root, l->stage->name);
	ret_layer->recipe = str_printf("%s/tmp/%s/recipe", root, l->stage->name);
	ret_layer->blob = str_printf("%s/tmp/%s/blob", root, l->stage->name);
}

static void show_layers(const struct pull_image *i)
{
	autofree struct pull_layer *shown = mem_new((i->n + 1) * sizeof(*shown));

	for (size_t k = 0; k < i->n; k++) {
		const struct descriptor *d = manifest_layer(i->manifest, k);

		shown[k].size = d->size;
		shown[k].bytes = i->layers[k].have ? d->size : 0;
		shown[k].state = i->layers[k].have ? PULL_PRESENT : PULL_WAITING;
		snprintf(shown[k].digest, sizeof(shown[k].digest), "%s", d->digest);
	}
	board_start(i->board, shown, i->n);
}

/** pull_image_config() - the configuration; then it is known which layers are to come */
int pull_image_config(struct pull_image *i, const struct job_message *m, struct job_plan *ret_plan,
		      struct hw_err *e)
{
	struct job_layer *plan;
	int r = parse_config(i, m, e);

	if (r < 0)
		return r;
	i->layers = mem_new((i->manifest->layers.n + 1) * sizeof(*i->layers));
	for (; r >= 0 && i->n < i->manifest->layers.n; i->n++)
		r = place_layer(i, i->n, e);
	if (r < 0)
		return r;
	plan = mem_new((i->n + 1) * sizeof(*plan));
	for (size_t k = 0; k < i->n; k++)
		plan_layer(i, k, &plan[k]);
	ret_plan->layers = (struct hw_list){ plan, i->n };
	show_layers(i);
	return 0;
}

/* ---- layers ---------------------------------------------------------------- */

static struct layer *find_layer(struct pull_image *i, const struct job_step *step, struct hw_err *e)
{
	if ((size_t)step->layer < i->n && !i->layers[step->layer].have)
		return &i->layers[step->layer];
	err_text(e, -EBADMSG, "layer %d was not asked for", step->layer);
	return NULL;
}

/** pull_image_progress() - so much has come */
int pull_image_progress(struct pull_image *i, const struct job_message *m, struct hw_err *e)
{
	AUTO(job_step_done) struct job_step step = { 0 };
	int r = job_decode(m, job_step_fields, &step, e);

	if (r < 0)
		return r;
	if (!find_layer(i, &step, e))
		return e->code;
	board_set(i->board, (size_t)step.layer,
		  step.bytes == step.size ? PULL_UNPACKING : PULL_FETCHING, step.bytes);
	return 0;
}

/* Each is what it is on top of those below it, so they come in order. */
static bool is_next(const struct pull_image *i, const struct layer *l)
{
	for (const struct layer *k = i->layers; k < l; k++)
		if (!k->have && !k->complete)
			return false;
	return !l->complete;
}

static int take_unpacked(struct layer *l, const char *json, const char *diff_id, struct hw_err *e)
{
	AUTO(unpacked_done) struct unpacked u = { 0 };
	int r = unpacked_decode(json, strlen(json), &u, e);

	if (r < 0)
		return r;
	if (!str_equal(u.diff_id, diff_id))
		return err_text(e, -EBADMSG, "layer %s is another one", u.diff_id);
	l->complete = true;
	l->unpacked = u;
	u = (struct unpacked){ 0 };
	return 0;
}

/** pull_image_layer() - one is complete, in its stage */
int pull_image_layer(struct pull_image *i, const struct job_message *m, struct hw_err *e)
{
	AUTO(job_step_done) struct job_step step = { 0 };
	struct layer *l;
	int r = job_decode(m, job_step_fields, &step, e);

	if (r < 0)
		return r;
	l = find_layer(i, &step, e);
	if (!l)
		return e->code;
	if (!is_next(i, l))
		return err_text(e, -EBADMSG, "layer %d comes again, or too early", step.layer);
	r = take_unpacked(l, str_or(step.unpacked, ""), i->config->diff_ids.v[step.layer], e);
	if (r == 0)
		board_set(i->board, (size_t)step.layer, PULL_COMPLETE,
			  manifest_layer(i->manifest, (size_t)step.layer)->size);
	return r;
}

static bool is_to_be_kept(const struct layer *l)
{
	return l->complete && !l->kept;
}

/** pull_image_has_more() - are there layers for pull_image_keep()? */
bool pull_image_has_more(const struct pull_image *i)
{
	for (size_t k = 0; k < i->n; k++)
		if (is_to_be_kept(&i->layers[k]))
			return true;
	return false;
}

/** pull_image_keep() - the layers that are complete, whatever becomes of the image */
int pull_image_keep(struct pull_image *i, struct hw_err *e)
{
	autofree struct store_new_layer *new = mem_new((i->n + 1) * sizeof(*new));
	size_t n = 0;
	int r;

	for (size_t k = 0; k < i->n; k++) {
		struct layer *l = &i->layers[k];
		const struct descriptor *d = manifest_layer(i->manifest, k);

		if (is_to_be_kept(l))
			new[n++] = (struct store_new_layer){ l->stage, l->chain_id, &l->unpacked,
							     d->digest, d->size };
	}
	r = store_layers_commit(i->store, new, n, e);
	for (size_t k = 0; r == 0 && k < i->n; k++)
		i->layers[k].kept = i->layers[k].complete;
	return r;
}

/* ---- the image ------------------------------------------------------------- */

/** pull_image_complete() - all has come: to the store with the layers */
int pull_image_complete(struct pull_image *i, struct hw_err *e)
{
	for (size_t k = 0; k < i->n; k++)
		if (!i->layers[k].have && !i->layers[k].complete)
			return err_text(e, -EBADMSG, "layer %zu is missing", k);
	return pull_image_keep(i, e);
}

/**
 * pull_image_put() - show a complete image to everybody
 *
 * Return: 0, or negative errno
 */
int pull_image_put(struct pull_image *i, struct pull_result *ret_result, struct hw_err *e)
{
	struct store_new_image new = {
		.manifest = i->manifest_bytes.data,
		.manifest_len = i->manifest_bytes.len,
		.config = i->config_bytes.data,
		.config_len = i->config_bytes.len,
		.names = (const char *const *)i->names.v,
		.n_names = i->names.n,
	};
	int r = store_image_add(i->store, &new, i->result.id, e);

	if (r < 0)
		return err_ctx(e, "%s %s from %s", job_verb(i->job), i->job->reference, i->host);
	*ret_result = i->result;
	return 0;
}
