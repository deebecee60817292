/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/registry/registry.c - where an image is to be had
 */
#include "fetch/registry/registry.h"

#include <errno.h>
#include <string.h>

#include "base/str.h"
#include "base/time.h"
#include "fetch/http/url.h"
#include "fetch/registry/auth-file.h"

#define BACKOFF_MS     250
#define BACKOFF_MAX_MS 8000
#define PATIENCE_MS    60000 /* in all, whatever a server asks for; but never beyond idle_ms */

/* ---- endpoints ------------------------------------------------------------- */

static const char *scheme_for(const struct job *job, const char *host)
{
	return strings_has(&job->plain_http, host) ? "http" : "https";
}

static void add_endpoint(struct registry *r, const char *url, char *host, struct credentials *c)
{
	struct endpoint *ep;

	r->endpoints = mem_resize(r->endpoints, r->n + 1, sizeof(*r->endpoints));
	ep = &r->endpoints[r->n++];
	*ep = (struct endpoint){ .host = host,
				 .base = str_printf("%s/v2/%s", url, r->ref.path),
				 .auth = auth_new(url, r->ref.path, c) };
}

/* Without what may be written behind it: "/", "/v2", "/v2/" */
static char *mirror_url(const struct job *job, const char *text)
{
	autofree char *host = str_ncopy(text, strcspn(text, "/"));
	char *url = strstr(text, "://") ? str_copy(text)
					: str_printf("%s://%s", scheme_for(job, host), text);

	if (str_ends(url, "/"))
		url[strlen(url) - 1] = '\0';
	if (str_ends(url, "/v2"))
		url[strlen(url) - 3] = '\0';
	return url;
}

static char *host_of(const struct url_origin *p)
{
	bool usual = str_equal(p->port, str_equal(p->scheme, "https") ? "443" : "80");

	return usual ? str_copy(p->host) : str_printf("%s:%s", p->host, p->port);
}

static int add_mirror(struct registry *r, const char *text, struct hw_err *e)
{
	AUTO(credentials_done) struct credentials c = { 0 };
	AUTO(url_origin_done) struct url_origin p = { 0 };
	autofree char *url = mirror_url(r->job, text), *host = NULL;
	int code = url_origin_parse(url, &p, e);

	if (code < 0)
		return err_ctx(e, "mirror");
	host = host_of(&p);
	if (r->job->auth_file)
		code = auth_file_read(r->job->auth_file, host, &c, e);
	if (code == 0)
		add_endpoint(r, url, take_ptr(host), &c);
	return code;
}

static void copy_credentials(const struct job *job, struct credentials *c)
{
	*c = (struct credentials){ str_copy(job->username), str_copy(job->password),
				   str_copy(job->identity_token), str_copy(job->registry_token) };
}

static int add_own(struct registry *r, struct hw_err *e)
{
	AUTO(credentials_done) struct credentials c = { 0 };
	autofree char *name = reference_name(&r->ref);
	const char *host = reference_host(&r->ref);
	autofree char *url = str_printf("%s://%s", scheme_for(r->job, r->ref.domain), host);
	int code = 0;

	copy_credentials(r->job, &c);
	if (credentials_empty(&c) && r->job->auth_file)
		code = auth_file_read(r->job->auth_file, name, &c, e);
	if (code == 0)
		add_endpoint(r, url, str_copy(host), &c);
	return code;
}

static int fill(struct registry *r, struct hw_err *e)
{
	int code = reference_parse(r->job->reference, &r->ref, e);

	if (code == 0)
		code = certs_load(r->job->certs_dir, &r->certs, e);
	for (size_t i = 0; code == 0 && i < r->job->mirrors.n; i++)
		code = add_mirror(r, r->job->mirrors.v[i], e);
	return code < 0 ? code : add_own(r, e);
}

/**
 * registry_new() - all that is needed to ask for an image
 * @job: borrowed
 *
 * Reads the files that the job names: certificates, keys and credentials.
 *
 * Return: 0, or negative errno
 */
int registry_new(const struct job *job, struct registry **ret_registry, struct hw_err *e)
{
	AUTO(registry_free) struct registry *r = mem_new(sizeof(*r));
	int code;

	r->job = job;
	code = fill(r, e);
	if (code < 0)
		return err_ctx(e, "pull %s", job->reference);
	*ret_registry = take_ptr(r);
	return 0;
}

/** registry_free() - free it */
void registry_free(struct registry *r)
{
	if (!r)
		return;
	for (size_t i = 0; i < r->n; i++) {
		free(r->endpoints[i].host);
		free(r->endpoints[i].base);
		auth_free(r->endpoints[i].auth);
	}
	free(r->endpoints);
	reference_done(&r->ref);
	certs_free(r->certs);
	free(r);
}

/* ---- asking ---------------------------------------------------------------- */

/* A stranger, to whom we were redirected, gets no answer to "who are you?". */
static bool may_renew(const struct http_response *a)
{
	return a->status == 401 && !a->moved;
}

/**
 * registry_request() - ask once, with a new token where the registry wants one
 * @q: its authorization is set here
 *
 * Return: 0 with a status of 2xx, or negative errno
 */
int registry_request(const struct endpoint *ep, struct http *h, struct http_request *q,
		     struct http_response *ret_answer, struct hw_err *e)
{
	for (bool again = false;; again = true) {
		unsigned int number;
		autofree char *header = auth_header(ep->auth, &number);
		int r;

		http_response_done(ret_answer);
		*ret_answer = (struct http_response){ .retry_after = -1 };
		q->authorization = header;
		r = http_perform(h, q, ret_answer, e);
		q->authorization = NULL;
		if (r < 0 || ret_answer->status / 100 == 2)
			return r;
		if (again || !may_renew(ret_answer))
			return http_status_error(ret_answer, e);
		r = auth_renew(ep->auth, h, ret_answer, number, e);
		if (r < 0)
			return r;
	}
}

/**
 * registry_backoff() - is it worth asking again?
 * @error:  that came of the last try
 * @answer: that came with it; may say when
 *
 * Return: false when it is not, or has been tried or waited for often enough
 */
bool registry_backoff(const struct registry *r, struct registry_retry *p, int error,
		      const struct http_response *answer)
{
	int64_t ms = (int64_t)BACKOFF_MS << (p->tries < 8 ? p->tries : 8);
	int64_t most = r->job->idle_ms < PATIENCE_MS ? r->job->idle_ms : PATIENCE_MS;

	if (!http_may_retry(error) || p->tries >= r->job->retries)
		return false;
	if (ms > BACKOFF_MAX_MS)
		ms = BACKOFF_MAX_MS;
	if (answer->retry_after >= 0)
		ms = (int64_t)answer->retry_after * 1000;
	if (p->waited_ms + ms > most)
		return false;
	p->tries++;
	p->waited_ms += ms;
	time_sleep((int)ms);
	return true;
}
