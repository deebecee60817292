/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rpc/grpc/header.c - the headers of one call that mean something to gRPC
 *
 * How:   a table from names to what is kept of them. HTTP/2's own rules (lower
 *        case, order, doubled pseudo headers) are nghttp2's to enforce.
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

static void keep(char **member, const char *value)
{
	free(*member);
	*member = str_copy(value);
}

static void on_method(struct header *h, const char *value)
{
	h->is_post = str_equal(value, "POST");
}

static void on_path(struct header *h, const char *value)
{
	keep(&h->path, value);
}

static void on_content_type(struct header *h, const char *value)
{
	static const char type[] = "application/grpc";
	char after = str_starts(value, type) ? value[strlen(type)] : '-';

	h->is_grpc = after == '\0' || after == '+' || after == ';';
}

static void on_encoding(struct header *h, const char *value)
{
	keep(&h->encoding, value);
}

static void on_timeout(struct header *h, const char *value)
{
	h->bad_timeout = !timeout_parse(value, &h->timeout);
}

static void on_http(struct header *h, const char *value)
{
	long long n;

	h->http = str_to_int64(value, 100, 999, &n) ? (int)n : 0;
}

static void on_status(struct header *h, const char *value)
{
	long long n;

	h->status = str_to_int64(value, 0, INT32_MAX, &n) ? (int)n : STATUS_UNKNOWN;
}

static void on_text(struct header *h, const char *value)
{
	free(h->text);
	h->text = status_text_decode(value);
}

static const struct {
	const char *name;
	void (*on)(struct header *h, const char *value);
} fields[] = {
	{ ":method", on_method },	  { ":path", on_path },
	{ ":status", on_http },		  { "content-type", on_content_type },
	{ "grpc-encoding", on_encoding }, { "grpc-timeout", on_timeout },
	{ "grpc-status", on_status },	  { "grpc-message", on_text },
};

void header_init(struct header *h)
{
	*h = (struct header){ .timeout = TIME_NEVER, .status = -1 };
}

void header_done(struct header *h)
{
	free(h->path);
	free(h->encoding);
	free(h->text);
	header_init(h);
}

/**
 * header_add() - one field, of headers or trailers
 * @h:         what was seen before
 * @name:      in lower case
 * @name_len:  of it
 * @value:     of the field; one with a NUL in it is dropped
 * @value_len: of it
 */
void header_add(struct header *h, const char *name, size_t name_len, const char *value,
		size_t value_len)
{
	h->size += name_len + value_len + FIELD_OVERHEAD;
	if (strlen(value) != value_len)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
		if (strcmp(fields[i].name, name) == 0)
			fields[i].on(h, value);
}

/**
 * header_check_encoding() - we know no compression
 *
 * Return: 0, or STATUS_UNIMPLEMENTED as compression.md asks of a server
 */
int header_check_encoding(const struct header *h, struct hw_err *e)
{
	if (!h->encoding || str_equal(h->encoding, "identity"))
		return 0;
	return status_set(e, STATUS_UNIMPLEMENTED,
			  "grpc-encoding \"%s\" is not supported, only \"identity\"", h->encoding);
}

/**
 * header_check_request() - is this a call that can be served
 * @h:        all of its headers
 * @size_max: more than this, as HTTP/2 counts, is refused
 * @ret_http: the :status of the refusal
 * @e:        the grpc-status of it
 *
 * Return: 0, or an error
 */
int header_check_request(const struct header *h, size_t size_max, int *ret_http, struct hw_err *e)
{
	*ret_http = HTTP_OK;
	if (h->size > size_max)
		return status_set(e, STATUS_RESOURCE_EXHAUSTED,
				  "headers of %zu bytes are longer than the limit of %zu", h->size,
				  size_max);
	if (!h->is_post) {
		*ret_http = HTTP_METHOD_NOT_ALLOWED;
		return status_set(e, STATUS_INTERNAL, "the method of a gRPC call is POST");
	}
	if (!h->is_grpc) {
		*ret_http = HTTP_UNSUPPORTED_MEDIA;
		return status_set(e, STATUS_INTERNAL,
				  "the content-type of a gRPC call is application/grpc");
	}
	if (h->bad_timeout)
		return status_set(e, STATUS_INTERNAL, "malformed grpc-timeout");
	return header_check_encoding(h, e);
}
