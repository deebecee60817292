/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cri/service/verify.c - hawser.v1.Images/Verify: hash again what is stored
 *
 * How:   layers are checked one after the other, each once for all images that share
 *        it. To repair, the image is pulled again by its digest, and what comes for a
 *        layer that is damaged takes its place. Nothing is given up before that.
 * Rules: a tag may be another image's by now: by a tag alone nothing is repaired.
 */
#include "cri/service/verify.h"

#include <errno.h>
#include <string.h>

#include "api/call.h"
#include "api/hawser-v1.pb-c.h"
#include "base/log.h"
#include "base/map.h"
#include "base/str.h"
#include "base/time.h"
#include "cri/daemon.h"
#include "cri/helper-program.h"
#include "image/config.h"
#include "image/pull/pull.h"
#include "image/reference.h"
#include "image/store/verify.h"
#include "rpc/grpc/status.h"

/* One call. */
struct verifier {
	struct daemon *daemon;
	struct rpc_call *call;
	bool repair;
	char *program;
	struct map *reports; /* chain id: struct verify_report */
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

/* ---- answers ------------------------------------------------------------------------ */

static int tell(struct verifier *v, const char *id, const char *diff_id,
		Hawser__V1__VerifyResponse__State state, const struct verify_report *report,
		struct hw_err *e)
{
	Hawser__V1__VerifyResponse answer = HAWSER__V1__VERIFY_RESPONSE__INIT;

	answer.image_id = (char *)id;
	answer.diff_id = (char *)diff_id;
	answer.state = state;
	answer.files = (uint64_t)report->files;
	answer.bytes = (uint64_t)report->bytes;
	answer.n_damaged = report->damaged.n;
	answer.damaged = report->damaged.v;
	return api_send(v->call, &answer.base, e);
}

static Hawser__V1__VerifyResponse__State state_of(const struct store_layer *layer,
						  const struct verify_report *report,
						  Hawser__V1__VerifyResponse__State good)
{
	if (report->n_damaged > 0)
		return HAWSER__V1__VERIFY_RESPONSE__STATE__DAMAGED;
	return layer->rebuildable ? good : HAWSER__V1__VERIFY_RESPONSE__STATE__NOT_CHECKED;
}

static int tell_lost(struct verifier *v, const char *id, struct hw_err *e)
{
	char text[] = "a layer has been lost", *list[] = { text };
	const struct verify_report report = { .n_damaged = 1, .damaged = { list, 1 } };

	return tell(v, id, "", HAWSER__V1__VERIFY_RESPONSE__STATE__DAMAGED, &report, e);
}

/* ---- one layer ---------------------------------------------------------------------- */

static int check_layer(struct verifier *v, const struct store_layer *layer,
		       const struct verify_report **ret_report, struct hw_err *e)
{
	const struct verify_how how = { v->program, rpc_over_fd(v->call), rpc_deadline(v->call) };
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

/* Hold the layers of an image while they are read. Return: as store_image_layers() */
static int hold_layers(struct verifier *v, const char *id, struct store_hold *hold,
		       struct store_layer **ret_layers, size_t *ret_n, struct hw_err *e)
{
	int r = store_image_layers(v->daemon->store, id, ret_layers, ret_n, e);

	for (size_t i = 0; r == 1 && i < *ret_n; i++)
		r = store_hold_layer(hold, (*ret_layers)[i].chain_id, e);
	return r;
}

/* ---- one image ---------------------------------------------------------------------- */

/* Tell of each layer; those that are damaged, if they are to be repaired, later.
 * Return: how many those are, or as hold_layers() failed */
static int check_image(struct verifier *v, const char *id, bool *ret_lost, struct hw_err *e)
{
	AUTO(store_hold_free) struct store_hold *hold = store_hold_new(v->daemon->store);
	autofree struct store_layer *layers = NULL;
	int damaged = 0, r;
	size_t n = 0;

	r = hold_layers(v, id, hold, &layers, &n, e);
	*ret_lost = r == 0;
	for (size_t i = 0; r == 1 && i < n; i++) {
		const struct verify_report *report = NULL;

		if (check_layer(v, &layers[i], &report, e) < 0)
			return e->code;
		if (report->n_damaged > 0 && v->repair)
			damaged++;
		else if (tell(v, id, layers[i].diff_id,
			      state_of(&layers[i], report,
				       HAWSER__V1__VERIFY_RESPONSE__STATE__GOOD),
			      report, e) < 0)
			return e->code;
	}
	return r < 0 ? r : damaged;
}

static bool is_damaged(const struct verifier *v, const struct store_layer *layer)
{
	const struct verify_report *report = map_find(v->reports, layer->chain_id);

	return report && report->n_damaged > 0;
}

/* A pull is to fetch them. */
static int doubt_damaged(struct verifier *v, const struct store_layer *layers, size_t n,
			 struct hw_err *e)
{
	for (size_t i = 0; i < n; i++)
		if (is_damaged(v, &layers[i]) &&
		    store_layer_mark_suspect(v->daemon->store, layers[i].chain_id, e) < 0)
			return err_ctx(e, "replace layer %s", layers[i].diff_id);
	return 0;
}

/* Return: 1, 0: it has been removed meanwhile */
static int read_config(struct verifier *v, const char *id, struct image_config **ret_config,
		       struct hw_err *e)
{
	AUTO(buf_done) struct buf bytes = { 0 };
	int r = store_image_read(v->daemon->store, id, NULL, &bytes, e);

	if (r != 1)
		return r;
	return image_config_parse(bytes.data, bytes.len, ret_config, e) < 0 ? e->code : 1;
}

/* The digest may be that of an index, so it has to be said which of its images is meant. Of several
 * names one may be of a registry that is gone. */
static int pull_again(struct verifier *v, const struct store_image *image, struct hw_err *e)
{
	AUTO(image_config_free) struct image_config *config = NULL;
	struct pull_request request = {
		.deadline = rpc_deadline(v->call),
		.cancel_fd = rpc_over_fd(v->call),
	};
	struct pull_result result;
	int r = read_config(v, image->id, &config, e);

	if (r <= 0)
		return r;
	request.platform = &config->platform;
	for (size_t i = 0; i < image->digests.n; i++) {
		request.reference = image->digests.v[i];
		r = pull(v->daemon->puller, &request, &result, e);
		if (r == 0 && !str_equal(result.id, image->id))
			r = status_set(e, STATUS_FAILED_PRECONDITION,
				       "%s is another image now than %s", request.reference,
				       image->id);
		if (r == 0)
			log_event(LOG_INFO, "repaired", "image", request.reference, NULL);
		if (r == 0 || rpc_is_over(v->call) || time_is_over(request.deadline))
			break;
	}
	return r;
}

static int repair(struct verifier *v, const struct store_image *image, struct hw_err *e)
{
	autofree struct store_layer *layers = NULL;
	size_t n = 0;
	int r;

	if (image->digests.n == 0)
		return status_set(e, STATUS_FAILED_PRECONDITION,
				  "image %s has no name with a digest to pull it by", image->id);
	r = store_image_layers(v->daemon->store, image->id, &layers, &n, e);
	if (r >= 0)
		r = doubt_damaged(v, layers, n, e);
	if (r == 0)
		r = pull_again(v, image, e);
	for (size_t i = 0; i < n; i++)
		store_layer_clear_suspect(v->daemon->store, layers[i].chain_id);
	return r;
}

/* Of what was damaged, what it is now. */
static int tell_repaired(struct verifier *v, const char *id, bool all, struct hw_err *e)
{
	autofree struct store_layer *layers = NULL;
	size_t n = 0;
	int r = store_image_layers(v->daemon->store, id, &layers, &n, e);

	for (size_t i = 0; r == 1 && i < n; i++) {
		const struct verify_report *report = NULL;

		if (!all && !is_damaged(v, &layers[i]))
			continue;
		free_report(map_take(v->reports, layers[i].chain_id));
		if (check_layer(v, &layers[i], &report, e) < 0 ||
		    tell(v, id, layers[i].diff_id,
			 state_of(&layers[i], report, HAWSER__V1__VERIFY_RESPONSE__STATE__REPAIRED),
			 report, e) < 0)
			return e->code;
	}
	return r < 0 ? r : 0;
}

/* Has it been removed meanwhile? */
static bool is_gone(struct verifier *v, const char *id)
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
	bool lost = false;
	int r = check_image(v, image->id, &lost, e);

	if (r < 0)
		return r;
	if (lost && is_gone(v, image->id))
		return 0;
	if (lost && !v->repair)
		return tell_lost(v, image->id, e);
	if (r == 0 && !lost)
		return 0;
	r = repair(v, image, e);
	return r < 0 ? r : tell_repaired(v, image->id, lost, e);
}

/* ---- the call ----------------------------------------------------------------------- */

/* Those that have lost something are not found by the store, but have their names. */
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

static int verify_named(struct verifier *v, const struct store_snapshot *snap,
			const Hawser__V1__VerifyRequest *asked, struct hw_err *e)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < asked->n_images; i++) {
		const struct store_image *image = find_image(snap, asked->images[i]);

		if (!image)
			return status_set(e, STATUS_NOT_FOUND, "there is no image \"%.256s\"",
					  asked->images[i]);
		r = verify_image(v, image, e);
	}
	return r;
}

int verify_serve(struct daemon *d, struct rpc_call *call, const ProtobufCMessage *message,
		 struct hw_err *e)
{
	const Hawser__V1__VerifyRequest *asked = (const Hawser__V1__VerifyRequest *)message;
	AUTO(store_snapshot_put) const struct store_snapshot *snap = store_snapshot_get(d->store);
	AUTO(verifier_done)
	struct verifier v = {
		.daemon = d,
		.call = call,
		.repair = asked->repair,
		.program = helper_find("hawser-layer"),
		.reports = map_new(free_report),
	};
	int r = 0;

	if (asked->n_images > 0)
		return verify_named(&v, snap, asked, e);
	for (size_t i = 0; r == 0 && i < snap->n; i++)
		r = verify_image(&v, snap->images[i], e);
	return r;
}
