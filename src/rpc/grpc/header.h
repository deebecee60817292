/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rpc/grpc/header.h - the headers of one call that mean something to gRPC
 *
 * What:  takes the header fields of one direction as they come, trailers too,
 *        keeps what matters, and judges a request.
 * Rules: metadata of others (traceparent, user-agent) is counted and dropped.
 *        Starts with header_init().
 */
#ifndef RPC_GRPC_HEADER_H
#define RPC_GRPC_HEADER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/mem.h"

struct header {
	size_t size;	  /* so far, as HTTP/2 counts */
	bool is_post;	  /* :method */
	bool is_grpc;	  /* content-type */
	bool bad_timeout; /* grpc-timeout was there and made no sense */
	char *path;	  /* NULL: none */
	char *encoding;	  /* grpc-encoding, NULL: none */
	int64_t timeout;  /* ns; TIME_NEVER: none */
	int http;	  /* :status; 0: none */
	int status;	  /* grpc-status; -1: none */
	char *text;	  /* grpc-message, decoded; NULL: none */
};

void header_init(struct header *h);
void header_done(struct header *h);
/* Strings end with a NUL. */
void header_add(struct header *h, const char *name, size_t name_len, const char *value,
		size_t value_len);

/* Is this a request that can be served? Return: 0; or an error with a status; *ret_http is the
 * :status to answer with, other than 200 where the peer does not even speak gRPC. */
int header_check_request(const struct header *h, size_t size_max, int *ret_http, struct hw_err *e);
/* The same of an answer's encoding. */
int header_check_encoding(const struct header *h, struct hw_err *e);

AUTO_VALUE_DEFINE(header_done, struct header);

#endif
