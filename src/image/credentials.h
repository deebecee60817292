/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image/credentials.h - credentials for a registry
 *
 * What:  credentials from CRI requests (cri/service/credentials.h) and files
 *        (fetch/registry/auth-file.h).
 * Rules: secrets are overwritten before they are freed.
 */
#ifndef IMAGE_CREDENTIALS_H
#define IMAGE_CREDENTIALS_H

#include <stdbool.h>

#include "base/err.h"
#include "base/mem.h"

/* Each member may be NULL. */
struct credentials {
	char *username, *password;
	char *identity_token; /* an OAuth2 refresh token */
	char *registry_token; /* a bearer token */
};

bool credentials_empty(const struct credentials *c);
/*
 * Decode the "auth" value of a request or file, base64 of "USER:PASSWORD". NUL bytes after the text
 * are ignored, because some tools append them. @c must be empty. Return: 0; -EINVAL: malformed
 */
int credentials_decode(struct credentials *c, const char *auth, struct hw_err *e);
/* Overwrite and free all members. */
void credentials_done(struct credentials *c);

AUTO_VALUE_DEFINE(credentials_done, struct credentials);

#endif
