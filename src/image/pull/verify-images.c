/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image/pull/verify-images.c - verify stored images, and repair them
 *
 * How:   images are verified one after the other. Without a repair, the state of each layer
 *        is reported as soon as it is known. With one, damaged layers are marked as
 *        suspect, so that a pull fetches them again; then they are verified again, and
 *        their new state is reported. An image that cannot be verified or repaired does
 *        not stop the others.
 */
#include "image/pull/verify-images.h"

#include <errno.h>

#include "base/log.h"
#include "base/map.h"
#include "base/str.h"
#include "base/time.h"
#include "image/config.h"

struct verifier {
	const struct verify_request *request;
	struct store *store;
	struct map *reports; /* maps a chain ID to a struct verify_report */
	bool stop;	     /* a result could not be reported */
	size_t n_failed;     /* images that could not be verified or repaired */
	struct hw_err first; /* why the first of them could not */
};

static void free_report(void *report)
{
	if (report)
		verify_report_done(report);
	free(report);
}

static void verifier_done(struct verifier *v)
{
	map_free(v->reports);
}

AUTO_VALUE_DEFINE(verifier_done, struct verifier);

/* ---- one layer -------------------------------------------------------------- */

static int check_layer(struct verifier *v, const struct store_layer *layer,
		       const struct verify_report **ret_report, struct hw_err *e)
{
	struct verify_report *report;
	int r;

	report = map_find(v->reports, layer->chain_id);
	if (!report) {
		report = mem_new(sizeof(*report));
		r = verify_layer(v->store, layer, &v->request->how, report, e);
		if (r < 0) {
			free(report);
			return r;
		}
		map_set(v->reports, layer->chain_id, report);
	}
	*ret_report = report;
	return 0;
}

static bool is_damaged(const struct verifier *v, const struct store_layer *layer)
{
	const struct verify_report *report = map_find(v->reports, layer->chain_id);

	return report && report->n_damaged > 0;
}

static int report_result(struct verifier *v, const struct verify_result *result, struct hw_err *e)
{
	int r;

	r = v->request->report(v->request->ctx, result, e);
	v->stop = r < 0;
	return r;
}

/* @good: the state of a layer without damage */
static int report_layer(struct verifier *v, const char *id, const struct store_layer *layer,
			const struct verify_report *report, enum verify_state good,
			struct hw_err *e)
{
	struct verify_result result = { id, layer->diff_id, good, report };

	if (report->n_damaged > 0)
		result.state = VERIFY_DAMAGED;
	else if (!layer->rebuildable)
		result.state = VERIFY_NOT_CHECKED;
	return report_result(v, &result, e);
}

/* ---- verifying an image ----------------------------------------------------- */

/* Verifies all layers and reports their states; those of damaged layers are left out if they will
 * be repaired. Return: the number of layers to repair; *ret_lost is true if a layer is missing */
static int check_image(struct verifier *v, const char *id, bool *ret_lost, struct hw_err *e)
{
	AUTO(store_hold_free) struct store_hold *hold = store_hold_new(v->store);
	autofree struct store_layer *layers = NULL;
	int to_repair = 0, r;
	size_t n = 0;

	r = store_image_layers(v->store, id, &layers, &n, e);
	*ret_lost = r == 0;
	if (r <= 0)
		return r;
	for (size_t i = 0; i < n; i++) {
		r = store_hold_layer(hold, layers[i].chain_id, e);
		if (r < 0)
			return r;
	}
	for (size_t i = 0; i < n; i++) {
		const struct verify_report *report = NULL;

		r = check_layer(v, &layers[i], &report, e);
		if (r < 0)
			return r;
		if (report->n_damaged > 0 && v->request->repair) {
			to_repair++;
			continue;
		}
		r = report_layer(v, id, &layers[i], report, VERIFY_GOOD, e);
		if (r < 0)
			return r;
	}
	return to_repair;
}

static int report_lost_layer(struct verifier *v, const char *id, struct hw_err *e)
{
	char text[] = "a layer is missing", *list[] = { text };
	const struct verify_report report = { .n_damaged = 1, .damaged = { list, 1 } };
	const struct verify_result result = { id, "", VERIFY_DAMAGED, &report };

	return report_result(v, &result, e);
}

/* Was the image removed after the verification had started? */
static bool is_removed(struct verifier *v, const char *id)
{
	AUTO(store_snapshot_put) const struct store_snapshot *snap = store_snapshot_get(v->store);

	for (size_t i = 0; i < snap->n; i++)
		if (str_equal(snap->images[i]->id, id))
			return false;
	return true;
}

/* ---- repairing an image ----------------------------------------------------- */

static int mark_damaged(struct verifier *v, const struct store_layer *layers, size_t n,
			struct hw_err *e)
{
	for (size_t i = 0; i < n; i++)
		if (is_damaged(v, &layers[i]) &&
		    store_layer_mark_suspect(v->store, layers[i].chain_id, e) < 0)
			return err_ctx(e, "replace layer %s", layers[i].diff_id);
	return 0;
}

static int pull_digest(struct verifier *v, const struct pull_request *request, const char *id,
		       struct hw_err *e)
{
	struct pull_result result;
	int r;

	r = pull(v->request->puller, request, &result, e);
	if (r < 0)
		return r;
	if (!str_equal(result.id, id))
		return err_text(e, -EOPNOTSUPP, "%s: image ID mismatch: got %s, want %s",
				request->reference, result.id, id);
	log_event(LOG_INFO, "repaired", "image", request->reference, NULL);
	return 0;
}

/* A digest may refer to an index, so the request contains the platform of the image. All digests
 * are tried in turn, because a registry may no longer exist. */
static int pull_again(struct verifier *v, const struct store_image *image, struct hw_err *e)
{
	AUTO(image_config_free) struct image_config *config = NULL;
	AUTO(buf_done) struct buf bytes = { 0 };
	struct pull_request request = {
		.deadline = v->request->how.deadline,
		.cancel_fd = v->request->how.cancel_fd,
	};
	int r;

	r = store_image_read(v->store, image->id, NULL, &bytes, e);
	if (r <= 0)
		return r; /* 0: the image was removed meanwhile */
	r = image_config_parse(bytes.data, bytes.len, &config, e);
	if (r < 0)
		return r;
	request.platform = &config->platform;
	for (size_t i = 0; i < image->digests.n; i++) {
		request.reference = image->digests.v[i];
		r = pull_digest(v, &request, image->id, e);
		if (r == 0 || r == -ECANCELED || time_has_passed(request.deadline))
			break;
	}
	return r;
}

static int repair_image(struct verifier *v, const struct store_image *image, struct hw_err *e)
{
	autofree struct store_layer *layers = NULL;
	size_t n = 0;
	int r;

	if (image->digests.n == 0)
		return err_text(e, -EOPNOTSUPP,
				"image %s: cannot repair: no repository digest is known",
				image->id);
	r = store_image_layers(v->store, image->id, &layers, &n, e);
	if (r < 0)
		return r;
	r = mark_damaged(v, layers, n, e);
	if (r == 0)
		r = pull_again(v, image, e);
	for (size_t i = 0; i < n; i++)
		store_layer_clear_suspect(v->store, layers[i].chain_id);
	return r;
}

/* Reports the damaged layers of an image, after the repair has failed. */
static int report_damaged(struct verifier *v, const char *id, bool lost, struct hw_err *e)
{
	autofree struct store_layer *layers = NULL;
	size_t n = 0;
	int r;

	if (lost)
		return report_lost_layer(v, id, e);
	r = store_image_layers(v->store, id, &layers, &n, e);
	for (size_t i = 0; r >= 0 && i < n; i++)
		if (is_damaged(v, &layers[i]))
			r = report_layer(v, id, &layers[i],
					 map_find(v->reports, layers[i].chain_id), VERIFY_GOOD, e);
	return r;
}

/* Verifies the damaged layers again, or all layers if @all is true, and reports their states. */
static int report_repaired(struct verifier *v, const char *id, bool all, struct hw_err *e)
{
	autofree struct store_layer *layers = NULL;
	size_t n = 0;
	int r;

	r = store_image_layers(v->store, id, &layers, &n, e);
	if (r <= 0)
		return r; /* 0: the image was removed meanwhile */
	for (size_t i = 0; i < n; i++) {
		const struct verify_report *report = NULL;

		if (!all && !is_damaged(v, &layers[i]))
			continue;
		free_report(map_take(v->reports, layers[i].chain_id));
		r = check_layer(v, &layers[i], &report, e);
		if (r < 0)
			return r;
		r = report_layer(v, id, &layers[i], report, VERIFY_REPAIRED, e);
		if (r < 0)
			return r;
	}
	return 0;
}

/* ---- images ----------------------------------------------------------------- */

static int verify_image(struct verifier *v, const struct store_image *image, struct hw_err *e)
{
	struct hw_err later;
	bool lost = false;
	int r;

	r = check_image(v, image->id, &lost, e);
	if (r < 0)
		return r;
	if (lost && is_removed(v, image->id))
		return 0;
	if (lost && !v->request->repair)
		return report_lost_layer(v, image->id, e);
	if (r == 0 && !lost)
		return 0;
	r = repair_image(v, image, e);
	if (r == 0)
		return report_repaired(v, image->id, lost, e);
	/* the reason is returned, whether or not the state can be reported */
	if (report_damaged(v, image->id, lost, &later) < 0)
		log_debug("image %s: %s", image->id, later.msg);
	return r;
}

/* Return: 0 if the next image can be verified; or @r */
static int note_failure(struct verifier *v, const struct store_image *image, int r,
			const struct hw_err *e)
{
	if (v->stop || r == -ECANCELED || time_has_passed(v->request->how.deadline))
		return r;
	if (v->n_failed++ == 0)
		v->first = *e;
	else
		log_event(LOG_WARN, "image could not be verified or repaired", "image", image->id,
			  "reason", e->msg, NULL);
	return 0;
}

/* Return: 0, or the error of the first image that could not be verified or repaired */
static int end_verification(const struct verifier *v, struct hw_err *e)
{
	if (v->n_failed == 0)
		return 0;
	*e = v->first;
	if (v->n_failed > 1)
		err_ctx(e, "%zu images could not be verified or repaired, the first because of",
			v->n_failed);
	return e->code;
}

int verify_images(const struct verify_request *request, struct hw_err *e)
{
	AUTO(store_snapshot_put)
	const struct store_snapshot *snap = store_snapshot_get(request->store);
	AUTO(verifier_done)
	struct verifier v = { .request = request,
			      .store = request->store,
			      .reports = map_new(free_report) };
	bool all = request->n_images == 0;

	for (size_t i = 0; i < (all ? snap->n : request->n_images); i++) {
		const struct store_image *image = all ? snap->images[i] : NULL;
		int r;

		if (!all) {
			r = store_snapshot_find_any(snap, request->images[i], &image, e);
			if (r < 0)
				return r;
			if (r == 0)
				return err_text(e, -ENODATA, "image \"%.256s\" not found",
						request->images[i]);
		}
		r = verify_image(&v, image, e);
		if (r < 0 && note_failure(&v, image, r, e) < 0)
			return r;
	}
	return end_verification(&v, e);
}
