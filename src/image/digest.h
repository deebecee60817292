/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image/digest.h - content addresses: "sha256:" and 64 hex digits
 *
 * What:  check them as text, and make the SHA-256 kind of small things: a
 *        manifest, a configuration, a chain of layers.
 * Not:   layers, which are large, are hashed in fetch with OpenSSL.
 */
#ifndef IMAGE_DIGEST_H
#define IMAGE_DIGEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define DIGEST_SIZE	32	     /* of a SHA-256 sum */
#define DIGEST_TEXT	(7 + 64 + 1) /* "sha256:", its digits and a NUL */
#define DIGEST_TEXT_MAX (7 + 128)    /* of any digest that digest_check() takes */

int digest_check(const char *text, struct hw_err *e);
bool digest_is_sha256(const char *text);
void digest_format(const uint8_t sum[DIGEST_SIZE], char ret_text[DIGEST_TEXT]);
void digest_of(const void *data, size_t len, char ret_text[DIGEST_TEXT]);
void digest_chain(const char *parent, const char *diff_id, char ret_text[DIGEST_TEXT]);

#endif
