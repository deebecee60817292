/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/http/url.h - URLs: their origin, and which redirects are allowed
 */
#ifndef FETCH_HTTP_URL_H
#define FETCH_HTTP_URL_H

#include <stdbool.h>

#include "base/err.h"
#include "base/mem.h"
#include "fetch/http/scope.h"

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
/* Return: false if the host is a name */
bool url_origin_address(const struct url_origin *o, struct hw_ip *ret_ip);
/* Names are not resolved: except for those of localhost, they are taken for remote. */
enum scope url_origin_scope(const struct url_origin *o);

/* Check whether a redirect is allowed, by scheme and host. The address that a name resolves to is
 * checked before the connection is made (struct http_guard). @scope: of the server @from; @url: the
 * URL of @to, for the error. Return: 0, or -EPERM */
int url_check_redirect(const struct url_origin *from, const struct url_origin *to, enum scope scope,
		       const char *url, struct hw_err *e);
/* The error for a redirect to an address of the scope @to. Return: -EPERM */
int url_refuse_redirect(enum scope to, const char *url, struct hw_err *e);
/* The URL without parts that may be secret, user information and query, for a message. The caller
 * frees the result. */
char *url_for_message(const char *url);
/* The URL of a Location header, resolved relative to @base; an invalid @location is returned
 * unchanged. The caller frees the result. */
char *url_join(const char *base, const char *location);
char *url_escape(const char *text); /* for a URL's query; the caller frees the result */

AUTO_VALUE_DEFINE(url_origin_done, struct url_origin);

#endif
