/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/registry/blob.h - fetches the blob of a layer from a registry, with resume and retries
 *
 * What:  fetches a blob, verifies it, and passes its bytes on in order. A broken transfer resumes
 *        where it ended; a large blob is requested in parallel ranges, if the server supports them.
 * Rules: the bytes are passed on before the digest is known: the receiver must discard them if
 *        blob_fetch() fails.
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
	size_t endpoint; /* index of the endpoint to try first */
	const struct descriptor *descriptor;
	source_write *write;
	void *ctx;
};

/* Return: 0: complete and verified; -EBADMSG: digest or size mismatch; the error of write(); or the
 * error of the last endpoint */
int blob_fetch(const struct blob *b, struct hw_err *e);

#endif
