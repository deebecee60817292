/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/hash.h - SHA-512 of names from outside, as short lowercase hex
 *
 * hash_hex() is over exactly one string, as upstream's names are made.
 * hash_parts() is over several, each ended by a NUL, so that ("ab","c") and
 * ("a","bc") differ.
 */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include <stddef.h>

#define HASH_HEX_MAX 128

/* Writes the first digits hex digits and a NUL. */
void hash_hex(const char *s, size_t digits, char *ret_hex);
void hash_parts(const char *const *parts, size_t n, size_t digits, char *ret_hex);

#endif
