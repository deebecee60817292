/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rpc/grpc/status.h - gRPC status codes and messages
 *
 * What:  conversion between struct hw_err and status codes; status codes for HTTP
 *        and HTTP/2 errors; encoding of the grpc-message header.
 * Rules: an error of the domain HW_DOMAIN_GRPC has its status code in e->wire. Any other error is
 *        converted by its errno, with the table in status.c.
 */
#ifndef RPC_GRPC_STATUS_H
#define RPC_GRPC_STATUS_H

#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

/* https://github.com/grpc/grpc/blob/master/doc/statuscodes.md */
enum status_code {
	STATUS_OK = 0,
	STATUS_CANCELLED = 1,
	STATUS_UNKNOWN = 2,
	STATUS_INVALID_ARGUMENT = 3,
	STATUS_DEADLINE_EXCEEDED = 4,
	STATUS_NOT_FOUND = 5,
	STATUS_ALREADY_EXISTS = 6,
	STATUS_PERMISSION_DENIED = 7,
	STATUS_RESOURCE_EXHAUSTED = 8,
	STATUS_FAILED_PRECONDITION = 9,
	STATUS_ABORTED = 10,
	STATUS_OUT_OF_RANGE = 11,
	STATUS_UNIMPLEMENTED = 12,
	STATUS_INTERNAL = 13,
	STATUS_UNAVAILABLE = 14,
	STATUS_DATA_LOSS = 15,
	STATUS_UNAUTHENTICATED = 16,
};

/* Return: the name in the specification, such as "NOT_FOUND"; "UNKNOWN" for an unknown code */
const char *status_name(int code);

/* Sets a gRPC error. The message is the formatted text; no errno text is added. An unknown code is
 * stored as STATUS_UNKNOWN. STATUS_OK is not allowed.
 * Return: the negative errno nearest to @code */
int status_set(struct hw_err *e, enum status_code code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/*
 * Converts an error to the status code that is sent to a client.
 *
 * -ENOENT becomes STATUS_INTERNAL, because it usually means that a file or program is missing on
 * the server. For an object that the client asked for, use status_set(STATUS_NOT_FOUND) or
 * -ENODATA.
 *
 * Return: never STATUS_OK
 */
enum status_code status_from_err(const struct hw_err *e);

/* Converts an HTTP status, for a response without grpc-status: http-grpc-status-mapping.md */
enum status_code status_from_http(int status);
/* Converts an HTTP/2 error code, for a stream that was reset before its trailers: section "Errors"
 * of PROTOCOL-HTTP2.md */
enum status_code status_from_h2(uint32_t error_code);

/* Appends the text to @b, percent-encoded to printable ASCII as grpc-message requires. */
void status_text_encode(const char *text, struct buf *b);
/* Decodes a grpc-message. Invalid encoding is copied unchanged, as gRPC requires. "%00" is also
 * copied unchanged, because a NUL would truncate the text. Return: the text, which the caller
 * frees */
char *status_text_decode(const char *value);

#endif
