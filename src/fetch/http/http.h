/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/http/http.h - bounded HTTP requests
 *
 * What:  one request and its response, sent with libcurl. Supports TLS with the system's
 *        certificates and with those of the host, proxies from the environment, and redirects.
 * Rules: a redirect sends neither Authorization nor a form to another server. Redirects from https
 *        to http, to addresses that the redirecting server may not lead us to (scope.h), and to
 *        other schemes are refused. The message of another server is not part of an error.
 *        -ECOMM and -EUSERS are errors that a retry may fix (http_may_retry()). No system call made
 *        here returns these two. Other temporary errors, such as -EAGAIN, are caused by this
 *        machine.
 *        A response that stalls, or is too slow (pace.h), times out.
 *        A struct http belongs to one thread.
 */
#ifndef FETCH_HTTP_HTTP_H
#define FETCH_HTTP_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hawser/field.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "fetch/http/certs.h"
#include "fetch/http/pace.h"
#include "fetch/http/scope.h"
#include "fetch/http/secrets.h"

struct http_response {
	int status;
	char *url;	   /* final URL, after redirects */
	bool cross_origin; /* url is on a different server than the request's URL */
	enum scope server; /* of the server's address; only if there is a challenge */
	enum scope from;   /* of the server that redirected to url; SCOPE_LOOPBACK: no redirect */
	char *content_type;
	char *location;			  /* Location header; NULL: none */
	struct hw_strings challenges;	  /* WWW-Authenticate */
	int retry_after;		  /* seconds; -1: none */
	int64_t length;			  /* Content-Length; -1: none */
	int64_t range_start, range_total; /* Content-Range; -1: none */
	struct buf body; /* set if there is no on_data(), and for an error response */
};

struct http_request {
	const char *url;
	const char *accept;	   /* NULL: anything */
	const char *authorization; /* value of the header; NULL: none */
	const char *form;	   /* body of a POST; NULL: send a GET */
	enum scope from;     /* of the server that has named the URL; SCOPE_LOOPBACK: the user */
	bool has_range;	     /* request only the bytes first to last */
	int64_t first, last; /* last = -1: to the end */
	size_t body_max;     /* maximum size of the body, if there is no on_data() */
	struct pace *pace;   /* of the transfer that the request is a part of; or NULL */
	/* Set these to stream the body of a 2xx response instead of storing it. on_head() is called
	 * once, before on_data(). A negative result stops the transfer. */
	int (*on_head)(void *ctx, const struct http_response *response, struct hw_err *e);
	int (*on_data)(void *ctx, const void *data, size_t len, struct hw_err *e);
	void *ctx;
};

struct http;

int http_global_init(struct hw_err *e); /* must be called before threads start */
/* Let libcurl load what it needs for its first transfer; OpenSSL then reads its configuration file.
 * Errors are ignored: they occur again, and are reported, when libcurl is used. */
void http_preload(void);
/* @certs is borrowed; @idle_ms: timeout if almost nothing is received; @slow_ms: see pace_check() */
struct http *http_new(const struct certs *certs, int idle_ms, int slow_ms);
void http_free(struct http *h);
/* Send a request and follow redirects. Return: 0, whatever the HTTP status is; the error of
 * on_head() or on_data(); -ECOMM: no connection; -ETIMEDOUT: stalled or too slow; -EPROTO: TLS error; -EPERM:
 * refused redirect; -ENOKEY: unusable certificate files of the host; -EFBIG: the body is larger
 * than body_max */
int http_perform(struct http *h, const struct http_request *request,
		 struct http_response *ret_response, struct hw_err *e);
void http_response_done(struct http_response *r);
/* Convert a response whose status is not 2xx to an error, with the registry's message if there is
 * one and cross_origin is not set. The message contains none of @secrets. Return: negative errno, see
 * struct job_failed in image/protocol/job.h; -EIO if the status has no errno of its own */
int http_status_error(const struct http_response *r, const struct secrets *secrets,
		      struct hw_err *e);
bool http_may_retry(int error);

AUTO_DEFINE(http_free, struct http);
AUTO_VALUE_DEFINE(http_response_done, struct http_response);

#endif
