/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/http/url.c - where a URL leads, and whether we go there
 *
 * How:   libcurl's own parser, so that what is checked is what is asked.
 */
#include "fetch/http/url.h"

#include <curl/curl.h>
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "base/ip.h"
#include "base/str.h"

static void url_free(CURLU *u)
{
	curl_url_cleanup(u);
}
AUTO_DEFINE(url_free, CURLU);

static CURLU *url_new(void)
{
	CURLU *u = curl_url();

	if (!u)
		mem_exhausted();
	return u;
}

/* What curl allocates is freed by free(), as long as nobody gave it other functions. */
static char *part(CURLU *u, CURLUPart what, unsigned int flags)
{
	char *text = NULL, *copy;

	if (curl_url_get(u, what, &text, flags) != CURLUE_OK)
		return NULL;
	copy = str_copy(text);
	curl_free(text);
	return copy;
}

/**
 * url_origin_parse() - the server of a URL
 *
 * Return: 0, or -EPERM: it is no URL, or neither http nor https
 */
int url_origin_parse(const char *url, struct url_origin *ret_place, struct hw_err *e)
{
	AUTO(url_free) CURLU *u = url_new();
	AUTO(url_origin_done) struct url_origin p = { 0 };

	if (curl_url_set(u, CURLUPART_URL, url, CURLU_NON_SUPPORT_SCHEME) != CURLUE_OK)
		return err_text(e, -EPERM, "\"%.256s\" is not a URL", url);
	p.scheme = part(u, CURLUPART_SCHEME, 0);
	p.host = part(u, CURLUPART_HOST, 0);
	p.port = part(u, CURLUPART_PORT, CURLU_DEFAULT_PORT);
	if (!str_equal(p.scheme, "https") && !str_equal(p.scheme, "http"))
		return err_text(e, -EPERM, "\"%.256s\" is neither http nor https", url);
	if (str_empty(p.host) || str_empty(p.port))
		return err_text(e, -EPERM, "\"%.256s\" has no host", url);
	*ret_place = p;
	p = (struct url_origin){ 0 };
	return 0;
}

/** url_origin_done() - free what it holds */
void url_origin_done(struct url_origin *p)
{
	free(p->scheme);
	free(p->host);
	free(p->port);
}

/** url_origin_equal() - is it the same server? */
bool url_origin_equal(const struct url_origin *a, const struct url_origin *b)
{
	return str_equal(a->scheme, b->scheme) && strcasecmp(a->host, b->host) == 0 &&
	       str_equal(a->port, b->port);
}

/** url_is_local_address() - is it an address of this machine alone? */
bool url_is_local_address(const char *address)
{
	struct hw_err ignored;
	struct hw_ip ip;

	return hw_ip_parse(address, &ip, &ignored) == 0 &&
	       (ip_is_loopback(&ip) || ip_is_unspecified(&ip));
}

/** url_origin_is_local() - does its name say that it is on this machine? */
bool url_origin_is_local(const struct url_origin *p)
{
	size_t len = strlen(p->host);
	autofree char *bare =
		p->host[0] == '[' && len > 2 ? str_ncopy(p->host + 1, len - 2) : str_copy(p->host);

	return url_is_local_address(bare) || strcasecmp(bare, "localhost") == 0 ||
	       (len > 10 && strcasecmp(p->host + len - 10, ".localhost") == 0);
}

/**
 * url_check_redirect() - do we go where we are sent?
 * @from:   who sends us
 * @remote: that server is not on this machine
 * @url:    of @to, for the error
 *
 * By what is written there: a name is looked at again when its address is known.
 *
 * Return: 0, or -EPERM
 */
int url_check_redirect(const struct url_origin *from, const struct url_origin *to, bool remote,
		       const char *url, struct hw_err *e)
{
	if (str_equal(from->scheme, "https") && str_equal(to->scheme, "http"))
		return err_text(e, -EPERM, "refused: the way to %.256s leads from https to http",
				url);
	if (remote && !url_origin_is_local(from) && url_origin_is_local(to))
		return err_text(e, -EPERM,
				"refused: %.256s leads to this machine, and it was another one "
				"that said to go there",
				url);
	return 0;
}

/** url_join() - the URL of a Location header; what is none comes back as it is */
char *url_join(const char *base, const char *location)
{
	AUTO(url_free) CURLU *u = url_new();
	char *whole = NULL;

	if (curl_url_set(u, CURLUPART_URL, base, 0) == CURLUE_OK &&
	    curl_url_set(u, CURLUPART_URL, location, CURLU_NON_SUPPORT_SCHEME) == CURLUE_OK)
		whole = part(u, CURLUPART_URL, 0);
	return whole ? whole : str_copy(location);
}

/** url_escape() - text as part of a query */
char *url_escape(const char *text)
{
	char *escaped = curl_easy_escape(NULL, text, 0), *copy;

	if (!escaped)
		mem_exhausted();
	copy = str_copy(escaped);
	curl_free(escaped);
	return copy;
}
