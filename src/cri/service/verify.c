/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cri/service/verify.c - hawser.v1.Images/Verify: verify and repair stored layers
 *
 * How:   layers are verified one after the other, each once for all images that share
 *        it. To repair an image, it is pulled again by its digest, and the pulled layers
 *        replace the damaged ones. A damaged layer stays until it is replaced.
 * Rules: images are repaired by digest only, because a tag may have moved to another
 *        image since the first pull.
 */
#include "cri/service/services.h"

#include <errno.h>
#include <string.h>

#include "api/call.h"
#include "api/hawser-v1.pb-c.h"
#include "base/log.h"
#include "base/map.h"
#include "base/str.h"
#include "base/time.h"
#include "cri/daemon.h"
#include "cri/executables.h"
#include "image/config.h"
#include "image/reference.h"
#include "image/store/verify.h"
#include "rpc/grpc/status.h"

/* The state of one call. */
struct verifier {
	struct daemon *daemon;
	struct rpc_call *call;
	bool repair;
	char *program;
	struct map *reports; /* maps a chain ID to a struct verify_report */
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
	free(v->program);
}

AUTO_VALUE_DEFINE(verifier_done, struct verifier);

/* ---- responses ---------------------------------------------------------------------- */

static int send_state(struct verifier *v, const char *id, const char *diff_id,
		      Hawser__V1__VerifyResponse__State state, const struct verify_report *report,
		      struct hw_err *e)
{
	Hawser__V1__VerifyResponse response = HAWSER__V1__VERIFY_RESPONSE__INIT;

	response.image_id = (char *)id;
	response.diff_id = (char *)diff_id;
	response.state = state;
	response.files = (uint64_t)report->files;
	response.bytes = (uint64_t)report->bytes;
	response.n_damaged = report->damaged.n;
	response.damaged = report->damaged.v;
	return api_send(v->call, &response.base, e);
}

/* @good: the state of a layer without damage */
static Hawser__V1__VerifyResponse__State layer_state(const struct store_layer *layer,
						     const struct verify_report *report,
						     Hawser__V1__VerifyResponse__State good)
{
	if (report->n_damaged > 0)
		return HAWSER__V1__VERIFY_RESPONSE__STATE__DAMAGED;
	return layer->rebuildable ? good : HAWSER__V1__VERIFY_RESPONSE__STATE__NOT_CHECKED;
}

/* ---- one layer ---------------------------------------------------------------------- */

static int check_layer(struct verifier *v, const struct store_layer *layer,
		       const struct verify_report **ret_report, struct hw_err *e)
{
	const struct verify_options how = { v->program, rpc_cancel_fd(v->call),
					    rpc_deadline(v->call) };
	struct verify_report *report = map_find(v->reports, layer->chain_id);
	int r = 0;

	if (!report) {
		report = mem_new(sizeof(*report));
		r = verify_layer(v->daemon->store, layer, &how, report, e);
		if (r < 0) {
			free(report);
			return r;
		}
		map_set(v->reports, layer->chain_id, report);
	}
	*ret_report = report;
	return 0;
}

/* ---- one image ---------------------------------------------------------------------- */

/* Verifies all layers and sends their states; with v->repair, the states of damaged layers are sent
 * after the repair. Return: the number of layers to repair; *ret_lost is true if a layer is
 * missing */
static int check_image(struct verifier *v, const char *id, bool *ret_lost, struct hw_err *e)
{
	AUTO(store_hold_free) struct store_hold *hold = store_hold_new(v->daemon->store);
	autofree struct store_layer *layers = NULL;
	int damaged = 0, r;
	size_t n = 0;

	r = store_image_layers(v->daemon->store, id, &layers, &n, e);
	for (size_t i = 0; r == 1 && i < n; i++)
		r = store_hold_layer(hold, layers[i].chain_id, e);
	*ret_lost = r == 0;
	if (r <= 0)
		return r;
	for (size_t i = 0; i < n; i++) {
		const struct verify_report *report = NULL;

		r = check_layer(v, &layers[i], &report, e);
		if (r < 0)
			return r;
		if (report->n_damaged > 0 && v->repair) {
			damaged++;
			continue;
		}
		r = send_state(
			v, id, layers[i].diff_id,
			layer_state(&layers[i], report, HAWSER__V1__VERIFY_RESPONSE__STATE__GOOD),
			report, e);
		if (r < 0)
			return r;
	}
	return damaged;
}

static bool is_damaged(const struct verifier *v, const struct store_layer *layer)
{
	const struct verify_report *report = map_find(v->reports, layer->chain_id);

	return report && report->n_damaged > 0;
}

/* Marks damaged layers, so that the next pull fetches them again. */
static int mark_damaged(struct verifier *v, const struct store_layer *layers, size_t n,
			struct hw_err *e)
{
	for (size_t i = 0; i < n; i++)
		if (is_damaged(v, &layers[i]) &&
		    store_layer_mark_suspect(v->daemon->store, layers[i].chain_id, e) < 0)
			return err_ctx(e, "replace layer %s", layers[i].diff_id);
	return 0;
}

/* A digest may refer to an index, so the request contains the platform of the image. All digests
 * are tried in turn, because a registry may no longer exist. */
static int pull_again(struct verifier *v, const struct store_image *image, struct hw_err *e)
{
	AUTO(image_config_free) struct image_config *config = NULL;
	AUTO(buf_done) struct buf bytes = { 0 };
	struct pull_request request = {
		.deadline = rpc_deadline(v->call),
		.cancel_fd = rpc_cancel_fd(v->call),
	};
	struct pull_result result;
	int r;

	r = store_image_read(v->daemon->store, image->id, NULL, &bytes, e);
	if (r <= 0)
		return r; /* 0: the image was removed meanwhile */
	r = image_config_parse(bytes.data, bytes.len, &config, e);
	if (r < 0)
		return r;
	request.platform = &config->platform;
	for (size_t i = 0; i < image->digests.n; i++) {
		request.reference = image->digests.v[i];
		r = pull(v->daemon->puller, &request, &result, e);
		if (r == 0 && !str_equal(result.id, image->id))
			r = status_set(e, STATUS_FAILED_PRECONDITION,
				       "%s: image ID mismatch: got %s, want %s", request.reference,
				       result.id, image->id);
		if (r == 0)
			log_event(LOG_INFO, "repaired", "image", request.reference, NULL);
		if (r == 0 || rpc_is_cancelled(v->call) || time_has_passed(request.deadline))
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
		return status_set(e, STATUS_FAILED_PRECONDITION,
				  "image %s: cannot repair: no repository digest is known",
				  image->id);
	r = store_image_layers(v->daemon->store, image->id, &layers, &n, e);
	if (r >= 0)
		r = mark_damaged(v, layers, n, e);
	if (r == 0)
		r = pull_again(v, image, e);
	for (size_t i = 0; i < n; i++)
		store_layer_clear_suspect(v->daemon->store, layers[i].chain_id);
	return r;
}

/* Verifies the damaged layers again, or all layers if @all is true, and sends their states. */
static int send_repaired(struct verifier *v, const char *id, bool all, struct hw_err *e)
{
	autofree struct store_layer *layers = NULL;
	size_t n = 0;
	int r;

	r = store_image_layers(v->daemon->store, id, &layers, &n, e);
	for (size_t i = 0; r == 1 && i < n; i++) {
		const struct verify_report *report = NULL;

		if (!all && !is_damaged(v, &layers[i]))
			continue;
		free_report(map_take(v->reports, layers[i].chain_id));
		if (check_layer(v, &layers[i], &report, e) < 0 ||
		    send_state(v, id, layers[i].diff_id,
			       layer_state(&layers[i], report,
					   HAWSER__V1__VERIFY_RESPONSE__STATE__REPAIRED),
			       report, e) < 0)
			return e->code;
	}
	return r < 0 ? r : 0;
}

/* Was the image removed after the call had started? */
static bool is_removed(struct verifier *v, const char *id)
{
	AUTO(store_snapshot_put)
	const struct store_snapshot *snap = store_snapshot_get(v->daemon->store);

	for (size_t i = 0; i < snap->n; i++)
		if (str_equal(snap->images[i]->id, id))
			return false;
	return true;
}

static int verify_image(struct verifier *v, const struct store_image *image, struct hw_err *e)
{
	char text[] = "a layer is missing", *list[] = { text };
	const struct verify_report report = { .n_damaged = 1, .damaged = { list, 1 } };
	bool lost = false;
	int r;

	r = check_image(v, image->id, &lost, e);
	if (r < 0)
		return r;
	if (lost && is_removed(v, image->id))
		return 0;
	if (lost && !v->repair)
		return send_state(v, image->id, "", HAWSER__V1__VERIFY_RESPONSE__STATE__DAMAGED,
				  &report, e);
	if (r == 0 && !lost)
		return 0;
	r = repair_image(v, image, e);
	return r < 0 ? r : send_repaired(v, image->id, lost, e);
}

/* ---- method ------------------------------------------------------------------------- */

/* store_snapshot_find() does not find images with missing layers, so search them here by ID and
 * name. */
static const struct store_image *find_image(const struct store_snapshot *snap, const char *text)
{
	AUTO(reference_done) struct reference ref = { 0 };
	const struct store_image *image = NULL;
	autofree char *name = NULL;
	struct hw_err e;

	if (store_snapshot_find(snap, text, &image, &e) == 1)
		return image;
	if (reference_parse(text, &ref, &e) == 0)
		name = reference_format(&ref);
	for (size_t i = 0; i < snap->n; i++) {
		image = snap->images[i];
		if (str_equal(image->id, text) || (name && (strings_has(&image->tags, name) ||
							    strings_has(&image->digests, name))))
			return image;
	}
	return NULL;
}

int serve_verify(struct daemon *d, struct rpc_call *call, const ProtobufCMessage *message,
		 struct hw_err *e)
{
	const Hawser__V1__VerifyRequest *request = (const Hawser__V1__VerifyRequest *)message;
	AUTO(store_snapshot_put) const struct store_snapshot *snap = store_snapshot_get(d->store);
	AUTO(verifier_done)
	struct verifier v = {
		.daemon = d,
		.call = call,
		.repair = request->repair,
		.program = executable_helper("hawser-layer"),
		.reports = map_new(free_report),
	};
	bool all = request->n_images == 0;
	int r = 0;

	for (size_t i = 0; r == 0 && i < (all ? snap->n : request->n_images); i++) {
		const struct store_image *image =
			all ? snap->images[i] : find_image(snap, request->images[i]);

		if (!image)
			return status_set(e, STATUS_NOT_FOUND, "image \"%.256s\" not found",
					  request->images[i]);
		r = verify_image(&v, image, e);
	}
	return r;
}
