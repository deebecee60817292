/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api/message.h - messages of protobuf-c to bytes and back, the bytes being a stranger's
 *
 * What:  protobuf-c believes what it unpacks: strings of any bytes, and a NUL that
 *        cuts one short; millions of empty elements, each with its allocation.
 *        Here bytes are looked through before they are unpacked.
 * Rules: an error of message_decode() is STATUS_INVALID_ARGUMENT and says which
 *        field. Fields that we do not know are skipped.
 */
#ifndef API_MESSAGE_H
#define API_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>

#include <protobuf-c/protobuf-c.h>

#include "base/buf.h"
#include "base/err.h"

/* Fields of one message, all its parts counted, each of which may cost some 50 bytes. Of an answer: a list
 * of 10,000 containers with all that is known of them has half a million. */
#define MESSAGE_ANSWER_MAX  1000000
#define MESSAGE_REQUEST_MAX 50000

void message_encode(const ProtobufCMessage *message, struct buf *ret);
int message_decode(const ProtobufCMessageDescriptor *type, const struct buf *bytes, size_t max,
		   ProtobufCMessage **ret_message, struct hw_err *e);
void message_free(ProtobufCMessage *message);

AUTO_DEFINE(message_free, ProtobufCMessage);

#endif
