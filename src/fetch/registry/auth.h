/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/registry/auth.h - convince one registry that we may pull from one repository
 *
 * What:  keeps what goes into the Authorization header, and gets a new one when
 *        the registry wants that: Basic, or a token from the server it names.
 * Rules: may be used by several threads; one of them asks for a token, the others
 *        wait for it and use it. The registry's token server is asked by the rules
 *        of redirects (http.h): not on this machine unless the registry is, not
 *        without TLS unless the registry is.
 */
#ifndef FETCH_REGISTRY_AUTH_H
#define FETCH_REGISTRY_AUTH_H

#include <stdbool.h>

#include <hawser/field.h>

#include "base/err.h"
#include "base/mem.h"
#include "fetch/http/http.h"
#include "image/credentials.h"

struct auth;

/* @url: of the registry; @repository: what to ask for; @credentials are taken over */
struct auth *auth_new(const char *url, const char *repository, struct credentials *credentials);
void auth_free(struct auth *a);

/* The header's value, to be freed, or NULL; and the number to give back to auth_renew(). */
char *auth_header(struct auth *a, unsigned int *ret_number);
int auth_renew(struct auth *a, struct http *h, const struct http_response *refused,
	       unsigned int number, struct hw_err *e);

AUTO_DEFINE(auth_free, struct auth);

#endif
