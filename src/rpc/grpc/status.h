/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rpc/grpc/status.h - how a gRPC call ended: a code, and a text for people
 *
 * What:  the codes; struct hw_err into a code and back; what an HTTP or HTTP/2
 *        error means as a code; the text as it travels in grpc-message.
 * Rules: in struct hw_err a code is e->wire in the domain HW_DOMAIN_GRPC; any
 *        other error has the code of its errno, from the one table in status.c.
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

const char *status_name(int code); /* "NOT_FOUND"; "UNKNOWN" for what is no code */

/* Return: the negative errno nearest to @code, which must not be STATUS_OK */
int status_set(struct hw_err *e, enum status_code code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
enum status_code status_of(const struct hw_err *e);

/* gRPC's own tables: http-grpc-status-mapping.md, and "Errors" of PROTOCOL-HTTP2.md */
enum status_code status_from_http(int status);
enum status_code status_from_h2(uint32_t error_code);

void status_text_encode(const char *text, struct buf *b); /* percent-encoded, appended */
char *status_text_decode(const char *value);		  /* what is no encoding stays as it is */

#endif
