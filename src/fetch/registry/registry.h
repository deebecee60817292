/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/registry/registry.h - where an image is to be had, and what it consists of
 *
 * What:  a reference's registry and the mirrors before it; OCI's distribution
 *        protocol, which Docker's v2 is too.
 * Rules: credentials of the job are for the image's own registry. A mirror gets
 *        what the auth file has for the mirror's host.
 *        A document counts only when its digest and its size are right.
 *        May be used by several threads, each with a struct http of its own.
 */
#ifndef FETCH_REGISTRY_REGISTRY_H
#define FETCH_REGISTRY_REGISTRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "fetch/http/certs.h"
#include "fetch/http/http.h"
#include "fetch/registry/auth.h"
#include "fetch/source/source.h"
#include "image/digest.h"
#include "image/manifest.h"
#include "image/protocol/job.h"
#include "image/reference.h"

struct endpoint {
	char *host;
	char *base; /* https://HOST/v2/REPOSITORY */
	struct auth *auth;
};

struct registry {
	const struct job *job;
	struct reference ref;
	struct certs *certs;
	struct endpoint *endpoints; /* in the order in which they are asked; the last is its own */
	size_t n;
};

/* How often, and how long, a question was asked again. */
struct registry_retry {
	int tries;
	int64_t waited_ms;
};

int registry_new(const struct job *job, struct registry **ret_registry, struct hw_err *e);
void registry_free(struct registry *r);

/* Ask once; a stream is not begun again. @ret_answer is written also with an error, so that
 * registry_backoff() can do as it says. */
int registry_request(const struct endpoint *ep, struct http *h, struct http_request *q,
		     struct http_response *ret_answer, struct hw_err *e);
/* After an error: may it be tried again? Waits before it says so. */
bool registry_backoff(const struct registry *r, struct registry_retry *p, int error,
		      const struct http_response *answer);

AUTO_DEFINE(registry_free, struct registry);

#endif
