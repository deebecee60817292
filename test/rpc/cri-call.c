/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cri-call SOCKET METHOD [REQUEST]: makes one unary CRI call and prints the response
 *
 * REQUEST is the encoded message in hex digits, by default an empty message. The response
 * is printed as one line "path = value" per field, such as "images.0.repo_tags.1 = a:b"
 * with the index of each element. A call that fails prints "CODE text" and exits with
 * status 1.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/call.h"
#include "api/cri-v1.pb-c.h"
#include "base/str.h"
#include "base/time.h"
#include "rpc/grpc/status.h"

#define TIMEOUT 60000 /* ms */

static void print_message(const ProtobufCMessage *m, const char *path);

static void print_value(const ProtobufCFieldDescriptor *f, const void *value, const char *path)
{
	switch (f->type) {
	case PROTOBUF_C_TYPE_MESSAGE:
		if (*(ProtobufCMessage *const *)value)
			print_message(*(ProtobufCMessage *const *)value, path);
		break;
	case PROTOBUF_C_TYPE_STRING:
		if (!str_empty(*(char *const *)value))
			printf("%s = %s\n", path, *(char *const *)value);
		break;
	case PROTOBUF_C_TYPE_INT64:
	case PROTOBUF_C_TYPE_UINT64:
		printf("%s = %" PRId64 "\n", path, *(const int64_t *)value);
		break;
	case PROTOBUF_C_TYPE_DOUBLE:
		printf("%s = %g\n", path, *(const double *)value);
		break;
	case PROTOBUF_C_TYPE_BYTES:
		printf("%s = %zu bytes\n", path, ((const ProtobufCBinaryData *)value)->len);
		break;
	default:
		printf("%s = %d\n", path, *(const int *)value);
	}
}

static size_t element_size(const ProtobufCFieldDescriptor *f)
{
	switch (f->type) {
	case PROTOBUF_C_TYPE_BYTES:
		return sizeof(ProtobufCBinaryData);
	case PROTOBUF_C_TYPE_INT64:
	case PROTOBUF_C_TYPE_UINT64:
	case PROTOBUF_C_TYPE_DOUBLE:
		return 8;
	case PROTOBUF_C_TYPE_STRING:
	case PROTOBUF_C_TYPE_MESSAGE:
		return sizeof(void *);
	default:
		return sizeof(int);
	}
}

static void print_field(const ProtobufCMessage *m, const ProtobufCFieldDescriptor *f,
			const char *path)
{
	const char *value = (const char *)m + f->offset;
	size_t n;

	if (f->label != PROTOBUF_C_LABEL_REPEATED) {
		print_value(f, value, path);
		return;
	}
	n = *(const size_t *)((const char *)m + f->quantifier_offset);
	for (size_t i = 0; i < n; i++) {
		autofree char *element = str_printf("%s.%zu", path, i);

		print_value(f, *(char *const *)value + i * element_size(f), element);
	}
}

static void print_message(const ProtobufCMessage *m, const char *path)
{
	for (unsigned i = 0; i < m->descriptor->n_fields; i++) {
		const ProtobufCFieldDescriptor *f = &m->descriptor->fields[i];
		autofree char *field = str_printf("%s%s%s", path, *path ? "." : "", f->name);

		print_field(m, f, field);
	}
}

static int decode_hex(const char *text, struct buf *b, struct hw_err *e)
{
	size_t len = strspn(text, "0123456789abcdef");

	if (text[len] || len % 2)
		return err_text(e, -EINVAL, "invalid hex digits: %s", text);
	for (; *text; text += 2) {
		const char pair[] = { text[0], text[1], '\0' };

		buf_putc(b, (char)strtoul(pair, NULL, 16));
	}
	return 0;
}

static int call_method(const char *path, const ProtobufCServiceDescriptor *service,
		       const ProtobufCMethodDescriptor *method, const char *hex, struct hw_err *e)
{
	AUTO(message_free) ProtobufCMessage *request = NULL, *response = NULL;
	AUTO(rpc_client_close) struct rpc_client *client = NULL;
	AUTO(buf_done) struct buf bytes = { 0 };
	int r = decode_hex(hex, &bytes, e);

	if (r == 0)
		r = message_decode(method->input, &bytes, MESSAGE_REQUEST_MAX, &request, e);
	if (r == 0)
		r = rpc_client_open(path, &client, e);
	if (r == 0)
		r = api_call(client, service, method->name, request, time_deadline(TIMEOUT),
			     &response, e);
	if (r == 0)
		print_message(response, "");
	return r;
}

int main(int argc, char **argv)
{
	static const ProtobufCServiceDescriptor *const services[] = {
		&runtime__v1__runtime_service__descriptor,
		&runtime__v1__image_service__descriptor,
	};
	struct hw_err e;

	for (size_t i = 0; argc >= 3 && i < ARRAY_SIZE(services); i++) {
		const ProtobufCMethodDescriptor *method =
			protobuf_c_service_descriptor_get_method_by_name(services[i], argv[2]);

		if (!method)
			continue;
		if (call_method(argv[1], services[i], method, argc > 3 ? argv[3] : "", &e) == 0)
			return 0;
		printf("%s %s\n", status_name((int)status_from_err(&e)), e.msg);
		return 1;
	}
	fprintf(stderr, "usage: cri-call SOCKET METHOD [REQUEST]\n");
	return 2;
}
