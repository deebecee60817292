/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rpc/grpc/frame.h - messages in a stream of bytes: a flag, a length, the message
 *
 * What:  cuts bytes, as they come, into messages. Length-Prefixed-Message of
 *        PROTOCOL-HTTP2.md: one byte that says "compressed", four of length, in
 *        network order.
 * Rules: what a length claims is not believed: memory grows with the bytes that
 *        came. Starts zeroed except for max.
 */
#ifndef RPC_GRPC_FRAME_H
#define RPC_GRPC_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

#define FRAME_PREFIX 5

struct frame {
	uint32_t max; /* bytes of a message */
	uint8_t prefix[FRAME_PREFIX];
	size_t prefix_len;  /* how much of it is here */
	struct buf message; /* how much of it is here */
};

void frame_done(struct frame *f);
void frame_prefix(uint8_t prefix[FRAME_PREFIX], size_t len); /* of a message to send */
bool frame_is_between(const struct frame *f);		     /* messages: the stream may end here */

/* Take bytes off the front of *data. Return: 1 f->message is whole, take it, then call again; 0 all
 * bytes are used; else the error is a status: too long, or compressed though nobody said how. */
int frame_feed(struct frame *f, const uint8_t **data, size_t *len, struct hw_err *e);
void frame_next(struct frame *f); /* after a whole message */

#endif
