/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rpc/grpc/frame.h - length-prefixed messages in a byte stream
 *
 * What:  splits received bytes into messages. The format is Length-Prefixed-Message of
 *        PROTOCOL-HTTP2.md: one byte that tells whether the message is compressed, the length as
 *        four bytes in network order, and the message.
 * Rules: memory is allocated for received bytes only, whatever length the prefix claims. A struct
 *        frame is initialized with zeros and max.
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
	uint32_t max; /* maximum size of a message */
	uint8_t prefix[FRAME_PREFIX];
	size_t prefix_len;  /* bytes of the prefix received so far */
	struct buf message; /* bytes of the message received so far */
};

void frame_done(struct frame *f);
/* Writes the prefix of a message of @len bytes. @len must fit into 32 bits. */
void frame_prefix(uint8_t prefix[FRAME_PREFIX], size_t len);
/* May the stream end here? Return: false if a part of a message was received */
bool frame_is_between(const struct frame *f);

/*
 * Consumes bytes from the front of *data, updating *data and *len.
 *
 * Return: 1 if f->message is complete: the caller takes it, calls frame_next(), then frame_feed()
 * again; 0 if all bytes were consumed; an error with a status code if the message is larger than
 * the limit or compressed
 */
int frame_feed(struct frame *f, const uint8_t **data, size_t *len, struct hw_err *e);
/* Drops the complete message and expects the next prefix. */
void frame_next(struct frame *f);

#endif
