/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image/fetch/credentials.h - who we are to a registry
 */
#ifndef IMAGE_FETCH_CREDENTIALS_H
#define IMAGE_FETCH_CREDENTIALS_H

#include <stdbool.h>

#include "base/err.h"
#include "base/mem.h"

struct credentials {
	char *username, *password;
	char *identity_token; /* an OAuth2 refresh token */
	char *registry_token; /* a bearer token */
};

bool credentials_empty(const struct credentials *c);
void credentials_done(struct credentials *c);
int credentials_read(const char *path, const char *name, struct credentials *ret_credentials,
		     struct hw_err *e);

AUTO_VALUE_DEFINE(credentials_done, struct credentials);

#endif
