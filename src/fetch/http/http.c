/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/http/http.c - bounded HTTP requests
 *
 * How:   libcurl does not follow redirects: each hop is a separate transfer with the certificates
 *        of its host, and its URL is checked first. The address is checked before each connection
 *        (struct http_guard).
 */
#include "fetch/http/http.h"

#include <curl/curl.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/json/value.h"
#include "base/str.h"
#include "base/time.h"
#include "fetch/http/handle.h"
#include "fetch/http/head.h"

#define REDIRECTS_MAX  5
#define ERROR_BODY_MAX (8 << 10)
#define MESSAGE_MAX    300 /* maximum length of a registry's error message */
#define TOKEN_MIN      32  /* a word of this length in it may be a token */

/* One transfer in a chain of redirects. */
struct hop {
	struct http *http;
	const struct http_request *request;
	struct http_response *response;
	bool began;	   /* on_head() was called */
	bool body_is_full; /* the size limit is reached; the rest is not read */
	struct http_guard guard;
	struct pace *pace;
	int failed; /* error of a callback; else 0 */
	struct hw_err *e;
};

/* ---- callbacks of libcurl -------------------------------------------------- */

static size_t on_header(char *line, size_t size, size_t n, void *ctx)
{
	struct hop *hop = ctx;

	http_head_line(hop->response, line, size * n);
	return size * n;
}

/* Calls on_head() at the start of the body of a 2xx response. */
static int begin_body(struct hop *hop)
{
	const struct http_request *request = hop->request;

	if (!hop->began && hop->failed == 0 && request->on_head &&
	    hop->response->status / 100 == 2) {
		hop->began = true;
		hop->failed = request->on_head(request->ctx, hop->response, hop->e);
	}
	return hop->failed;
}

static size_t on_body(char *data, size_t size, size_t n, void *ctx)
{
	struct hop *hop = ctx;
	struct buf *body = &hop->response->body;
	bool ok = hop->response->status / 100 == 2;
	size_t len = size * n, max, room;
	int64_t now = time_now();

	pace_receive(hop->pace, len, now);
	if (begin_body(hop) < 0)
		return 0;
	if (hop->began && hop->request->on_data) {
		hop->failed = hop->request->on_data(hop->request->ctx, data, len, hop->e);
		hop->pace->away += time_now() - now;
		return hop->failed < 0 ? 0 : len;
	}
	/* only the start of an error response is stored, for the message in it */
	max = ok ? hop->request->body_max : ERROR_BODY_MAX;
	room = max - body->len;
	if (ok && len > room)
		hop->failed =
			err_text(hop->e, -EFBIG, "response too large: more than %zu bytes", max);
	hop->body_is_full = len > room;
	buf_add(body, data, hop->body_is_full ? room : len);
	return hop->body_is_full ? 0 : len;
}

/* libcurl calls this at least once a second. A result other than 0 ends the transfer. */
static int on_progress(void *ctx, curl_off_t total, curl_off_t now, curl_off_t up_total,
		       curl_off_t up_now)
{
	struct hop *hop = ctx;

	(void)total, (void)now, (void)up_total, (void)up_now;
	if (hop->failed == 0)
		hop->failed = pace_check(hop->pace, time_now(), hop->http->slow_ms, hop->e);
	return hop->failed;
}

/* ---- one hop --------------------------------------------------------------- */

static int run_hop(struct hop *hop, const char *url, const struct url_origin *origin,
		   bool authorized)
{
	struct http *h = hop->http;
	CURL *curl = h->curl;
	struct curl_slist *headers =
		http_handle_prepare(curl, h, hop->request, url, origin, authorized, &hop->guard);
	CURLcode code;

	h->error[0] = '\0';
	curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, on_header);
	curl_easy_setopt(curl, CURLOPT_HEADERDATA, hop);
	curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_body);
	curl_easy_setopt(curl, CURLOPT_WRITEDATA, hop);
	curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, on_progress);
	curl_easy_setopt(curl, CURLOPT_XFERINFODATA, hop);
	curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
	curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, h->error);
	code = curl_easy_perform(curl);
	curl_slist_free_all(headers);
	if ((code == CURLE_OK || hop->body_is_full) && begin_body(hop) == 0)
		return 0;
	if (hop->failed < 0)
		return hop->failed;
	if (hop->guard.refused)
		return url_refuse_redirect(hop->guard.to, url, hop->e);
	return http_curl_error(code, h->error, hop->e);
}

/* ---- redirects ------------------------------------------------------------- */

static bool is_redirect(const struct http_response *r)
{
	static const int codes[] = { 301, 302, 303, 307, 308 };

	for (size_t i = 0; i < ARRAY_SIZE(codes); i++)
		if (r->status == codes[i])
			return r->location != NULL;
	return false;
}

/* The scope of the server that has responded. Behind a proxy only its name is known. */
static enum scope scope_of_server(struct http *h, const struct url_origin *server, bool proxied)
{
	struct hw_err ignored;
	struct hw_ip ip;
	char *peer = NULL;

	curl_easy_getinfo(h->curl, CURLINFO_PRIMARY_IP, &peer);
	if (proxied || hw_ip_parse(str_or(peer, ""), &ip, &ignored) < 0)
		return url_origin_scope(server);
	return scope_of_ip(&ip);
}

int http_perform(struct http *h, const struct http_request *request,
		 struct http_response *ret_response, struct hw_err *e)
{
	AUTO(http_response_done) struct http_response response = { 0 };
	AUTO(url_origin_done) struct url_origin first = { 0 };
	autofree char *url = str_copy(request->url);
	struct pace own_pace = { 0 }, *pace = request->pace ? request->pace : &own_pace;
	enum scope from = request->from;
	int r;

	r = url_origin_parse(url, &first, e);
	if (r < 0)
		return r;
	http_head_reset(&response);
	for (int i = 0; i <= REDIRECTS_MAX; i++) {
		AUTO(url_origin_done) struct url_origin origin = { 0 };
		struct hop hop = {
			h, request, &response, .guard.from = from, .pace = pace, .e = e
		};
		bool same_origin;
		char *next;

		r = url_origin_parse(url, &origin, e);
		if (r < 0)
			return r;
		same_origin = url_origin_equal(&first, &origin);
		if (request->form && !same_origin) { /* the form contains a secret */
			autofree char *text = url_for_message(url);

			return err_text(e, -EPERM,
					"refusing redirect of credentials to another server: %s",
					text);
		}
		if (i > 0)
			r = url_check_redirect(&first, &origin, from, url, e);
		if (r == 0)
			r = certs_check(h->certs, origin.host, origin.port, e);
		if (r == 0)
			r = run_hop(&hop, url, &origin, same_origin);
		if (r < 0)
			return r;
		if (is_redirect(&response) || response.challenges.n > 0)
			response.server = scope_of_server(h, &origin, hop.guard.proxied);
		if (!is_redirect(&response)) {
			response.cross_origin = !same_origin;
			response.from = from;
			response.url = take_ptr(url);
			*ret_response = response;
			response = (struct http_response){ 0 };
			return 0;
		}
		from = response.server;
		next = url_join(url, response.location);
		free(url);
		url = next;
		http_head_reset(&response);
	}
	return err_text(e, -EPERM, "too many redirects: more than %d", REDIRECTS_MAX);
}

/* ---- errors ---------------------------------------------------------------- */

static const struct {
	int first, last, code;
} statuses[] = {
	{ 400, 400, -EINVAL },	{ 401, 401, -EKEYREJECTED }, { 403, 403, -EACCES },
	{ 404, 404, -ENODATA }, { 408, 408, -ECOMM },	     { 410, 410, -ENODATA },
	{ 429, 429, -EUSERS },	{ 451, 451, -EACCES },	     { 500, 599, -ECOMM },
};

/* Replaces words that may be tokens. Of long words, only digests are kept. */
static void hide_tokens(const char *message, struct buf *ret_text)
{
	static const char token[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789-._~+=";
	const char *start = message;

	while (*message) {
		size_t len = strspn(message, token);
		bool is_digest = message - start >= 7 && strncmp(message - 7, "sha256:", 7) == 0;

		if (len >= TOKEN_MIN && !is_digest)
			buf_printf(ret_text, "[...]");
		else
			buf_add(ret_text, message, len);
		message += len;
		len = strcspn(message, token);
		buf_add(ret_text, message, len);
		message += len;
	}
	buf_putc(ret_text, '\0');
}

/* Example of a message:
 * {"errors":[{"code":"MANIFEST_UNKNOWN","message":"manifest unknown"}]} */
int http_status_error(const struct http_response *r, const struct secrets *secrets,
		      struct hw_err *e)
{
	AUTO(value_free) struct value *v = NULL;
	AUTO(buf_done) struct buf text = { 0 };
	autofree char *shown = NULL;
	const struct value *first;
	const char *message = NULL;
	struct hw_err ignored;
	int code = -EIO;

	for (size_t i = 0; i < ARRAY_SIZE(statuses); i++)
		if (r->status >= statuses[i].first && r->status <= statuses[i].last)
			code = statuses[i].code;
	if (!r->cross_origin && r->body.len > 0 &&
	    value_parse(r->body.data, r->body.len, &v, &ignored) == 0) {
		first = value_at(value_get(v, "errors"), 0);
		message = value_string(value_get(first ? first : v, "message"));
	}
	if (str_empty(message))
		return err_text(e, code, "HTTP status %d", r->status);
	/* before the message is cut off, which may leave a part of a secret */
	shown = secrets_hide(secrets, message);
	hide_tokens(str_or(shown, ""), &text);
	return err_text(e, code, "HTTP status %d (%.*s)", r->status, MESSAGE_MAX, text.data);
}

bool http_may_retry(int error)
{
	return error == -ECOMM || error == -EUSERS;
}

/* ---- objects --------------------------------------------------------------- */

int http_global_init(struct hw_err *e)
{
	CURLcode code = curl_global_init(CURL_GLOBAL_ALL);

	if (code != CURLE_OK)
		return err_text(e, -EIO, "libcurl: %s", curl_easy_strerror(code));
	return 0;
}

void http_preload(void)
{
	struct hw_err ignored;

	if (http_global_init(&ignored) == 0)
		curl_easy_cleanup(curl_easy_init());
}

struct http *http_new(const struct certs *certs, int idle_ms, int slow_ms)
{
	struct http *h = mem_new(sizeof(*h));

	*h = (struct http){
		.curl = curl_easy_init(), .certs = certs, .idle_ms = idle_ms, .slow_ms = slow_ms
	};
	if (!h->curl)
		mem_exhausted();
	return h;
}

void http_free(struct http *h)
{
	if (h) {
		curl_easy_cleanup(h->curl);
		curl_multi_cleanup(h->multi);
	}
	free(h);
}

void http_response_done(struct http_response *r)
{
	free(r->url);
	free(r->location);
	free(r->content_type);
	hw_strings_free(&r->challenges);
	buf_done(&r->body);
}
