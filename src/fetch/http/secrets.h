/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/http/secrets.h - secrets that no error may contain
 *
 * What:  a list of secrets, and a function that replaces them in a text. A registry may repeat the password
 *        that it refuses, and a client that reads the error may not be permitted to know it.
 * Rules: only literal copies are found; shorter secrets than SECRETS_MIN are ignored, because they occur in
 *        ordinary words. All copies are overwritten by secrets_done().
 */
#ifndef FETCH_HTTP_SECRETS_H
#define FETCH_HTTP_SECRETS_H

#include <stddef.h>

#include "base/err.h"
#include "base/mem.h"

#define SECRETS_MIN 4 /* bytes */
#define SECRETS_MAX 8 /* in one list */

struct secrets {
	char *v[SECRETS_MAX];
	size_t n;
};

/* @secret: copied; may be NULL. */
void secrets_add(struct secrets *s, const char *secret);
void secrets_done(struct secrets *s);
AUTO_VALUE_DEFINE(secrets_done, struct secrets);

/* Return: the text with "[...]" in place of each secret; the caller frees it */
char *secrets_hide(const struct secrets *s, const char *text);
/* Replaces them in the texts of an error. */
void secrets_hide_in(const struct secrets *s, struct hw_err *e);

#endif
