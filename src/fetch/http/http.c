/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/http/http.c - ask a server, within bounds
 *
 * How:   libcurl follows no redirect: each step is a question of its own here,
 *        with the certificates of its own host, after a look at where it leads.
 *        That a name does not lead to this machine is seen when its address is
 *        known, before the connection is made; behind a proxy, by the name alone.
 */
#include "fetch/http/http.h"

#include <curl/curl.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/str.h"
#include "fetch/http/handle.h"
#include "fetch/http/head.h"

#define REDIRECTS_MAX  5
#define ERROR_BODY_MAX (8 << 10)

/* One step of the way to an answer. */
struct step {
	struct http *http;
	const struct http_request *q;
	struct http_response *answer;
	bool began;  /* head() was called */
	bool enough; /* of an error's body: the rest is not waited for */
	struct http_guard guard;
	int failed; /* what a callback of the question said; else 0 */
	struct hw_err *e;
};

/* ---- what libcurl calls ---------------------------------------------------- */

static size_t on_header(char *line, size_t size, size_t n, void *ctx)
{
	struct step *s = ctx;

	http_head_line(s->answer, line, size * n);
	return size * n;
}

static int begin(struct step *s)
{
	if (!s->began && s->failed == 0 && s->q->head && s->answer->status / 100 == 2) {
		s->began = true;
		s->failed = s->q->head(s->q->ctx, s->answer, s->e);
	}
	return s->failed;
}

/* The start of an error's body is kept, for its text; more is too much elsewhere. */
static void keep(struct step *s, const char *data, size_t len)
{
	struct buf *body = &s->answer->body;
	bool good = s->answer->status / 100 == 2;
	size_t max = good ? s->q->max : ERROR_BODY_MAX;
	size_t room = max - body->len;

	if (good && len > room)
		s->failed = err_text(s->e, -EFBIG, "the answer is larger than %zu bytes", max);
	s->enough = len > room;
	buf_add(body, data, s->enough ? room : len);
}

static size_t on_data(char *data, size_t size, size_t n, void *ctx)
{
	struct step *s = ctx;

	if (begin(s) < 0)
		return 0;
	if (s->began && s->q->data)
		s->failed = s->q->data(s->q->ctx, data, size * n, s->e);
	else
		keep(s, data, size * n);
	return s->failed < 0 || s->enough ? 0 : size * n;
}

/* ---- one step -------------------------------------------------------------- */

static void set_calls(struct step *s)
{
	CURL *curl = s->http->curl;

	http_handle_guard(curl, s->http, &s->guard);
	curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, on_header);
	curl_easy_setopt(curl, CURLOPT_HEADERDATA, s);
	curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_data);
	curl_easy_setopt(curl, CURLOPT_WRITEDATA, s);
	curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, s->http->error);
}

static int step_fail(const struct step *s, CURLcode code, const char *url)
{
	if (s->failed < 0)
		return s->failed;
	if (s->guard.refused)
		return err_text(s->e, -EPERM,
				"refused: %.256s leads to this machine, and it was another one "
				"that said to go there",
				url);
	return http_curl_error(code, s->http->error, s->e);
}

static int step_run(struct step *s, const char *url, const struct url_origin *p, bool authorized)
{
	struct http *h = s->http;
	struct curl_slist *headers = http_handle_prepare(h->curl, h, s->q, url, p, authorized);
	CURLcode code;

	h->error[0] = '\0';
	set_calls(s);
	code = curl_easy_perform(h->curl);
	curl_slist_free_all(headers);
	if ((code == CURLE_OK || s->enough) && begin(s) == 0)
		return 0;
	return step_fail(s, code, url);
}

/* ---- the way to an answer -------------------------------------------------- */

static bool is_redirect(const struct http_response *a)
{
	static const int codes[] = { 301, 302, 303, 307, 308 };

	for (size_t i = 0; i < ARRAY_SIZE(codes); i++)
		if (a->status == codes[i])
			return a->location != NULL;
	return false;
}

/* Where libcurl looks for proxies. */
static bool proxy_is_set(void)
{
	static const char *const names[] = { "http_proxy", "https_proxy", "HTTPS_PROXY",
					     "all_proxy", "ALL_PROXY" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (!str_empty(getenv(names[i])))
			return true;
	return false;
}

/* By its address, which is a proxy's where there is one; then by its name. */
static bool peer_is_remote(struct http *h, const struct url_origin *p)
{
	char *ip = NULL;

	curl_easy_getinfo(h->curl, CURLINFO_PRIMARY_IP, &ip);
	if (str_empty(ip))
		return false;
	if (!url_is_local_address(ip))
		return true;
	h->proxied = proxy_is_set() && !url_origin_is_local(p);
	return h->proxied;
}

/* Do we go there? What is posted is a secret of the first server's. */
static int check_way(const struct http_request *q, const struct url_origin *first,
		     const struct url_origin *here, bool remote, const char *url, struct hw_err *e)
{
	if (q->form && !url_origin_equal(first, here))
		return err_text(e, -EPERM, "refused: %.256s is another server, and gets no token",
				url);
	return url_check_redirect(first, here, remote, url, e);
}

/* Each redirect is a step; what was said on the way there is forgotten. */
static int walk(struct http *h, const struct http_request *q, struct http_response *a,
		struct hw_err *e)
{
	AUTO(url_origin_done) struct url_origin first = { 0 };
	autofree char *url = str_copy(q->url);
	int r = url_origin_parse(url, &first, e);

	for (int i = 0; r == 0 && i <= REDIRECTS_MAX; i++) {
		AUTO(url_origin_done) struct url_origin here = { 0 };
		struct step s = { h, q, a, .guard.on = q->guarded || (i > 0 && a->remote), .e = e };

		r = url_origin_parse(url, &here, e);
		if (r == 0 && i > 0)
			r = check_way(q, &first, &here, a->remote, url, e);
		if (r == 0)
			r = certs_check(h->certs, here.host, here.port, e);
		if (r == 0)
			r = step_run(&s, url, &here, url_origin_equal(&first, &here));
		if (r < 0)
			return r;
		if (i == 0)
			a->remote = peer_is_remote(h, &first);
		if (!is_redirect(a)) {
			a->moved = !url_origin_equal(&first, &here);
			a->url = take_ptr(url);
			return 0;
		}
		char *next = url_join(url, a->location);
		free(url);
		url = next;
		http_head_reset(a);
	}
	return r < 0 ? r : err_text(e, -EPERM, "more than %d redirects", REDIRECTS_MAX);
}

/**
 * http_perform() - ask, and follow redirects
 *
 * Return: 0 when there is an answer, whatever its status; what a callback of the
 * question said; or -ECOMM (no connection), -ETIMEDOUT (it stands still), -EPROTO
 * (TLS), -EPERM (a redirect that is not followed), -EFBIG
 */
int http_perform(struct http *h, const struct http_request *q, struct http_response *ret_answer,
		 struct hw_err *e)
{
	AUTO(http_response_done) struct http_response a = { 0 };
	int r;

	http_head_reset(&a);
	r = walk(h, q, &a, e);
	if (r < 0)
		return r;
	*ret_answer = a;
	a = (struct http_response){ 0 };
	return 0;
}

/** http_global_init() - prepare libcurl, before there are threads */
int http_global_init(struct hw_err *e)
{
	CURLcode code = curl_global_init(CURL_GLOBAL_ALL);

	if (code != CURLE_OK)
		return err_text(e, -EIO, "libcurl: %s", curl_easy_strerror(code));
	return 0;
}

/** http_preload() - use the time before there is a job */
void http_preload(void)
{
	struct hw_err ignored;

	if (http_global_init(&ignored) == 0)
		curl_easy_cleanup(curl_easy_init());
}

/** http_new() - for one thread; @certs is borrowed */
struct http *http_new(const struct certs *certs, int idle_ms)
{
	struct http *h = mem_new(sizeof(*h));

	*h = (struct http){ .curl = curl_easy_init(), .certs = certs, .idle_ms = idle_ms };
	if (!h->curl)
		mem_exhausted();
	return h;
}

/** http_free() - close its connections */
void http_free(struct http *h)
{
	if (h) {
		curl_easy_cleanup(h->curl);
		curl_multi_cleanup(h->multi);
	}
	free(h);
}
