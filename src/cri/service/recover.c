/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cri/service/recover.c - hawser.v1.Images/Recover: rebuild the database of the image store
 */
#include "cri/service/services.h"

#include "api/call.h"
#include "api/hawser-v1.pb-c.h"
#include "base/log.h"
#include "base/str.h"

static int send_response(struct rpc_call *call, const struct store_snapshot *snap,
			 const struct store_recovery *result, struct hw_err *e)
{
	Hawser__V1__RecoverResponse response = HAWSER__V1__RECOVER_RESPONSE__INIT;
	autofree Hawser__V1__LoadedImage *images = mem_new((snap->n + 1) * sizeof(*images));
	autofree Hawser__V1__LoadedImage **list =
		mem_new((snap->n + 1) * sizeof(Hawser__V1__LoadedImage *));

	for (size_t i = 0; i < snap->n; i++) {
		const struct store_image *image = snap->images[i];
		const struct hw_strings *names = image->tags.n ? &image->tags : &image->digests;
		Hawser__V1__LoadedImage *m = &images[response.n_images];

		if (image->damaged)
			continue;
		hawser__v1__loaded_image__init(m);
		m->id = (char *)image->id;
		m->names = names->v;
		m->n_names = names->n;
		list[response.n_images++] = m;
	}
	response.images = list;
	response.needed = result->lost;
	response.layers = result->layers;
	response.unknown_layers = result->unknown_layers;
	response.unrecovered = (char *)str_or(result->unrecovered, "");
	response.missing = result->missing.v;
	response.n_missing = result->missing.n;
	return api_send(call, &response.base, e);
}

int serve_recover(const void *ctx, struct rpc_call *call, const ProtobufCMessage *message,
		  struct hw_err *e)
{
	const struct image_service *s = ctx;
	AUTO(store_recovery_done) struct store_recovery result = { 0 };
	AUTO(store_snapshot_put) const struct store_snapshot *snap = NULL;
	autofree char *layers = NULL;
	int r;

	(void)message;
	r = store_recover(s->store, &result, e);
	if (r < 0)
		return r;
	snap = store_snapshot_get(s->store);
	layers = str_printf("%zu", result.layers);
	if (result.lost)
		log_event(LOG_INFO, "image store recovered", "layers", layers, NULL);
	if (result.unrecovered)
		log_event(LOG_WARN, "layers or images could not be recovered", "directory",
			  result.unrecovered, NULL);
	/* the client may have gone: the names are not known after this */
	for (size_t i = 0; i < result.missing.n; i++)
		log_event(LOG_WARN, "image could not be recovered: pull it again", "image",
			  result.missing.v[i], NULL);
	return send_response(call, snap, &result, e);
}
