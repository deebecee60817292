/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api/fuzz-message.c - fuzz test: decoding, encoding and decoding again gives the same message
 */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "api/cri-v1.pb-c.h"
#include "api/message.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const ProtobufCMessageDescriptor *const types[] = {
	&runtime__v1__run_pod_sandbox_request__descriptor,
	&runtime__v1__create_container_request__descriptor,
	&runtime__v1__list_containers_response__descriptor,
	&runtime__v1__list_pod_sandbox_stats_response__descriptor,
	&runtime__v1__pull_image_request__descriptor,
	&runtime__v1__status_response__descriptor,
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO(buf_done) struct buf bytes = { 0 }, again = { 0 }, twice = { 0 };
	AUTO(message_free) ProtobufCMessage *message = NULL, *back = NULL;
	const ProtobufCMessageDescriptor *type;
	struct hw_err e;
	int r;

	if (size == 0)
		return 0;
	type = types[data[0] % ARRAY_SIZE(types)];
	buf_add(&bytes, data + 1, size - 1);
	if (message_decode(type, &bytes, MESSAGE_REQUEST_MAX, &message, &e) < 0)
		return 0;
	message_encode(message, &again);
	r = message_decode(type, &again, MESSAGE_REQUEST_MAX, &back, &e);
	assert(r == 0);
	message_encode(back, &twice);
	assert(again.len == twice.len && memcmp(again.data, twice.data, again.len) == 0);
	return 0;
}
