/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rpc/grpc/header.h - header fields of a gRPC call
 *
 * What:  collects the header fields of one direction of a call, including trailers. Stores the
 *        values that gRPC defines, and checks the headers of a request.
 * Rules: for other metadata (traceparent, user-agent), only the size is counted.
 */
#ifndef RPC_GRPC_HEADER_H
#define RPC_GRPC_HEADER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/mem.h"

struct grpc_header {
	size_t size;	  /* size of all fields so far, as HTTP/2 counts it */
	bool is_post;	  /* :method */
	bool is_grpc;	  /* content-type */
	bool bad_timeout; /* grpc-timeout was malformed */
	char *path;	  /* :path; NULL if missing */
	char *encoding;	  /* grpc-encoding; NULL if missing */
	int64_t timeout;  /* grpc-timeout, ns; TIME_NEVER if missing */
	int http;	  /* :status; 0 if missing or invalid */
	int status;	  /* grpc-status; -1 if missing */
	char *text;	  /* grpc-message, decoded; NULL if missing */
};

void grpc_header_init(struct grpc_header *h);
void grpc_header_done(struct grpc_header *h);
/* Adds a field of the headers or trailers. Both strings are NUL terminated, the name is in lower
 * case. A value that contains a NUL is ignored, but its size is counted. */
void grpc_header_add(struct grpc_header *h, const char *name, size_t name_len, const char *value,
		     size_t value_len);

/* Checks whether a request can be served. @size_max: maximum of h->size. *ret_http is always set,
 * to the :status of the response: 200, or an HTTP error if the request is not gRPC.
 * Return: 0, or an error with a status code */
int grpc_header_check_request(const struct grpc_header *h, size_t size_max, int *ret_http,
			      struct hw_err *e);
/* Checks that the encoding is identity, the only supported one. Return: 0, or an error with
 * STATUS_UNIMPLEMENTED, which compression.md requires of a server */
int grpc_header_check_encoding(const struct grpc_header *h, struct hw_err *e);

AUTO_VALUE_DEFINE(grpc_header_done, struct grpc_header);

#endif
