/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/codec/sha256.h - SHA-256 of what is large
 *
 * OpenSSL's uses the processor's own instructions, libmd's does not: a factor of
 * six. Only hawser-fetch has OpenSSL in it.
 */
#ifndef FETCH_CODEC_SHA256_H
#define FETCH_CODEC_SHA256_H

#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"
#include "image/digest.h"

struct sha256;

struct sha256 *sha256_new(void);
void sha256_free(struct sha256 *h);
void sha256_begin(struct sha256 *h); /* forget what was added */
void sha256_add(struct sha256 *h, const void *data, size_t len);
void sha256_end(struct sha256 *h, uint8_t ret_sum[DIGEST_SIZE]); /* and begin again */

AUTO_DEFINE(sha256_free, struct sha256);

#endif
