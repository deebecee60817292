/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/http/handle.h - libcurl handles, set up for one transfer
 */
#ifndef FETCH_HTTP_HANDLE_H
#define FETCH_HTTP_HANDLE_H

#include <curl/curl.h>

#include "fetch/http/certs.h"
#include "fetch/http/http.h"
#include "fetch/http/url.h"

struct http {
	CURL *curl;
	CURLM *multi; /* used by ranges.c; NULL: not created yet */
	const struct certs *certs;
	int idle_ms;
	bool proxied; /* through a proxy on this machine: the peer is the proxy, not the server */
	char error[CURL_ERROR_SIZE];
};

/* Refuses connections to loopback addresses. */
struct http_guard {
	bool on;
	bool refused; /* a connection was refused */
};

/* Set all options of a handle except the callbacks for the response. @origin: the origin of @url;
 * @authorized: send the request's authorization; @guard: borrowed until the transfer has ended.
 * Return: the headers, which the caller frees after the transfer */
struct curl_slist *http_handle_prepare(CURL *curl, const struct http *h,
				       const struct http_request *request, const char *url,
				       const struct url_origin *origin, bool authorized,
				       struct http_guard *guard);
/* Convert an error of libcurl. @message: text of CURLOPT_ERRORBUFFER, or "". Return: negative
 * errno, see http_perform() */
int http_curl_error(CURLcode code, const char *message, struct hw_err *e);

#endif
