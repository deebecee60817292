/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/http/url.h - where a URL leads, and whether we go there
 */
#ifndef FETCH_HTTP_URL_H
#define FETCH_HTTP_URL_H

#include <stdbool.h>

#include "base/err.h"
#include "base/mem.h"

/* The server of a URL. */
struct url_origin {
	char *scheme; /* "http" or "https" */
	char *host;   /* a name, an address, or "[::1]" */
	char *port;   /* also where the URL has none */
};

int url_origin_parse(const char *url, struct url_origin *ret_place, struct hw_err *e);
void url_origin_done(struct url_origin *p);
bool url_origin_equal(const struct url_origin *a, const struct url_origin *b);
bool url_origin_is_local(const struct url_origin *p); /* by its name alone */
int url_check_redirect(const struct url_origin *from, const struct url_origin *to, bool remote,
		       const char *url, struct hw_err *e);
bool url_is_local_address(const char *address);
char *url_join(const char *base, const char *location); /* relative to where it was said */
char *url_escape(const char *text);

AUTO_VALUE_DEFINE(url_origin_done, struct url_origin);

#endif
