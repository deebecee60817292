/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/registry/registry.h - endpoints of an image: its mirrors and its registry
 *
 * What:  the endpoints of a reference, and requests to one of them in the OCI distribution
 *        protocol, which is also Docker's registry protocol v2, with authentication and retries.
 * Rules: credentials of the job are sent to the image's own registry only. A mirror gets the
 *        credentials that the auth file has for the mirror's host.
 *        Several threads may use a registry, each with its own struct http.
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
	const struct fetch_job *job;
	struct reference ref;
	struct certs *certs;
	struct endpoint *endpoints; /* in the order of use; the image's own registry is the last */
	size_t n;
};

/* The retries of a request so far. */
struct registry_retry {
	int tries;
	int64_t waited_ms;
};

/* Reads the files that the job names: certificates, keys and credentials. @job is borrowed. */
int registry_new(const struct fetch_job *job, struct registry **ret_registry, struct hw_err *e);
void registry_free(struct registry *r);
/* Replaces the credentials for all endpoints in the text of an error: documents that it quotes come from
 * these. Return: the code of the error */
int registry_hide_secrets(const struct registry *r, struct hw_err *e);

/* Send a request. If the registry demands a new token, get one and send the request a second time.
 * Sets request->authorization. *ret_response is also written on an error, for registry_backoff().
 * Return: 0 with status 2xx, or negative errno */
int registry_request(const struct endpoint *ep, struct http *h, struct http_request *request,
		     struct http_response *ret_response, struct hw_err *e);
/* Decide whether to send a failed request again. If so, wait first; the response may specify how
 * long. @error, @response: result of the last try. Return: true: send it again; false: the error is
 * permanent, or the maximum number of tries or the maximum delay is reached */
bool registry_backoff(const struct registry *r, struct registry_retry *retry, int error,
		      const struct http_response *response);

AUTO_DEFINE(registry_free, struct registry);

#endif
