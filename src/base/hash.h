/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/hash.h - SHA-512 of names, as truncated lowercase hex
 *
 * For file and kernel object names that are derived from untrusted input.
 */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include <stddef.h>

#define HASH_HEX_MAX 128

/* Both functions write the first @digits hex digits, at most HASH_HEX_MAX, and a NUL. */

/* Hash of one string without its NUL. Upstream derives its names in the same way. */
void hash_hex(const char *s, size_t digits, char *ret_hex);
/* Hash of n strings, each with its NUL, so that ("ab","c") and ("a","bc") differ. */
void hash_parts(const char *const *parts, size_t n, size_t digits, char *ret_hex);

#endif
