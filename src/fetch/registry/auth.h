/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/registry/auth.h - authentication to one repository of one registry
 *
 * What:  stores the value of the Authorization header, and gets a new one when the registry demands
 *        it: Basic, or a token from the token server that the registry names.
 * Rules: several threads may use a struct auth; one thread requests a token, the other threads wait
 *        and use the same token. The rules for redirects (http.h) also apply to the token server.
 */
#ifndef FETCH_REGISTRY_AUTH_H
#define FETCH_REGISTRY_AUTH_H

#include <stdbool.h>

#include <hawser/field.h>

#include "base/err.h"
#include "base/mem.h"
#include "fetch/http/http.h"
#include "fetch/http/secrets.h"
#include "image/credentials.h"

struct auth;

/* @url: URL of the registry; @repository: the repository to request access to; @credentials: the
 * content is taken over */
struct auth *auth_new(const char *url, const char *repository, struct credentials *credentials);
void auth_free(struct auth *a); /* overwrites the credentials and the header */

/* Return: value of the header, to be freed with str_wipe(); NULL: none yet. *ret_generation: for
 * auth_renew() */
char *auth_header(struct auth *a, unsigned int *ret_generation);
/* Add the credentials, in the forms in which they are sent, and the current token. */
void auth_add_secrets(struct auth *a, struct secrets *s);
/* Get a new header after the registry has refused one. @refused: the response with status 401;
 * @generation: that of the refused header. If it is not the latest generation, another thread has
 * already renewed the header. Return: 0; -EKEYREJECTED: no credentials that the registry accepts;
 * or the error of the token server */
int auth_renew(struct auth *a, struct http *h, const struct http_response *refused,
	       unsigned int generation, struct hw_err *e);

AUTO_DEFINE(auth_free, struct auth);

#endif
