/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/http/http.h - ask a server, within bounds
 *
 * What:  one question and its answer, by libcurl: TLS with the system's and the
 *        host's own certificates, proxies from the environment, redirects.
 * Rules: a redirect takes neither Authorization nor a form to another server; it
 *        leads neither from https to http, nor from elsewhere to this machine, nor
 *        to anything but http and https.
 *        What may go better the next time is -ECOMM or -EBUSY, which no call to the
 *        kernel gives that is made here: -EAGAIN is this machine's.
 *        An answer that stops coming is not waited for.
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

struct http_response {
	int status;
	char *url;   /* that it came from, after redirects */
	bool moved;  /* that is another server */
	bool remote; /* the first server asked is not on this machine */
	char *content_type;
	char *location;		      /* of a redirect */
	struct hw_strings challenges; /* WWW-Authenticate */
	int retry_after;	      /* seconds; -1: not said */
	int64_t length;		      /* of the body; -1: not said */
	int64_t from, total;	      /* Content-Range; -1: none */
	struct buf body;	      /* of a question that takes no stream, or of an error */
};

struct http_request {
	const char *url;
	const char *accept;	   /* NULL: anything */
	const char *authorization; /* the header's value; NULL: none */
	const char *form;	   /* to be posted; NULL: GET */
	bool guarded;		   /* it must not lead to this machine */
	bool ranged;		   /* only the bytes from first to last */
	int64_t first, last;	   /* last: -1 for the end */
	size_t max;		   /* of the body that is kept */
	/* instead: a stream. head() is called once, before data(), for an answer of 2xx */
	int (*head)(void *ctx, const struct http_response *answer, struct hw_err *e);
	int (*data)(void *ctx, const void *data, size_t len, struct hw_err *e);
	void *ctx;
};

struct http;

int http_global_init(struct hw_err *e); /* before threads */
/* Have what libcurl prepares the first time behind us. What fails does so again when it is needed,
 * and is told then. */
void http_preload(void);
struct http *http_new(const struct certs *certs, int idle_ms);
void http_free(struct http *h);
int http_perform(struct http *h, const struct http_request *q, struct http_response *ret_answer,
		 struct hw_err *e);
void http_response_done(struct http_response *a);
int http_status_error(const struct http_response *a, struct hw_err *e);
bool http_may_retry(int r); /* of an error: may it go better the next time? */

AUTO_DEFINE(http_free, struct http);
AUTO_VALUE_DEFINE(http_response_done, struct http_response);

#endif
