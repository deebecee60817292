/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api/message.h - encodes protobuf-c messages, and decodes them from untrusted bytes
 *
 * What:  message_decode() adds checks that protobuf-c lacks. protobuf-c accepts strings
 *        that are not UTF-8 or contain a NUL, and any number of empty elements, and
 *        allocates memory for each of them. Here the bytes are checked before
 *        protobuf-c unpacks them.
 * Rules: errors of message_decode() are STATUS_INVALID_ARGUMENT and name the message
 *        type and, for strings, the field. Unknown fields are skipped.
 */
#ifndef API_MESSAGE_H
#define API_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>

#include <protobuf-c/protobuf-c.h>

#include "base/buf.h"
#include "base/err.h"

/* Limits on the number of fields in a message and its nested messages. A field may use about 50
 * bytes of memory. A list of 10,000 containers with all their fields has half a million fields. */
#define MESSAGE_RESPONSE_MAX 1000000
#define MESSAGE_REQUEST_MAX  50000

/* Overwrites *ret without freeing its old contents. */
void message_encode(const ProtobufCMessage *message, struct buf *ret);
/* @max is the maximum number of fields: MESSAGE_REQUEST_MAX or MESSAGE_RESPONSE_MAX. The caller
 * frees *ret_message with message_free(). */
int message_decode(const ProtobufCMessageDescriptor *type, const struct buf *bytes, size_t max,
		   ProtobufCMessage **ret_message, struct hw_err *e);
void message_free(ProtobufCMessage *message);

AUTO_DEFINE(message_free, ProtobufCMessage);

#endif
