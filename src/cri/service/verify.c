/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cri/service/verify.c - hawser.v1.Images/Verify: verify and repair stored layers
 */
#include "cri/service/services.h"

#include "api/call.h"
#include "api/hawser-v1.pb-c.h"
#include "cri/service/executables.h"
#include "image/pull/verify-images.h"

static int send_result(void *ctx, const struct verify_result *result, struct hw_err *e)
{
	static const Hawser__V1__VerifyResponse__State states[] = {
		[VERIFY_GOOD] = HAWSER__V1__VERIFY_RESPONSE__STATE__GOOD,
		[VERIFY_DAMAGED] = HAWSER__V1__VERIFY_RESPONSE__STATE__DAMAGED,
		[VERIFY_REPAIRED] = HAWSER__V1__VERIFY_RESPONSE__STATE__REPAIRED,
		[VERIFY_NOT_CHECKED] = HAWSER__V1__VERIFY_RESPONSE__STATE__NOT_CHECKED,
	};
	Hawser__V1__VerifyResponse response = HAWSER__V1__VERIFY_RESPONSE__INIT;

	response.image_id = (char *)result->image_id;
	response.diff_id = (char *)result->diff_id;
	response.state = states[result->state];
	response.files = (uint64_t)result->report->files;
	response.bytes = (uint64_t)result->report->bytes;
	response.n_damaged = result->report->damaged.n;
	response.damaged = result->report->damaged.v;
	return api_send(ctx, &response.base, e);
}

int serve_verify(const void *ctx, struct rpc_call *call, const ProtobufCMessage *message,
		 struct hw_err *e)
{
	const struct image_service *s = ctx;
	const Hawser__V1__VerifyRequest *received = (const Hawser__V1__VerifyRequest *)message;
	autofree char *program = executable_helper("hawser-layer");
	const struct verify_request request = {
		.store = s->store,
		.puller = s->puller,
		.images = (const char *const *)received->images,
		.n_images = received->n_images,
		.repair = received->repair,
		.how = { program, rpc_cancel_fd(call), rpc_deadline(call) },
		.report = send_result,
		.ctx = call,
	};

	return verify_images(&request, e);
}
