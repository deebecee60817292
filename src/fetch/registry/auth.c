/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/registry/auth.c - authentication to one repository of one registry
 *
 * How:   Docker's token protocol: a 401 response names a token server, a service and a scope. A
 *        token is requested from that server with GET, with or without username and password, or
 *        with POST (OAuth2) if we have an identity token.
 */
#include "fetch/registry/auth.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/base64.h"
#include "base/str.h"
#include "fetch/http/url.h"
#include "fetch/registry/challenge.h"

#define TOKEN_RESPONSE_MAX (1 << 20)

struct auth {
	pthread_mutex_t lock;
	char *url, *repository;
	struct credentials credentials;
	char *header;
	unsigned int generation; /* counts renewals of header */
};

struct token {
	char *token, *access_token;
};

static const struct hw_field token_fields[] = {
	{ "token", HW_STRING, HW_AT(struct token, token), .flags = HW_SECRET,
	  .help = "the token, under the key that Docker defines" },
	{ "access_token", HW_STRING, HW_AT(struct token, access_token), .flags = HW_SECRET,
	  .help = "the token, under the key that OAuth2 defines" },
	{ 0 },
};

/* Unlike str_printf(), which may move the text while it grows, this leaves no copy of the secret in
 * freed memory. */
static char *join_secret(const char *prefix, const char *middle, const char *secret)
{
	size_t size = strlen(prefix) + strlen(middle) + strlen(secret) + 1;
	char *text = mem_new(size);

	snprintf(text, size, "%s%s%s", prefix, middle, secret);
	return text;
}

struct auth *auth_new(const char *url, const char *repository, struct credentials *credentials)
{
	struct auth *a = mem_new(sizeof(*a));

	pthread_mutex_init(&a->lock, NULL);
	a->url = str_copy(url);
	a->repository = str_copy(repository);
	a->credentials = *credentials;
	*credentials = (struct credentials){ 0 };
	if (!str_empty(a->credentials.registry_token))
		a->header = join_secret("Bearer", " ", a->credentials.registry_token);
	return a;
}

void auth_free(struct auth *a)
{
	if (!a)
		return;
	pthread_mutex_destroy(&a->lock);
	credentials_done(&a->credentials);
	free(a->url);
	free(a->repository);
	str_wipe(a->header);
	free(a);
}

char *auth_header(struct auth *a, unsigned int *ret_generation)
{
	char *header;

	pthread_mutex_lock(&a->lock);
	header = str_copy(a->header);
	*ret_generation = a->generation;
	pthread_mutex_unlock(&a->lock);
	return header;
}

static char *format_basic(const struct credentials *c)
{
	AUTO(str_wipe)
	char *pair = join_secret(str_or(c->username, ""), ":", str_or(c->password, ""));
	AUTO(str_wipe) char *code = base64_encode(pair, strlen(pair));

	return join_secret("Basic", " ", code);
}

static bool has_password(const struct credentials *c)
{
	return !str_empty(c->username) || !str_empty(c->password);
}

/* @header: value of a header, "Basic" or "Bearer" and the secret; NULL: none */
static void add_secrets(const struct auth *a, const char *header, struct secrets *s)
{
	const struct credentials *c = &a->credentials;
	AUTO(str_wipe) char *basic = has_password(c) ? format_basic(c) : NULL;

	secrets_add(s, c->password);
	secrets_add(s, c->identity_token);
	secrets_add(s, c->registry_token);
	secrets_add(s, basic ? strchr(basic, ' ') + 1 : NULL);
	secrets_add(s, header ? strchr(header, ' ') + 1 : NULL);
}

void auth_add_secrets(struct auth *a, struct secrets *s)
{
	pthread_mutex_lock(&a->lock);
	add_secrets(a, a->header, s);
	pthread_mutex_unlock(&a->lock);
}

/* ---- tokens ---------------------------------------------------------------- */

static int parse_token(const struct auth *a, const struct http_response *response,
		       char **ret_header, struct hw_err *e)
{
	AUTO(secrets_done) struct secrets secrets = { 0 };
	struct token t = { 0 };
	const char *text;
	int r;

	add_secrets(a, a->header, &secrets);
	if (response->status != 200)
		return http_status_error(response, &secrets, e);
	r = hw_field_decode(token_fields, str_or(response->body.data, ""), response->body.len, &t,
			    e);
	if (r < 0) {
		err_replace(e, -EINVAL, -EBADMSG);
		return err_ctx(e, "malformed response");
	}
	text = str_empty(t.token) ? t.access_token : t.token;
	/* a line break in the token would add a header to our requests */
	if (str_empty(text) || strpbrk(text, "\r\n"))
		r = err_text(e, -EBADMSG, "no valid token in the response");
	else
		*ret_header = join_secret("Bearer", " ", text);
	str_wipe(t.token);
	str_wipe(t.access_token);
	return r;
}

/* @from: scope of the registry. Return: 1 if the token server is the registry itself, 0 if not; or
 * negative errno */
static int check_realm(const struct auth *a, const char *realm, enum scope from, struct hw_err *e)
{
	AUTO(url_origin_done) struct url_origin registry = { 0 }, server = { 0 };
	int r;

	r = url_origin_parse(a->url, &registry, e);
	if (r == 0)
		r = url_origin_parse(realm, &server, e);
	if (r == 0)
		r = url_check_redirect(&registry, &server, from, realm, e);
	return r < 0 ? r : url_origin_equal(&registry, &server);
}

static int request_token(const struct auth *a, struct http *h, const struct challenge *c,
			 enum scope from, char **ret_header, struct hw_err *e)
{
	AUTO(http_response_done) struct http_response response = { 0 };
	autofree char *pull = str_printf("repository:%s:pull", a->repository);
	autofree char *scope = url_escape(str_empty(c->scope) ? pull : c->scope);
	autofree char *service = url_escape(str_or(c->service, ""));
	autofree char *url = str_printf("%s%sservice=%s&scope=%s", c->realm,
					strchr(c->realm, '?') ? "&" : "?", service, scope);
	autofree char *with_account = NULL;
	AUTO(str_wipe) char *header = NULL;
	AUTO(str_wipe) char *form = NULL;
	autofree char *text = url_for_message(c->realm);
	struct http_request request = { .url = url, .from = from, .body_max = TOKEN_RESPONSE_MAX };
	int r, is_registry;

	if (!str_empty(a->credentials.identity_token)) {
		AUTO(str_wipe) char *token = url_escape(a->credentials.identity_token);
		autofree char *request_of = str_printf("grant_type=refresh_token&client_id=hawser"
						       "&service=%s&scope=%s",
						       service, scope);

		form = join_secret(request_of, "&refresh_token=", token);
		request.url = c->realm;
		request.form = form;
	} else if (has_password(&a->credentials)) {
		autofree char *account = url_escape(str_or(a->credentials.username, ""));

		with_account = str_printf("%s&account=%s", url, account);
		header = format_basic(&a->credentials);
		request.url = with_account;
		request.authorization = header;
	}
	r = is_registry = check_realm(a, c->realm, from, e);
	if (r >= 0)
		r = http_perform(h, &request, &response, e);
	if (r == 0) /* the message of another server is no more shown than after a redirect */
		response.cross_origin = response.cross_origin || !is_registry;
	if (r == 0)
		r = parse_token(a, &response, ret_header, e);
	if (response.body.data)
		explicit_bzero(response.body.data, response.body.len);
	return r < 0 ? err_ctx(e, "token server %s", text) : 0;
}

static int new_header(struct auth *a, struct http *h, const struct http_response *refused,
		      char **ret_header, struct hw_err *e)
{
	AUTO(challenge_done) struct challenge c = { 0 };
	AUTO(secrets_done) struct secrets secrets = { 0 };
	bool is_fixed = !str_empty(a->credentials.registry_token);

	challenge_choose(&refused->challenges, &c);
	if (!is_fixed && c.kind == CHALLENGE_BEARER)
		return request_token(a, h, &c, refused->server, ret_header, e);
	/* the same username and password would be refused again */
	if (!is_fixed && c.kind == CHALLENGE_BASIC && has_password(&a->credentials) && !a->header) {
		*ret_header = format_basic(&a->credentials);
		return 0;
	}
	add_secrets(a, a->header, &secrets);
	http_status_error(refused, &secrets, e);
	return err_ctx(e, "authentication required");
}

int auth_renew(struct auth *a, struct http *h, const struct http_response *refused,
	       unsigned int generation, struct hw_err *e)
{
	char *header = NULL;
	int r = 0;

	pthread_mutex_lock(&a->lock);
	if (generation == a->generation)
		r = new_header(a, h, refused, &header, e);
	if (header) {
		str_wipe(a->header);
		a->header = header;
		a->generation++;
	}
	pthread_mutex_unlock(&a->lock);
	return r;
}
