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
	int idle_ms, slow_ms;
	char error[CURL_ERROR_SIZE];
};

/* Refuses to connect to servers that the server that named them may not lead to (scope.h). Checks the
 * addresses to which libcurl connects, whatever a name resolves to, and those of open connections
 * that libcurl uses again. Names are resolved by the proxy if there is one; then only addresses in
 * URLs are checked (url_check_redirect()). */
struct http_guard {
	enum scope from; /* of the server that has named the URL */
	bool proxied;	 /* set by http_handle_prepare() */
	bool refused;	 /* a connection was refused ... */
	enum scope to;	 /* ... to an address of this scope */
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
