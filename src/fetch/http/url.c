/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/http/url.c - URLs: their origin, and which redirects are allowed
 *
 * How:   URLs are parsed by libcurl, so that the URL that is checked is the one that is requested.
 */
#include "fetch/http/url.h"

#include <curl/curl.h>
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "base/ip.h"
#include "base/str.h"

#define TEXT_MAX   256 /* of a URL in a message */
#define SCHEME_MAX 16
#define SCHEME	   "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-."

static void url_free(CURLU *u)
{
	curl_url_cleanup(u);
}
AUTO_DEFINE(url_free, CURLU);

static CURLU *url_new(void)
{
	CURLU *u;

	u = curl_url();
	if (!u)
		mem_exhausted();
	return u;
}

/* Return: a copy for free(), since libcurl's text must be freed with curl_free(); NULL: the URL has
 * no such part */
static char *get_part(CURLU *u, CURLUPart part, unsigned int flags)
{
	char *text = NULL, *copy;

	if (curl_url_get(u, part, &text, flags) != CURLUE_OK)
		return NULL;
	copy = str_copy(text);
	curl_free(text);
	return copy;
}

int url_origin_parse(const char *url, struct url_origin *ret_origin, struct hw_err *e)
{
	AUTO(url_free) CURLU *u = url_new();
	AUTO(url_origin_done) struct url_origin o = { 0 };
	autofree char *text = url_for_message(url);

	if (curl_url_set(u, CURLUPART_URL, url, CURLU_NON_SUPPORT_SCHEME) != CURLUE_OK)
		return err_text(e, -EPERM, "invalid URL \"%s\"", text);
	o.scheme = get_part(u, CURLUPART_SCHEME, 0);
	o.host = get_part(u, CURLUPART_HOST, 0);
	o.port = get_part(u, CURLUPART_PORT, CURLU_DEFAULT_PORT);
	if (!str_equal(o.scheme, "https") && !str_equal(o.scheme, "http"))
		return err_text(e, -EPERM, "unsupported scheme in URL \"%s\": want http or https",
				text);
	if (str_empty(o.host) || str_empty(o.port))
		return err_text(e, -EPERM, "no host in URL \"%s\"", text);
	*ret_origin = o;
	o = (struct url_origin){ 0 };
	return 0;
}

void url_origin_done(struct url_origin *o)
{
	free(o->scheme);
	free(o->host);
	free(o->port);
}

bool url_origin_equal(const struct url_origin *a, const struct url_origin *b)
{
	return str_equal(a->scheme, b->scheme) && strcasecmp(a->host, b->host) == 0 &&
	       str_equal(a->port, b->port);
}

bool url_origin_address(const struct url_origin *o, struct hw_ip *ret_ip)
{
	size_t len = strlen(o->host);
	autofree char *bare =
		o->host[0] == '[' && len > 2 ? str_ncopy(o->host + 1, len - 2) : str_copy(o->host);
	struct hw_err ignored;

	return hw_ip_parse(bare, ret_ip, &ignored) == 0;
}

enum scope url_origin_scope(const struct url_origin *o)
{
	size_t len = strlen(o->host);
	autofree char *name =
		str_ncopy(o->host, len > 0 && o->host[len - 1] == '.' ? len - 1 : len);
	struct hw_ip ip;

	if (url_origin_address(o, &ip))
		return scope_of_ip(&ip);
	len = strlen(name);
	if (strcasecmp(name, "localhost") == 0 ||
	    (len > 10 && strcasecmp(name + len - 10, ".localhost") == 0))
		return SCOPE_LOOPBACK;
	return SCOPE_REMOTE;
}

/* ---- redirects --------------------------------------------------------------- */

/* Without a scheme, it is not known where user information ends. */
char *url_for_message(const char *url)
{
	size_t scheme = strspn(url, SCHEME), len;
	const char *server, *at;

	scheme = scheme <= SCHEME_MAX && str_starts(url + scheme, "://") ? scheme + 3 : 0;
	server = url + scheme;
	at = memrchr(server, '@', strcspn(server, scheme > 0 ? "/?#" : "?#"));
	server = at ? at + 1 : server;
	len = strcspn(server, "?#");
	return str_printf("%.*s%.*s", (int)scheme, url, (int)(len < TEXT_MAX ? len : TEXT_MAX),
			  server);
}

int url_refuse_redirect(enum scope to, const char *url, struct hw_err *e)
{
	autofree char *text = url_for_message(url);

	return err_text(e, -EPERM, "refusing redirect to %s: %s", scope_name(to), text);
}

int url_check_redirect(const struct url_origin *from, const struct url_origin *to, enum scope scope,
		       const char *url, struct hw_err *e)
{
	autofree char *text = url_for_message(url);
	enum scope target;

	if (str_equal(from->scheme, "https") && str_equal(to->scheme, "http"))
		return err_text(e, -EPERM, "refusing redirect from https to http: %s", text);
	target = url_origin_scope(to);
	return scope_may_lead_to(scope, target) ? 0 : url_refuse_redirect(target, url, e);
}

char *url_join(const char *base, const char *location)
{
	AUTO(url_free) CURLU *u = url_new();
	char *whole = NULL;

	if (curl_url_set(u, CURLUPART_URL, base, 0) == CURLUE_OK &&
	    curl_url_set(u, CURLUPART_URL, location, CURLU_NON_SUPPORT_SCHEME) == CURLUE_OK)
		whole = get_part(u, CURLUPART_URL, 0);
	return whole ? whole : str_copy(location);
}

char *url_escape(const char *text)
{
	char *escaped, *copy;

	escaped = curl_easy_escape(NULL, text, 0);
	if (!escaped)
		mem_exhausted();
	copy = str_copy(escaped);
	curl_free(escaped);
	return copy;
}
