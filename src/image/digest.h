/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image/digest.h - content digests: "sha256:" and 64 hex digits
 *
 * What:  check the text form, and compute SHA-256 digests of small inputs:
 *        manifests, configurations, chain IDs.
 * Not:   layers are large and are hashed in src/fetch with OpenSSL.
 */
#ifndef IMAGE_DIGEST_H
#define IMAGE_DIGEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define DIGEST_SIZE	32	     /* bytes of a SHA-256 sum */
#define DIGEST_TEXT	(7 + 64 + 1) /* "sha256:", its digits and a NUL */
#define DIGEST_TEXT_MAX (7 + 128) /* longest digest that digest_check() accepts, without the NUL */

/*
 * Check a digest of a known algorithm: sha256, sha384 or sha512. Upper case digits are rejected,
 * because otherwise two different digests could denote the same content. Return: 0 or -EINVAL
 */
int digest_check(const char *text, struct hw_err *e);
/* Return: true if @text is a valid digest with the algorithm sha256 */
bool digest_is_sha256(const char *text);
void digest_format(const uint8_t sum[DIGEST_SIZE], char ret_text[DIGEST_TEXT]);
/* The SHA-256 digest of @len bytes at @data. */
void digest_of(const void *data, size_t len, char ret_text[DIGEST_TEXT]);
/*
 * Compute the chain ID of a layer (OCI config.md, "Layer ChainID"). @parent is the chain
 * ID of the layer below, or NULL for the lowest layer; @diff_id is a SHA-256 digest.
 */
void digest_chain(const char *parent, const char *diff_id, char ret_text[DIGEST_TEXT]);

#endif
