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
struct place {
	char *scheme; /* "http" or "https" */
	char *host;   /* a name, an address, or "[::1]" */
	char *port;   /* also where the URL has none */
};

int place_parse(const char *url, struct place *ret_place, struct hw_err *e);
void place_done(struct place *p);
bool place_equal(const struct place *a, const struct place *b);
bool place_is_local(const struct place *p); /* by its name alone */
int place_check_way(const struct place *from, const struct place *to, bool remote, const char *url,
		    struct hw_err *e);
bool url_is_local_address(const char *address);
char *url_join(const char *base, const char *location); /* relative to where it was said */
char *url_escape(const char *text);

AUTO_VALUE_DEFINE(place_done, struct place);

#endif
