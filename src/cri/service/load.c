/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cri/service/load.c - hawser.v1.Images/Load: images out of an archive
 *
 * How:   the archive is kept as it comes; when it has ended, it is loaded.
 */
#include "cri/service/services.h"

#include "api/call.h"
#include "api/hawser-v1.pb-c.h"
#include "base/log.h"
#include "cri/daemon.h"
#include "cri/executables.h"
#include "image/archive/load.h"
#include "rpc/grpc/status.h"

static const char *format_of(const Hawser__V1__LoadRequest *first)
{
	switch (first->format) {
	case HAWSER__V1__ARCHIVE_FORMAT__ARCHIVE_OCI:
		return "oci";
	case HAWSER__V1__ARCHIVE_FORMAT__ARCHIVE_DOCKER:
		return "docker";
	default:
		return NULL;
	}
}

static int receive(struct rpc_call *call, ProtobufCMessage **ret, struct hw_err *e)
{
	return api_receive(call, &hawser__v1__load_request__descriptor, ret, e);
}

/* Return: 0 when all of it has come */
static int receive_rest(struct rpc_call *call, struct load *l, struct hw_err *e)
{
	for (;;) {
		AUTO(api_free) Hawser__V1__LoadRequest *piece = NULL;
		int r = receive(call, (ProtobufCMessage **)&piece, e);

		if (r <= 0)
			return r;
		r = load_add(l, piece->data.data, piece->data.len, e);
		if (r < 0)
			return r;
	}
}

static int answer(struct rpc_call *call, const struct load_result *result, struct hw_err *e)
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

static int load(struct rpc_call *call, const Hawser__V1__LoadRequest *first, struct load *l,
		struct hw_err *e)
{
	AUTO(load_result_done) struct load_result result = { 0 };
	struct load_request request = {
		.format = format_of(first),
		.names = (const char *const *)first->names,
		.n_names = first->n_names,
		.cancel_fd = rpc_cancel_fd(call),
	};
	int r = load_add(l, first->data.data, first->data.len, e);

	if (r == 0)
		r = receive_rest(call, l, e);
	if (r == 0)
		r = load_run(l, &request, &result, e);
	return r < 0 ? r : answer(call, &result, e);
}

int serve_load(struct daemon *d, struct rpc_call *call, const ProtobufCMessage *message,
	       struct hw_err *e)
{
	AUTO(config_unref) struct config *c = daemon_config(d);
	AUTO(api_free) Hawser__V1__LoadRequest *first = NULL;
	AUTO(load_free) struct load *l = NULL;
	autofree char *program = executable_helper("hawser-fetch");
	struct pull_options options = pull_options_from_config(c, program);
	int r = receive(call, (ProtobufCMessage **)&first, e);

	(void)message;
	if (r == 0)
		r = status_set(e, STATUS_INVALID_ARGUMENT, "the request has no archive");
	if (r > 0)
		r = load_new(d->store, &options, &l, e);
	return r < 0 ? r : load(call, first, l, e);
}
