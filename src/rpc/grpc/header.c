/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rpc/grpc/header.c - header fields of a gRPC call
 *
 * How:   a table of field names and functions that store the value. nghttp2 enforces
 *        the rules of HTTP/2: lower case, order, duplicate pseudo-headers.
 */
#include "rpc/grpc/header.h"

#include <string.h>

#include "base/str.h"
#include "base/time.h"
#include "rpc/grpc/status.h"
#include "rpc/grpc/timeout.h"

#define HTTP_OK			200
#define HTTP_METHOD_NOT_ALLOWED 405
#define HTTP_UNSUPPORTED_MEDIA	415
#define FIELD_OVERHEAD		32 /* RFC 9113 section 6.5.2, SETTINGS_MAX_HEADER_LIST_SIZE */

static void replace_string(char **member, const char *value)
{
	free(*member);
	*member = str_copy(value);
}

static void on_method(struct grpc_header *h, const char *value)
{
	h->is_post = str_equal(value, "POST");
}

static void on_path(struct grpc_header *h, const char *value)
{
	replace_string(&h->path, value);
}

static void on_content_type(struct grpc_header *h, const char *value)
{
	static const char type[] = "application/grpc";
	char after = str_starts(value, type) ? value[strlen(type)] : '-';

	h->is_grpc = after == '\0' || after == '+' || after == ';';
}

static void on_encoding(struct grpc_header *h, const char *value)
{
	replace_string(&h->encoding, value);
}

static void on_timeout(struct grpc_header *h, const char *value)
{
	h->bad_timeout = !timeout_parse(value, &h->timeout);
}

static void on_http(struct grpc_header *h, const char *value)
{
	long long n;

	h->http = str_to_int64(value, 100, 999, &n) ? (int)n : 0;
}

static void on_status(struct grpc_header *h, const char *value)
{
	long long n;

	h->status = str_to_int64(value, 0, INT32_MAX, &n) ? (int)n : STATUS_UNKNOWN;
}

static void on_text(struct grpc_header *h, const char *value)
{
	free(h->text);
	h->text = status_text_decode(value);
}

static const struct {
	const char *name;
	void (*on)(struct grpc_header *h, const char *value);
} fields[] = {
	{ ":method", on_method },	  { ":path", on_path },
	{ ":status", on_http },		  { "content-type", on_content_type },
	{ "grpc-encoding", on_encoding }, { "grpc-timeout", on_timeout },
	{ "grpc-status", on_status },	  { "grpc-message", on_text },
};

void grpc_header_init(struct grpc_header *h)
{
	*h = (struct grpc_header){ .timeout = TIME_NEVER, .status = -1 };
}

void grpc_header_done(struct grpc_header *h)
{
	free(h->path);
	free(h->encoding);
	free(h->text);
	grpc_header_init(h);
}

void grpc_header_add(struct grpc_header *h, const char *name, size_t name_len, const char *value,
		     size_t value_len)
{
	h->size += name_len + value_len + FIELD_OVERHEAD;
	if (strlen(value) != value_len)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
		if (strcmp(fields[i].name, name) == 0)
			fields[i].on(h, value);
}

int grpc_header_check_encoding(const struct grpc_header *h, struct hw_err *e)
{
	if (!h->encoding || str_equal(h->encoding, "identity"))
		return 0;
	return status_set(e, STATUS_UNIMPLEMENTED,
			  "unsupported grpc-encoding \"%s\", expected \"identity\"", h->encoding);
}

int grpc_header_check_request(const struct grpc_header *h, size_t size_max, int *ret_http,
			      struct hw_err *e)
{
	*ret_http = HTTP_OK;
	if (h->size > size_max)
		return status_set(e, STATUS_RESOURCE_EXHAUSTED,
				  "headers too large: %zu bytes, limit %zu", h->size, size_max);
	if (!h->is_post) {
		*ret_http = HTTP_METHOD_NOT_ALLOWED;
		return status_set(e, STATUS_INTERNAL, "HTTP method must be POST");
	}
	if (!h->is_grpc) {
		*ret_http = HTTP_UNSUPPORTED_MEDIA;
		return status_set(e, STATUS_INTERNAL, "content-type must be application/grpc");
	}
	if (h->bad_timeout)
		return status_set(e, STATUS_INTERNAL, "malformed grpc-timeout");
	return grpc_header_check_encoding(h, e);
}
