/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cri/service/save.c - hawser.v1.Images/Save: images as an archive
 *
 * What:  whatever format is asked for, the one archive that is both.
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
	Hawser__V1__SaveResponse answer = HAWSER__V1__SAVE_RESPONSE__INIT;

	answer.data.data = (uint8_t *)data;
	answer.data.len = len;
	return api_send(ctx, &answer.base, e);
}

static int find_images(const struct store_snapshot *snap, const Hawser__V1__SaveRequest *asked,
		       const struct store_image **images, struct hw_err *e)
{
	for (size_t i = 0; i < asked->n_images; i++) {
		int r = store_snapshot_find(snap, asked->images[i], &images[i], e);

		if (r < 0)
			return r;
		if (r == 0)
			return status_set(e, STATUS_NOT_FOUND, "there is no image \"%.256s\"",
					  asked->images[i]);
	}
	return 0;
}

int serve_save(struct daemon *d, struct rpc_call *call, const ProtobufCMessage *message,
	       struct hw_err *e)
{
	const Hawser__V1__SaveRequest *asked = (const Hawser__V1__SaveRequest *)message;
	AUTO(store_snapshot_put) const struct store_snapshot *snap = store_snapshot_get(d->store);
	autofree const struct store_image **images =
		mem_new((asked->n_images + 1) * sizeof(struct store_image *));
	autofree char *program = executable_helper("hawser-layer");
	const struct save_how how = {
		.program = program,
		.cancel_fd = rpc_cancel_fd(call),
		.deadline = rpc_deadline(call),
		.write = send_piece,
		.ctx = call,
	};
	int r;

	if (asked->n_images == 0)
		return status_set(e, STATUS_INVALID_ARGUMENT, "the request names no image");
	r = find_images(snap, asked, images, e);
	return r < 0 ? r : save_images(d->store, images, asked->n_images, &how, e);
}
