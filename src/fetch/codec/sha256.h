/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/codec/sha256.h - incremental SHA-256 of large data, with OpenSSL
 *
 * OpenSSL uses the processor's SHA instructions and is six times as fast as libmd. Only
 * hawser-fetch and hawser-layer link OpenSSL.
 */
#ifndef FETCH_CODEC_SHA256_H
#define FETCH_CODEC_SHA256_H

#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"
#include "image/digest.h"

struct sha256;

/* The first call loads OpenSSL's configuration file. */
struct sha256 *sha256_new(void);
void sha256_free(struct sha256 *h);
/* Start over: discard the data added so far. */
void sha256_begin(struct sha256 *h);
void sha256_add(struct sha256 *h, const void *data, size_t len);
/* Write the digest and start over. */
void sha256_end(struct sha256 *h, uint8_t ret_sum[DIGEST_SIZE]);

AUTO_DEFINE(sha256_free, struct sha256);

#endif
