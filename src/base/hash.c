/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/hash.c - SHA-512 of names, as truncated lowercase hex
 */
#include "base/hash.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>

#include <sha512.h>

static void format_hex(const uint8_t *digest, size_t digits, char *ret_hex)
{
	assert(digits <= HASH_HEX_MAX);
	for (size_t i = 0; i < digits; i++)
		ret_hex[i] = "0123456789abcdef"[i % 2 ? digest[i / 2] & 15 : digest[i / 2] >> 4];
	ret_hex[digits] = '\0';
}

void hash_hex(const char *s, size_t digits, char *ret_hex)
{
	uint8_t digest[SHA512_DIGEST_LENGTH];
	SHA512_CTX ctx;

	SHA512Init(&ctx);
	SHA512Update(&ctx, (const uint8_t *)s, strlen(s));
	SHA512Final(digest, &ctx);
	format_hex(digest, digits, ret_hex);
}

void hash_parts(const char *const *parts, size_t n, size_t digits, char *ret_hex)
{
	uint8_t digest[SHA512_DIGEST_LENGTH];
	SHA512_CTX ctx;

	SHA512Init(&ctx);
	for (size_t i = 0; i < n; i++)
		SHA512Update(&ctx, (const uint8_t *)parts[i], strlen(parts[i]) + 1);
	SHA512Final(digest, &ctx);
	format_hex(digest, digits, ret_hex);
}
