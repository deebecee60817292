/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cri/service/save.c - hawser.v1.Images/Save: save images to an archive
 *
 * Rules: the requested format is ignored: the archive is both an OCI image layout and a
 *        docker save archive.
 */
#include "cri/service/services.h"

#include "api/call.h"
#include "api/hawser-v1.pb-c.h"
#include "cri/daemon.h"
#include "cri/executables.h"
#include "image/archive/save.h"
#include "rpc/grpc/status.h"

static int send_piece(void *ctx, const void *data, size_t len, struct hw_err *e)
{
	Hawser__V1__SaveResponse response = HAWSER__V1__SAVE_RESPONSE__INIT;

	response.data.data = (uint8_t *)data;
	response.data.len = len;
	return api_send(ctx, &response.base, e);
}

int serve_save(struct daemon *d, struct rpc_call *call, const ProtobufCMessage *message,
	       struct hw_err *e)
{
	const Hawser__V1__SaveRequest *request = (const Hawser__V1__SaveRequest *)message;
	AUTO(store_snapshot_put) const struct store_snapshot *snap = store_snapshot_get(d->store);
	autofree const struct store_image **images =
		mem_new((request->n_images + 1) * sizeof(struct store_image *));
	autofree char *program = executable_helper("hawser-layer");
	const struct save_options how = {
		.program = program,
		.cancel_fd = rpc_cancel_fd(call),
		.deadline = rpc_deadline(call),
		.write = send_piece,
		.ctx = call,
	};
	int r;

	if (request->n_images == 0)
		return status_set(e, STATUS_INVALID_ARGUMENT, "missing image name");
	for (size_t i = 0; i < request->n_images; i++) {
		r = store_snapshot_find(snap, request->images[i], &images[i], e);
		if (r < 0)
			return r;
		if (r == 0)
			return status_set(e, STATUS_NOT_FOUND, "image \"%.256s\" not found",
					  request->images[i]);
	}
	return save_images(d->store, images, request->n_images, &how, e);
}
