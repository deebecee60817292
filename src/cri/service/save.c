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
#include "cri/service/executables.h"
#include "image/archive/save.h"
#include "rpc/grpc/status.h"

static int send_piece(void *ctx, const void *data, size_t len, struct hw_err *e)
{
	Hawser__V1__SaveResponse response = HAWSER__V1__SAVE_RESPONSE__INIT;

	response.data.data = (uint8_t *)data;
	response.data.len = len;
	return api_send(ctx, &response.base, e);
}

int serve_save(const void *ctx, struct rpc_call *call, const ProtobufCMessage *message,
	       struct hw_err *e)
{
	const struct image_service *s = ctx;
	const Hawser__V1__SaveRequest *request = (const Hawser__V1__SaveRequest *)message;
	autofree char *program = executable_helper("hawser-layer");
	const struct save_options how = {
		.program = program,
		.cancel_fd = rpc_cancel_fd(call),
		.deadline = rpc_deadline(call),
		.write = send_piece,
		.ctx = call,
	};

	if (request->n_images == 0)
		return status_set(e, STATUS_INVALID_ARGUMENT, "missing image name");
	return save_images(s->store, (const char *const *)request->images, request->n_images, &how,
			   e);
}
