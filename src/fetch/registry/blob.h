/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/registry/blob.h - a layer's blob from a registry, as a stream that can break and go on
 *
 * What:  fetches a blob, checks it, and hands its bytes on in order. A connection
 *        that breaks is taken up again where it was; a large blob is asked for in
 *        parts, several at a time, where the server gives parts.
 * Rules: the bytes are handed on before the digest is known to be right: whoever
 *        takes them forgets them when blob_fetch() fails.
 */
#ifndef FETCH_REGISTRY_BLOB_H
#define FETCH_REGISTRY_BLOB_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "fetch/registry/registry.h"

struct blob {
	struct registry *registry;
	struct http *http;
	size_t endpoint; /* to begin with */
	const struct descriptor *descriptor;
	int (*data)(void *ctx, const void *data, size_t len, struct hw_err *e);
	void *ctx;
};

int blob_fetch(const struct blob *b, struct hw_err *e);

#endif
