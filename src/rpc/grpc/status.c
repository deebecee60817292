/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rpc/grpc/status.c - gRPC status codes and messages
 *
 * How:   all conversions use tables. The errno table is used in both directions: a status code is
 *        converted to the errno in the first row with this code.
 */
#include "rpc/grpc/status.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <nghttp2/nghttp2.h>

#include "base/mem.h"

static const char *const names[] = {
	[STATUS_OK] = "OK",
	[STATUS_CANCELLED] = "CANCELLED",
	[STATUS_UNKNOWN] = "UNKNOWN",
	[STATUS_INVALID_ARGUMENT] = "INVALID_ARGUMENT",
	[STATUS_DEADLINE_EXCEEDED] = "DEADLINE_EXCEEDED",
	[STATUS_NOT_FOUND] = "NOT_FOUND",
	[STATUS_ALREADY_EXISTS] = "ALREADY_EXISTS",
	[STATUS_PERMISSION_DENIED] = "PERMISSION_DENIED",
	[STATUS_RESOURCE_EXHAUSTED] = "RESOURCE_EXHAUSTED",
	[STATUS_FAILED_PRECONDITION] = "FAILED_PRECONDITION",
	[STATUS_ABORTED] = "ABORTED",
	[STATUS_OUT_OF_RANGE] = "OUT_OF_RANGE",
	[STATUS_UNIMPLEMENTED] = "UNIMPLEMENTED",
	[STATUS_INTERNAL] = "INTERNAL",
	[STATUS_UNAVAILABLE] = "UNAVAILABLE",
	[STATUS_DATA_LOSS] = "DATA_LOSS",
	[STATUS_UNAUTHENTICATED] = "UNAUTHENTICATED",
};

struct status_mapping {
	int64_t from;
	enum status_code code;
};

static const struct status_mapping errnos[] = {
	{ ECANCELED, STATUS_CANCELLED },
	{ EPROTO, STATUS_UNKNOWN },
	{ EINVAL, STATUS_INVALID_ARGUMENT },
	{ ETIMEDOUT, STATUS_DEADLINE_EXCEEDED },
	{ ENOENT, STATUS_NOT_FOUND },
	{ ENODATA, STATUS_NOT_FOUND },
	{ EEXIST, STATUS_ALREADY_EXISTS },
	{ EACCES, STATUS_PERMISSION_DENIED },
	{ EPERM, STATUS_PERMISSION_DENIED },
	{ EAGAIN, STATUS_RESOURCE_EXHAUSTED },
	{ ENOSPC, STATUS_RESOURCE_EXHAUSTED },
	{ EDQUOT, STATUS_RESOURCE_EXHAUSTED },
	{ EMFILE, STATUS_RESOURCE_EXHAUSTED },
	{ ENFILE, STATUS_RESOURCE_EXHAUSTED },
	{ EMSGSIZE, STATUS_RESOURCE_EXHAUSTED },
	{ EBUSY, STATUS_FAILED_PRECONDITION },
	{ EDEADLK, STATUS_ABORTED },
	{ ERANGE, STATUS_OUT_OF_RANGE },
	{ ENOSYS, STATUS_UNIMPLEMENTED },
	{ EOPNOTSUPP, STATUS_UNIMPLEMENTED },
	{ EIO, STATUS_INTERNAL },
	{ ECONNREFUSED, STATUS_UNAVAILABLE },
	{ ECONNRESET, STATUS_UNAVAILABLE },
	{ EPIPE, STATUS_UNAVAILABLE },
	{ EBADMSG, STATUS_DATA_LOSS },
	{ EKEYREJECTED, STATUS_UNAUTHENTICATED },
};

static const struct status_mapping http[] = {
	{ 400, STATUS_INTERNAL },	   { 401, STATUS_UNAUTHENTICATED },
	{ 403, STATUS_PERMISSION_DENIED }, { 404, STATUS_UNIMPLEMENTED },
	{ 429, STATUS_UNAVAILABLE },	   { 502, STATUS_UNAVAILABLE },
	{ 503, STATUS_UNAVAILABLE },	   { 504, STATUS_UNAVAILABLE },
};

static const struct status_mapping h2[] = {
	{ NGHTTP2_REFUSED_STREAM, STATUS_UNAVAILABLE },
	{ NGHTTP2_CANCEL, STATUS_CANCELLED },
	{ NGHTTP2_ENHANCE_YOUR_CALM, STATUS_RESOURCE_EXHAUSTED },
	{ NGHTTP2_INADEQUATE_SECURITY, STATUS_PERMISSION_DENIED },
};

static enum status_code find_code(const struct status_mapping *table, size_t n, int64_t from,
				  enum status_code fallback)
{
	for (size_t i = 0; i < n; i++)
		if (table[i].from == from)
			return table[i].code;
	return fallback;
}

const char *status_name(int code)
{
	return code >= 0 && (size_t)code < ARRAY_SIZE(names) ? names[code] : "UNKNOWN";
}

static int nearest_errno(enum status_code code)
{
	for (size_t i = 0; i < ARRAY_SIZE(errnos); i++)
		if (errnos[i].code == code)
			return (int)-errnos[i].from;
	return -EPROTO;
}

int status_set(struct hw_err *e, enum status_code code, const char *fmt, ...)
{
	char text[sizeof(e->msg)];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	err_text(e, nearest_errno(code), "%s", text);
	e->domain = HW_DOMAIN_GRPC;
	e->wire = (size_t)code < ARRAY_SIZE(names) ? (int)code : STATUS_UNKNOWN;
	return e->code;
}

enum status_code status_from_err(const struct hw_err *e)
{
	if (e->domain == HW_DOMAIN_GRPC)
		return e->wire > 0 ? (enum status_code)e->wire : STATUS_UNKNOWN;
	if (e->code == -ENOENT)
		return STATUS_INTERNAL;
	return find_code(errnos, ARRAY_SIZE(errnos), -e->code, STATUS_INTERNAL);
}

enum status_code status_from_http(int status)
{
	return find_code(http, ARRAY_SIZE(http), status, STATUS_UNKNOWN);
}

enum status_code status_from_h2(uint32_t error_code)
{
	return find_code(h2, ARRAY_SIZE(h2), error_code, STATUS_INTERNAL);
}

void status_text_encode(const char *text, struct buf *b)
{
	for (const unsigned char *p = (const unsigned char *)text; *p; p++) {
		if (*p < ' ' || *p > '~' || *p == '%')
			buf_printf(b, "%%%02X", *p);
		else
			buf_putc(b, (char)*p);
	}
}

static int hex_digit(char c)
{
	static const char digits[] = "0123456789abcdefABCDEF";
	const char *at;

	at = c ? strchr(digits, c) : NULL;
	if (!at)
		return -1;
	return (int)(at - digits < 16 ? at - digits : at - digits - 6);
}

char *status_text_decode(const char *value)
{
	AUTO(buf_done) struct buf b = { 0 };

	for (const char *p = value; *p; p++) {
		int high, low;

		high = *p == '%' ? hex_digit(p[1]) : -1;
		low = high >= 0 ? hex_digit(p[2]) : -1;
		if (low >= 0 && (high || low)) {
			buf_putc(&b, (char)(high << 4 | low));
			p += 2;
		} else {
			buf_putc(&b, *p);
		}
	}
	return buf_take(&b);
}
