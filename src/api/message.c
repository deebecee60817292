/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api/message.c - encodes protobuf-c messages, and decodes them from untrusted bytes
 *
 * How:   check_message() checks the encoded message against the protobuf descriptor
 *        of its type. It allocates nothing and reads each byte once. Only messages
 *        that pass are unpacked by protobuf-c.
 * Rules: the descriptors limit the nesting. No message type contains itself today;
 *        DEPTH_MAX bounds the recursion if one ever does.
 */
#include "api/message.h"

#include <stdint.h>
#include <string.h>

#include "base/str.h"
#include "rpc/grpc/status.h"

#define DEPTH_MAX 32

/* Wire types. 3 and 4 are groups, which are obsolete and rejected. */
enum { VARINT = 0, FIXED64 = 1, BYTES = 2, FIXED32 = 5 };

struct wire_input {
	const uint8_t *at, *end;
	size_t *left; /* number of further fields allowed in the whole message */
	unsigned depth;
};

static bool read_varint(struct wire_input *in, uint64_t *ret)
{
	uint64_t n = 0;

	for (unsigned shift = 0; shift < 64 && in->at < in->end; shift += 7) {
		uint8_t byte = *in->at++;

		n |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80)) {
			*ret = n;
			return true;
		}
	}
	return false;
}

/* Skips one value. *ret_value is set to its bytes, except for wire type VARINT.
 * Return: false if the value is truncated or of an unsupported wire type */
static bool read_value(struct wire_input *in, unsigned wire, struct wire_input *ret_value)
{
	uint64_t len = wire == FIXED64 ? 8 : 4, unused;

	if (wire == VARINT)
		return read_varint(in, &unused);
	if (wire == BYTES && !read_varint(in, &len))
		return false;
	if ((wire != BYTES && wire != FIXED64 && wire != FIXED32) ||
	    len > (uint64_t)(in->end - in->at))
		return false;
	*ret_value = (struct wire_input){ in->at, in->at + len, in->left, in->depth + 1 };
	in->at += len;
	return true;
}

static bool is_utf8(const struct wire_input *value)
{
	const uint8_t *at = value->at;

	while (at < value->end) {
		size_t n = *at ? str_utf8_len((const char *)at) : 0;

		if (n == 0 || n > (size_t)(value->end - at))
			return false;
		at += n;
	}
	return true;
}

static int decode_error(const ProtobufCMessageDescriptor *type, const char *what, struct hw_err *e)
{
	return status_set(e, STATUS_INVALID_ARGUMENT, "%s: %s", type->name, what);
}

static int check_message(const ProtobufCMessageDescriptor *type, struct wire_input in,
			 struct hw_err *e)
{
	int r;

	if (in.depth > DEPTH_MAX)
		return decode_error(type, "message nested too deeply", e);
	while (in.at < in.end) {
		const ProtobufCFieldDescriptor *f;
		struct wire_input value = { 0 };
		uint64_t tag;

		if (!read_varint(&in, &tag) || tag >> 3 == 0 || tag > UINT32_MAX ||
		    !read_value(&in, tag & 7, &value))
			return decode_error(type, "malformed protobuf message", e);
		f = protobuf_c_message_descriptor_get_field(type, (unsigned)(tag >> 3));
		if ((*in.left)-- == 0) /* wraps: the messages around this one add their fields */
			return status_set(e, STATUS_INVALID_ARGUMENT, "%s.%s: too many fields",
					  type->name, f ? f->name : "unknown field");
		if (!f || (tag & 7) != BYTES)
			continue;
		if (f->type == PROTOBUF_C_TYPE_STRING && !is_utf8(&value))
			return status_set(e, STATUS_INVALID_ARGUMENT,
					  "%s.%s: string is not UTF-8 or contains a NUL",
					  type->name, f->name);
		if (f->type == PROTOBUF_C_TYPE_MESSAGE) {
			r = check_message(f->descriptor, value, e);
			if (r < 0)
				return *in.left == SIZE_MAX ? err_ctx(e, "%s", f->name) : r;
		}
	}
	return 0;
}

void message_encode(const ProtobufCMessage *message, struct buf *ret)
{
	struct buf b = { 0 };
	size_t len = protobuf_c_message_get_packed_size(message);

	protobuf_c_message_pack(message, (uint8_t *)buf_reserve(&b, len));
	buf_commit(&b, len);
	*ret = b;
}

int message_decode(const ProtobufCMessageDescriptor *type, const struct buf *bytes, size_t max,
		   ProtobufCMessage **ret_message, struct hw_err *e)
{
	const uint8_t *data = (const uint8_t *)str_or(bytes->data, "");
	ProtobufCMessage *message;
	int r;

	r = check_message(type, (struct wire_input){ data, data + bytes->len, &max, 0 }, e);
	if (r < 0)
		return r;
	message = protobuf_c_message_unpack(type, NULL, bytes->len, data);
	if (!message)
		return decode_error(type, "malformed protobuf message", e);
	*ret_message = message;
	return 0;
}

void message_free(ProtobufCMessage *message)
{
	if (message)
		protobuf_c_message_free_unpacked(message, NULL);
}
