/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image/pull/pull.h - pull images from a registry into the store
 *
 * What:  the daemon's side of a pull: starts hawser-fetch, which processes the
 *        untrusted input, checks its messages, and adds layers and image to the
 *        store.
 * Rules: requests for the same reference and platform with the same credentials
 *        share one pull and its result. The pull is cancelled when all of these
 *        requests were cancelled or timed out. Requests with different credentials
 *        never share a pull, and a tag is resolved each time, so no client gets an
 *        image that the registry would refuse to that client.
 *        The number of requests for images of one registry is limited, so that a slow
 *        registry leaves room for others. Requests that share a pull count, too,
 *        because each of them has a thread of the caller.
 *        Layers that are in the store are not fetched again.
 *        A complete layer is added to the store at once, and stays there for the
 *        next attempt if the pull fails or the daemon is killed (store.h, holds).
 *        All functions are thread-safe.
 */
#ifndef IMAGE_PULL_PULL_H
#define IMAGE_PULL_PULL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hawser/field.h>

#include "base/err.h"
#include "base/mem.h"
#include "image/digest.h"
#include "image/platform.h"
#include "image/store/store.h"

/* Configuration of pulls. A running pull keeps the options that it started with. */
struct pull_options {
	const char *program;		     /* path of hawser-fetch */
	const char *auth_file;		     /* in the format of Docker's config.json; or NULL */
	const char *certs_dir;		     /* certificates of registries; or NULL */
	const struct hw_strings *mirrors;    /* HOST=URL, in order; or NULL */
	const struct hw_strings *plain_http; /* hosts to contact without TLS; or NULL */
	int idle_ms;			     /* timeout if no bytes arrive; 0: default */
	int64_t layer_bytes;		     /* maximum size of an unpacked layer; 0: default */
	int64_t reserve;		     /* bytes to leave free on the file system */
	bool keep_blobs;		     /* also keep the blobs of layers that can be rebuilt */
	uint32_t uid;			     /* user ID of the fetcher; 0: default */
	unsigned
		per_registry; /* maximum number of requests for images of a registry; 0: no limit */
};

struct puller;

/* The store is borrowed, the options are copied. */
struct puller *puller_new(struct store *store, const struct pull_options *options);
/* Change the options of pulls that start from now on. */
void puller_set_options(struct puller *p, const struct pull_options *options);
/* Cancels running pulls and waits for them. No thread may be in pull() any more. NULL is allowed. */
void puller_free(struct puller *p);

AUTO_DEFINE(puller_free, struct puller);

/* Progress of a layer. */
enum pull_state {
	PULL_WAITING,
	PULL_FETCHING,
	PULL_UNPACKING, /* fetched completely, not unpacked completely */
	PULL_COMPLETE,
	PULL_PRESENT, /* was already in the store */
};

struct pull_layer {
	char digest[DIGEST_TEXT]; /* digest of the blob */
	enum pull_state state;
	int64_t bytes, size; /* bytes of the blob: received so far, total */
};

struct pull_request {
	const char *reference; /* may be incomplete: "busybox" */
	/* Credentials for the registry of the reference; each may be NULL or "". */
	const char *username, *password, *identity_token, *registry_token;
	const struct platform *platform; /* NULL: the platform of this machine */
	int64_t deadline;		 /* of this request, not of the pull; see time.h */
	int cancel_fd;			 /* cancel when readable; or -1 */
	/* Called periodically in the caller's thread; or NULL. n is 0 until the layers are known. */
	void (*progress)(void *ctx, const struct pull_layer *layers, size_t n);
	void *ctx;
};

struct pull_result {
	char id[DIGEST_TEXT];	  /* image ID: digest of the configuration */
	char digest[DIGEST_TEXT]; /* manifest or index that the reference points to */
};

/*
 * Pull an image, or wait for a running pull of the same image. Return: 0, or negative errno:
 * -EINVAL: malformed reference; -ECANCELED: this request was cancelled; -ETIMEDOUT: its deadline
 * has passed; -EAGAIN: too many requests for images of this registry; others: see struct job_failed in image/protocol/job.h. The message names image and
 * host.
 */
int pull(struct puller *p, const struct pull_request *request, struct pull_result *ret_result,
	 struct hw_err *e);

/* Statistics since puller_new(). */
struct pull_counts {
	uint64_t good, failed; /* numbers of pulls that succeeded and failed */
	uint64_t bytes;	       /* bytes of blobs that were received */
	size_t running;
};

void pull_counts(struct puller *p, struct pull_counts *ret_counts);

#endif
