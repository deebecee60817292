/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/http/url.h - URLs: their origin, and which redirects are allowed
 */
#ifndef FETCH_HTTP_URL_H
#define FETCH_HTTP_URL_H

#include <stdbool.h>

#include "base/err.h"
#include "base/mem.h"

/* The server of a URL. */
struct url_origin {
	char *scheme; /* "http" or "https" */
	char *host;   /* a name, an IPv4 address, or "[::1]" */
	char *port;   /* the scheme's default if the URL has none */
};

/* Return: 0, or -EPERM: invalid URL, or a scheme other than http and https */
int url_origin_parse(const char *url, struct url_origin *ret_origin, struct hw_err *e);
void url_origin_done(struct url_origin *o);
bool url_origin_equal(const struct url_origin *a, const struct url_origin *b);
/* Is the host a loopback address or a localhost name? Names are not resolved. */
bool url_origin_is_local(const struct url_origin *o);

/* Check whether a redirect is allowed, by scheme and host name. The address is checked before the
 * connection is made (struct http_guard). @remote: the server @from is not on this machine; @url:
 * the URL of @to, for the error. Return: 0, or -EPERM */
int url_check_redirect(const struct url_origin *from, const struct url_origin *to, bool remote,
		       const char *url, struct hw_err *e);
/* Is @address a loopback address, or 0.0.0.0 or ::, which also connect to this machine? */
bool url_is_local_address(const char *address);
/* The URL of a Location header, resolved relative to @base; an invalid @location is returned
 * unchanged. The caller frees the result. */
char *url_join(const char *base, const char *location);
char *url_escape(const char *text); /* for a URL's query; the caller frees the result */

AUTO_VALUE_DEFINE(url_origin_done, struct url_origin);

#endif
