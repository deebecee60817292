/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/registry/auth.c - convince one registry that we may pull from one repository
 *
 * How:   Docker's token protocol: 401 names a server, a service and a scope; that
 *        server gives a token for our credentials, or for none (GET); an identity
 *        token is changed for one by OAuth2 (POST).
 */
#include "fetch/registry/auth.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "base/base64.h"
#include "base/str.h"
#include "fetch/http/url.h"
#include "fetch/registry/challenge.h"

#define TOKEN_ANSWER_MAX (1 << 20)

struct auth {
	pthread_mutex_t lock;
	char *url, *repository;
	struct credentials credentials;
	char *header;
	unsigned int number; /* of headers so far */
};

struct token {
	char *token, *access_token;
};

static const struct hw_field token_fields[] = {
	{ "token", HW_STRING, HW_AT(struct token, token), .flags = HW_SECRET, .help = "Docker's" },
	{ "access_token", HW_STRING, HW_AT(struct token, access_token), .flags = HW_SECRET,
	  .help = "OAuth2's" },
	{ 0 },
};

/** auth_new() - for one repository of one registry */
struct auth *auth_new(const char *url, const char *repository, struct credentials *credentials)
{
	struct auth *a = mem_new(sizeof(*a));

	pthread_mutex_init(&a->lock, NULL);
	a->url = str_copy(url);
	a->repository = str_copy(repository);
	a->credentials = *credentials;
	*credentials = (struct credentials){ 0 };
	if (!str_empty(a->credentials.registry_token))
		a->header = str_printf("Bearer %s", a->credentials.registry_token);
	return a;
}

/** auth_free() - forget it all */
void auth_free(struct auth *a)
{
	if (!a)
		return;
	pthread_mutex_destroy(&a->lock);
	credentials_done(&a->credentials);
	free(a->url);
	free(a->repository);
	free(a->header);
	free(a);
}

/** auth_header() - what to send; NULL: nothing yet */
char *auth_header(struct auth *a, unsigned int *ret_number)
{
	char *header;

	pthread_mutex_lock(&a->lock);
	header = str_copy(a->header);
	*ret_number = a->number;
	pthread_mutex_unlock(&a->lock);
	return header;
}

static char *basic(const struct credentials *c)
{
	autofree char *pair = str_printf("%s:%s", str_or(c->username, ""), str_or(c->password, ""));
	autofree char *code = base64_encode(pair, strlen(pair));

	return str_printf("Basic %s", code);
}

static bool has_name(const struct credentials *c)
{
	return !str_empty(c->username) || !str_empty(c->password);
}

static int refuse(const struct http_response *refused, struct hw_err *e)
{
	http_status_error(refused, e);
	return err_ctx(e, "it wants to know who we are");
}

/* ---- tokens ---------------------------------------------------------------- */

static char *scope_of(const struct auth *a, const struct challenge *c)
{
	return str_empty(c->scope) ? str_printf("repository:%s:pull", a->repository)
				   : str_copy(c->scope);
}

static char *token_query(const struct auth *a, const struct challenge *c)
{
	autofree char *plain = scope_of(a, c), *scope = url_escape(plain);
	autofree char *service = url_escape(str_or(c->service, ""));
	autofree char *account = url_escape(str_or(a->credentials.username, ""));
	bool named = has_name(&a->credentials);

	return str_printf("%s%sservice=%s&scope=%s%s%s", c->realm,
			  strchr(c->realm, '?') ? "&" : "?", service, scope,
			  named ? "&account=" : "", named ? account : "");
}

static char *token_form(const struct auth *a, const struct challenge *c)
{
	autofree char *plain = scope_of(a, c), *scope = url_escape(plain);
	autofree char *service = url_escape(str_or(c->service, ""));
	autofree char *token = url_escape(a->credentials.identity_token);

	return str_printf("grant_type=refresh_token&client_id=hawser&service=%s&scope=%s"
			  "&refresh_token=%s",
			  service, scope, token);
}

static int take_token(const struct http_response *answer, char **ret_header, struct hw_err *e)
{
	struct token t = { 0 };
	const char *text;
	int r;

	if (answer->status != 200)
		return http_status_error(answer, e);
	r = hw_field_decode(token_fields, str_or(answer->body.data, ""), answer->body.len, &t, e);
	if (r < 0)
		return err_ctx(e, "its answer");
	text = str_empty(t.token) ? t.access_token : t.token;
	/* it becomes a line of a request */
	if (str_empty(text) || strpbrk(text, "\r\n"))
		r = err_text(e, -EBADMSG, "there is no token in its answer");
	else
		*ret_header = str_printf("Bearer %s", text);
	hw_field_clear(token_fields, &t);
	return r;
}

static int check_realm(const struct auth *a, const char *realm, bool remote, struct hw_err *e)
{
	AUTO(url_origin_done) struct url_origin from = { 0 }, to = { 0 };
	int r = url_origin_parse(a->url, &from, e);

	if (r == 0)
		r = url_origin_parse(realm, &to, e);
	return r < 0 ? r : url_check_redirect(&from, &to, remote, realm, e);
}

static int ask_for_token(const struct auth *a, struct http *h, const struct challenge *c,
			 bool remote, char **ret_header, struct hw_err *e)
{
	AUTO(http_response_done) struct http_response answer = { 0 };
	bool oauth = !str_empty(a->credentials.identity_token);
	autofree char *query = oauth ? NULL : token_query(a, c);
	autofree char *form = oauth ? token_form(a, c) : NULL;
	autofree char *who = !oauth && has_name(&a->credentials) ? basic(&a->credentials) : NULL;
	struct http_request q = { .url = oauth ? c->realm : query,
				  .form = form,
				  .authorization = who,
				  .guarded = remote,
				  .max = TOKEN_ANSWER_MAX };
	int r = check_realm(a, c->realm, remote, e);

	if (r == 0)
		r = http_perform(h, &q, &answer, e);
	if (r == 0)
		r = take_token(&answer, ret_header, e);
	return r < 0 ? err_ctx(e, "token server %.256s", c->realm) : 0;
}

static int make_header(struct auth *a, struct http *h, const struct http_response *refused,
		       char **ret_header, struct hw_err *e)
{
	AUTO(challenge_done) struct challenge c = { 0 };

	challenge_choose(&refused->challenges, &c);
	if (!str_empty(a->credentials.registry_token))
		return refuse(refused, e);
	if (c.kind == CHALLENGE_BEARER)
		return ask_for_token(a, h, &c, refused->remote, ret_header, e);
	/* the same name and password again would be refused again */
	if (c.kind == CHALLENGE_BASIC && has_name(&a->credentials) && !a->header) {
		*ret_header = basic(&a->credentials);
		return 0;
	}
	return refuse(refused, e);
}

/**
 * auth_renew() - get a header that the registry takes, after it has refused one
 * @refused: the answer, of status 401
 * @number:  of the header that was refused; is it not the last one, then somebody
 *           else has renewed it meanwhile
 *
 * Return: 0, or -EKEYREJECTED (nothing that we could send), or what the token server
 * said
 */
int auth_renew(struct auth *a, struct http *h, const struct http_response *refused,
	       unsigned int number, struct hw_err *e)
{
	autofree char *header = NULL;
	int r = 0;

	pthread_mutex_lock(&a->lock);
	if (number == a->number)
		r = make_header(a, h, refused, &header, e);
	if (header) {
		free(a->header);
		a->header = take_ptr(header);
		a->number++;
	}
	pthread_mutex_unlock(&a->lock);
	return r;
}
