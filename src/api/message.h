/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api/message.h - protobuf-c messages from and to untrusted bytes
 *
 * What:  encode, and decode with checks that protobuf-c lacks: it accepts strings that
 *        are not UTF-8 or contain a NUL, and any number of empty elements, each of
 *        which it allocates. Here bytes are checked before they are unpacked.
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

/* Limits on the number of fields in a message, nested messages included; a field may cost some 50
 * bytes. A list of 10,000 containers with all their fields has half a million. */
#define MESSAGE_RESPONSE_MAX 1000000
#define MESSAGE_REQUEST_MAX  50000

void message_encode(const ProtobufCMessage *message, struct buf *ret); /* *ret is overwritten */
/* @max is one of the limits above. The caller frees *ret_message with message_free(). */
int message_decode(const ProtobufCMessageDescriptor *type, const struct buf *bytes, size_t max,
		   ProtobufCMessage **ret_message, struct hw_err *e);
void message_free(ProtobufCMessage *message);

AUTO_DEFINE(message_free, ProtobufCMessage);

#endif
