/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cri/service/load.c - hawser.v1.Images/Load: load images from an archive
 *
 * How:   the archive is stored while it is received, and loaded when it is complete.
 */
#include "cri/service/services.h"

#include "api/call.h"
#include "api/hawser-v1.pb-c.h"
#include "base/log.h"
#include "cri/service/executables.h"
#include "image/archive/load.h"
#include "rpc/grpc/status.h"

static const char *format_name(Hawser__V1__ArchiveFormat format)
{
	switch (format) {
	case HAWSER__V1__ARCHIVE_FORMAT__ARCHIVE_OCI:
		return "oci";
	case HAWSER__V1__ARCHIVE_FORMAT__ARCHIVE_DOCKER:
		return "docker";
	default:
		return NULL;
	}
}

static int receive_request(struct rpc_call *call, Hawser__V1__LoadRequest **ret, struct hw_err *e)
{
	return api_receive(call, &hawser__v1__load_request__descriptor, (ProtobufCMessage **)ret,
			   e);
}

static int send_response(struct rpc_call *call, const struct load_result *result, struct hw_err *e)
{
	Hawser__V1__LoadResponse response = HAWSER__V1__LOAD_RESPONSE__INIT;
	autofree Hawser__V1__LoadedImage *images = mem_new((result->n + 1) * sizeof(*images));
	autofree Hawser__V1__LoadedImage **list =
		mem_new((result->n + 1) * sizeof(Hawser__V1__LoadedImage *));

	for (size_t i = 0; i < result->n; i++) {
		hawser__v1__loaded_image__init(&images[i]);
		images[i].id = result->images[i].id;
		images[i].names = result->images[i].names.v;
		images[i].n_names = result->images[i].names.n;
		list[i] = &images[i];
		log_event(LOG_INFO, "loaded", "id", images[i].id, "image",
			  images[i].n_names ? images[i].names[0] : "", NULL);
	}
	response.images = list;
	response.n_images = result->n;
	return api_send(call, &response.base, e);
}

int serve_load(const void *ctx, struct rpc_call *call, const ProtobufCMessage *message,
	       struct hw_err *e)
{
	const struct image_service *s = ctx;
	AUTO(shared_unref) const struct config *c = slot_get(s->config);
	AUTO(api_free) Hawser__V1__LoadRequest *first = NULL;
	AUTO(load_free) struct load *l = NULL;
	AUTO(load_result_done) struct load_result result = { 0 };
	autofree char *program = executable_helper("hawser-fetch");
	struct pull_options options = pull_options_from_config(c, program);
	struct load_request request;
	int r;

	(void)message;
	r = receive_request(call, &first, e);
	if (r == 0)
		return status_set(e, STATUS_INVALID_ARGUMENT, "empty request: missing archive");
	if (r < 0)
		return r;
	r = load_new(s->store, &options, &l, e);
	if (r < 0)
		return r;
	request = (struct load_request){
		.format = format_name(first->format),
		.names = (const char *const *)first->names,
		.n_names = first->n_names,
		.cancel_fd = rpc_cancel_fd(call),
	};
	r = load_add(l, first->data.data, first->data.len, e);
	if (r < 0)
		return r;
	for (;;) {
		AUTO(api_free) Hawser__V1__LoadRequest *piece = NULL;

		r = receive_request(call, &piece, e);
		if (r == 0)
			break; /* the archive is complete */
		if (r > 0)
			r = load_add(l, piece->data.data, piece->data.len, e);
		if (r < 0)
			return r;
	}
	r = load_run(l, &request, &result, e);
	return r < 0 ? r : send_response(call, &result, e);
}
