/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rpc/grpc/frame.c - messages in a stream of bytes: a flag, a length, the message
 */
#include "rpc/grpc/frame.h"

#include <arpa/inet.h>
#include <string.h>

#include "rpc/grpc/status.h"

void frame_done(struct frame *f)
{
	buf_done(&f->message);
}

/**
 * frame_prefix() - what goes before a message
 * @prefix: filled
 * @len:    of the message; the caller has bounded it
 */
void frame_prefix(uint8_t prefix[FRAME_PREFIX], size_t len)
{
	uint32_t n = htonl((uint32_t)len);

	prefix[0] = 0;
	memcpy(prefix + 1, &n, sizeof(n));
}

/**
 * frame_is_between() - whether no message is half here
 */
bool frame_is_between(const struct frame *f)
{
	return f->prefix_len == 0;
}

static uint32_t frame_length(const struct frame *f)
{
	uint32_t n;

	memcpy(&n, f->prefix + 1, sizeof(n));
	return ntohl(n);
}

static size_t take(const uint8_t **data, size_t *len, size_t wanted)
{
	size_t n = *len < wanted ? *len : wanted;

	*data += n;
	*len -= n;
	return n;
}

static int frame_check(const struct frame *f, struct hw_err *e)
{
	if (f->prefix[0] != 0)
		return status_set(e, STATUS_INTERNAL,
				  "a message is marked as compressed, but grpc-encoding names no "
				  "compression");
	if (frame_length(f) > f->max)
		return status_set(e, STATUS_RESOURCE_EXHAUSTED,
				  "a message of %u bytes is longer than the limit of %u",
				  frame_length(f), f->max);
	return 0;
}

/**
 * frame_feed() - some more bytes of the stream
 * @f:    the state
 * @data: moved past what was used
 * @len:  what is left there
 * @e:    the error
 */
int frame_feed(struct frame *f, const uint8_t **data, size_t *len, struct hw_err *e)
{
	const uint8_t *from = *data;
	size_t n;
	int r;

	if (f->prefix_len < FRAME_PREFIX) {
		n = take(data, len, FRAME_PREFIX - f->prefix_len);
		memcpy(f->prefix + f->prefix_len, from, n);
		f->prefix_len += n;
		if (f->prefix_len < FRAME_PREFIX)
			return 0;
		r = frame_check(f, e);
		if (r < 0)
			return r;
	}
	from = *data;
	n = take(data, len, frame_length(f) - f->message.len);
	buf_add(&f->message, from, n);
	return f->message.len == frame_length(f);
}

/**
 * frame_next() - forget the message that was whole
 */
void frame_next(struct frame *f)
{
	buf_done(&f->message);
	f->message = (struct buf){ 0 };
	f->prefix_len = 0;
}
