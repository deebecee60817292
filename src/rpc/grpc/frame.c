/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rpc/grpc/frame.c - length-prefixed messages in a byte stream
 */
#include "rpc/grpc/frame.h"

#include <arpa/inet.h>
#include <string.h>

#include "rpc/grpc/status.h"

void frame_done(struct frame *f)
{
	buf_done(&f->message);
}

void frame_prefix(uint8_t prefix[FRAME_PREFIX], size_t len)
{
	uint32_t n = htonl((uint32_t)len);

	prefix[0] = 0;
	memcpy(prefix + 1, &n, sizeof(n));
}

bool frame_is_between(const struct frame *f)
{
	return f->prefix_len == 0;
}

static uint32_t message_length(const struct frame *f)
{
	uint32_t n;

	memcpy(&n, f->prefix + 1, sizeof(n));
	return ntohl(n);
}

/* Return: number of bytes skipped, at most @wanted */
static size_t skip_bytes(const uint8_t **data, size_t *len, size_t wanted)
{
	size_t n = *len < wanted ? *len : wanted;

	*data += n;
	*len -= n;
	return n;
}

int frame_feed(struct frame *f, const uint8_t **data, size_t *len, struct hw_err *e)
{
	const uint8_t *from = *data;
	size_t n;

	if (f->prefix_len < FRAME_PREFIX) {
		n = skip_bytes(data, len, FRAME_PREFIX - f->prefix_len);
		memcpy(f->prefix + f->prefix_len, from, n);
		f->prefix_len += n;
		if (f->prefix_len < FRAME_PREFIX)
			return 0;
		if (f->prefix[0] != 0)
			return status_set(e, STATUS_INTERNAL,
					  "message marked as compressed, but grpc-encoding is "
					  "identity or missing");
		if (message_length(f) > f->max)
			return status_set(e, STATUS_RESOURCE_EXHAUSTED,
					  "message too large: %u bytes, limit %u",
					  message_length(f), f->max);
	}
	from = *data;
	n = skip_bytes(data, len, message_length(f) - f->message.len);
	buf_add(&f->message, from, n);
	return f->message.len == message_length(f);
}

void frame_next(struct frame *f)
{
	buf_done(&f->message);
	f->message = (struct buf){ 0 };
	f->prefix_len = 0;
}
