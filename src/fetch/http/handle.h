/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/http/handle.h - a handle of libcurl for one question to one server
 */
#ifndef FETCH_HTTP_HANDLE_H
#define FETCH_HTTP_HANDLE_H

#include <curl/curl.h>

#include "fetch/http/certs.h"
#include "fetch/http/http.h"
#include "fetch/http/url.h"

struct http {
	CURL *curl;
	CURLM *multi; /* of ranges.c; NULL: not needed so far */
	const struct certs *certs;
	int idle_ms;
	bool proxied; /* by a proxy on this machine: an address says nothing of a server */
	char error[CURL_ERROR_SIZE];
};

/* What must not lead to this machine, by address; set for one question. */
struct http_guard {
	bool on;
	bool refused; /* it did */
};

/* @guard is borrowed while the question lasts */
void http_handle_guard(CURL *curl, const struct http *h, struct http_guard *guard);

/* Everything but callbacks. The list of headers is to be freed when it is done. */
struct curl_slist *http_handle_prepare(CURL *curl, const struct http *h,
				       const struct http_request *q, const char *url,
				       const struct url_origin *place, bool authorized);
int http_curl_error(CURLcode code, const char *why, struct hw_err *e);

#endif
