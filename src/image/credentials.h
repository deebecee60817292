/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image/credentials.h - who somebody is to a registry
 *
 * What:  what requests (cri/service/credentials.h) and files (fetch/registry/auth-file.h) say.
 * Rules: secrets are overwritten before they are freed.
 */
#ifndef IMAGE_CREDENTIALS_H
#define IMAGE_CREDENTIALS_H

#include <stdbool.h>

#include "base/err.h"
#include "base/mem.h"

/* NULL: none */
struct credentials {
	char *username, *password;
	char *identity_token; /* an OAuth2 refresh token */
	char *registry_token; /* a bearer token */
};

bool credentials_empty(const struct credentials *c);
int credentials_decode(struct credentials *c, const char *auth, struct hw_err *e);
void credentials_done(struct credentials *c);

AUTO_VALUE_DEFINE(credentials_done, struct credentials);

#endif
