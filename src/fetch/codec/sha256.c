/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/codec/sha256.c - incremental SHA-256 of large data, with OpenSSL
 */
#include "fetch/codec/sha256.h"

#include <openssl/evp.h>

struct sha256 {
	EVP_MD *md;
	EVP_MD_CTX *ctx;
};

/* These OpenSSL functions fail only if memory is exhausted, or if OpenSSL does not support
 * SHA-256. */
static void require(int ok)
{
	if (!ok)
		mem_exhausted();
}

struct sha256 *sha256_new(void)
{
	struct sha256 *h = mem_new(sizeof(*h));

	h->md = EVP_MD_fetch(NULL, "SHA256", NULL);
	h->ctx = EVP_MD_CTX_new();
	require(h->md && h->ctx);
	sha256_begin(h);
	return h;
}

void sha256_free(struct sha256 *h)
{
	if (!h)
		return;
	EVP_MD_CTX_free(h->ctx);
	EVP_MD_free(h->md);
	free(h);
}

void sha256_begin(struct sha256 *h)
{
	require(EVP_DigestInit_ex2(h->ctx, h->md, NULL));
}

void sha256_add(struct sha256 *h, const void *data, size_t len)
{
	require(EVP_DigestUpdate(h->ctx, data, len));
}

void sha256_end(struct sha256 *h, uint8_t ret_sum[DIGEST_SIZE])
{
	require(EVP_DigestFinal_ex(h->ctx, ret_sum, NULL));
	sha256_begin(h);
}
