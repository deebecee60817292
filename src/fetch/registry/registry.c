/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/registry/registry.c - endpoints of an image: its mirrors and its registry
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
#define WAIT_MAX_MS    60000 /* maximum total delay of all retries; idle_ms is another limit */

/* ---- endpoints ------------------------------------------------------------- */

static const char *scheme_for(const struct fetch_job *job, const char *host)
{
	return strings_has(&job->plain_http, host) ? "http" : "https";
}

/* Takes over @host and the content of @c. */
static void add_endpoint(struct registry *r, const char *url, char *host, struct credentials *c)
{
	struct endpoint *ep;

	r->endpoints = mem_resize(r->endpoints, r->n + 1, sizeof(*r->endpoints));
	ep = &r->endpoints[r->n++];
	*ep = (struct endpoint){ .host = host,
				 .base = str_printf("%s/v2/%s", url, r->ref.path),
				 .auth = auth_new(url, r->ref.path, c) };
}

/* @text: URL or host; a suffix "/", "/v2" or "/v2/" is ignored */
static int add_mirror(struct registry *r, const char *text, struct hw_err *e)
{
	AUTO(credentials_done) struct credentials c = { 0 };
	AUTO(url_origin_done) struct url_origin origin = { 0 };
	autofree char *authority = str_ncopy(text, strcspn(text, "/"));
	autofree char *url = NULL, *host = NULL;
	const char *default_port;
	int code;

	url = strstr(text, "://") ? str_copy(text)
				  : str_printf("%s://%s", scheme_for(r->job, authority), text);
	if (str_ends(url, "/"))
		url[strlen(url) - 1] = '\0';
	if (str_ends(url, "/v2"))
		url[strlen(url) - 3] = '\0';
	code = url_origin_parse(url, &origin, e);
	if (code < 0)
		return err_ctx(e, "mirror");
	default_port = str_equal(origin.scheme, "https") ? "443" : "80";
	host = str_equal(origin.port, default_port) ? str_copy(origin.host)
						    : str_printf("%s:%s", origin.host, origin.port);
	if (r->job->auth_file)
		code = auth_file_read(r->job->auth_file, host, &c, e);
	if (code < 0)
		return code;
	add_endpoint(r, url, take_ptr(host), &c);
	return 0;
}

static int add_own_registry(struct registry *r, struct hw_err *e)
{
	const struct fetch_job *job = r->job;
	AUTO(credentials_done)
	struct credentials c = { str_copy(job->username), str_copy(job->password),
				 str_copy(job->identity_token), str_copy(job->registry_token) };
	autofree char *name = reference_name(&r->ref);
	const char *host = reference_host(&r->ref);
	autofree char *url = str_printf("%s://%s", scheme_for(job, r->ref.domain), host);
	int code = 0;

	if (credentials_empty(&c) && job->auth_file)
		code = auth_file_read(job->auth_file, name, &c, e);
	if (code < 0)
		return code;
	add_endpoint(r, url, str_copy(host), &c);
	return 0;
}

int registry_new(const struct fetch_job *job, struct registry **ret_registry, struct hw_err *e)
{
	AUTO(registry_free) struct registry *r = mem_new(sizeof(*r));
	int code;

	r->job = job;
	code = reference_parse(job->reference, &r->ref, e);
	if (code == 0)
		code = certs_load(job->certs_dir, &r->certs, e);
	for (size_t i = 0; code == 0 && i < job->mirrors.n; i++)
		code = add_mirror(r, job->mirrors.v[i], e);
	if (code == 0)
		code = add_own_registry(r, e);
	if (code < 0)
		return err_ctx(e, "pull %s", job->reference);
	*ret_registry = take_ptr(r);
	return 0;
}

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

int registry_hide_secrets(const struct registry *r, struct hw_err *e)
{
	for (size_t i = 0; i < r->n; i++) {
		AUTO(secrets_done) struct secrets secrets = { 0 };

		auth_add_secrets(r->endpoints[i].auth, &secrets);
		secrets_hide_in(&secrets, e);
	}
	return e->code;
}

/* ---- requests -------------------------------------------------------------- */

/* @header: that was sent; another thread may have replaced it since */
static int status_error(const struct endpoint *ep, const char *header,
			const struct http_response *response, struct hw_err *e)
{
	AUTO(secrets_done) struct secrets secrets = { 0 };

	auth_add_secrets(ep->auth, &secrets);
	secrets_add(&secrets, header ? strchr(header, ' ') + 1 : NULL);
	return http_status_error(response, &secrets, e);
}

int registry_request(const struct endpoint *ep, struct http *h, struct http_request *request,
		     struct http_response *ret_response, struct hw_err *e)
{
	for (bool renewed = false;; renewed = true) {
		unsigned int generation;
		AUTO(str_wipe) char *header = auth_header(ep->auth, &generation);
		int r;

		http_response_done(ret_response);
		*ret_response = (struct http_response){ .retry_after = -1 };
		request->authorization = header;
		r = http_perform(h, request, ret_response, e);
		request->authorization = NULL;
		if (r < 0 || ret_response->status / 100 == 2)
			return r;
		/* a different server, reached by a redirect, gets no credentials */
		if (renewed || ret_response->status != 401 || ret_response->cross_origin)
			return status_error(ep, header, ret_response, e);
		r = auth_renew(ep->auth, h, ret_response, generation, e);
		if (r < 0)
			return r;
	}
}

bool registry_backoff(const struct registry *r, struct registry_retry *retry, int error,
		      const struct http_response *response)
{
	int64_t ms = (int64_t)BACKOFF_MS << (retry->tries < 8 ? retry->tries : 8);
	int64_t most = r->job->idle_ms < WAIT_MAX_MS ? r->job->idle_ms : WAIT_MAX_MS;

	if (!http_may_retry(error) || retry->tries >= r->job->retries)
		return false;
	if (ms > BACKOFF_MAX_MS)
		ms = BACKOFF_MAX_MS;
	if (response->retry_after >= 0)
		ms = (int64_t)response->retry_after * 1000;
	if (retry->waited_ms + ms > most)
		return false;
	retry->tries++;
	retry->waited_ms += ms;
	time_sleep((int)ms);
	return true;
}
