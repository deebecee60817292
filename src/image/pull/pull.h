/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image/pull/pull.h - get an image from its registry into the store
 *
 * What:  the daemon's side of a pull: starts hawser-fetch, which does what is
 *        dangerous, checks what it says, and puts layers and image into the store.
 * Rules: who asks for the same reference and platform with the same credentials
 *        while it is being pulled shares that pull, and gets its result; it is
 *        cancelled when the last of them has gone. Other credentials make another
 *        pull, and a tag is asked for each time: nobody gets an image that the
 *        registry would not give to him.
 *        Layers that are in the store are not fetched again.
 *        A layer that is complete is in the store at once, and stays for the next
 *        try if this one fails, or the daemon is killed (store.h, holds).
 *        Every function may be called from any thread.
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

/* How pulls are to be done; copied, each pull keeps what it began with. */
struct pull_options {
	const char *program;		     /* hawser-fetch; a path */
	const char *auth_file;		     /* Docker's config.json; NULL: none */
	const char *certs_dir;		     /* NULL: none */
	const struct hw_strings *mirrors;    /* HOST=URL, in order; NULL: none */
	const struct hw_strings *plain_http; /* HOST; NULL: none */
	int idle_ms;			     /* without progress; 0: hawser-fetch's own */
	int64_t layer_bytes;		     /* of an unpacked layer; 0: the same */
	int64_t reserve;		     /* bytes of the file system that stay free */
	bool keep_blobs;		     /* also of layers that can be rebuilt */
	uint32_t uid;			     /* of the process that fetches; 0: the same */
};

struct puller;

struct puller *puller_new(struct store *store, const struct pull_options *options);
void puller_set(struct puller *p, const struct pull_options *options); /* for pulls from now on */
/* Pulls that run are cancelled and waited for; nobody is in pull() any more. */
void puller_free(struct puller *p);

AUTO_DEFINE(puller_free, struct puller);

/* How far it is, layer by layer. */
enum pull_state {
	PULL_WAITING,
	PULL_FETCHING,
	PULL_UNPACKING, /* fetched; the rest of it is being unpacked */
	PULL_COMPLETE,
	PULL_PRESENT, /* was in the store before */
};

struct pull_layer {
	char digest[DIGEST_TEXT]; /* of the blob */
	enum pull_state state;
	int64_t bytes, size; /* of the blob: so far, and in all */
};

struct pull_request {
	const char *reference; /* as people write it */
	/* for the reference's own registry; NULL or "": none */
	const char *username, *password, *identity_token, *registry_token;
	const struct platform *platform; /* NULL: this machine's */
	int64_t deadline;		 /* of time.h; the pull may go on for others */
	int cancel_fd;			 /* readable: the asker has gone; -1: none */
	/* called now and then, in the asker's thread; NULL: never. Nothing is known of layers before
	 * the first call with n > 0. */
	void (*progress)(void *ctx, const struct pull_layer *layers, size_t n);
	void *ctx;
};

struct pull_result {
	char id[DIGEST_TEXT];	  /* of the image: the digest of its configuration */
	char digest[DIGEST_TEXT]; /* of what the reference stands for: a manifest or an index */
};

/*
 * Return: 0, or negative errno with gRPC's code in @e: -EINVAL the reference is none; -ECANCELED,
 * -ETIMEDOUT the asker's own; else as image/protocol/job.c has it. The message names image and host.
 */
int pull(struct puller *p, const struct pull_request *request, struct pull_result *ret_result,
	 struct hw_err *e);

/* Since the start: of pulls that ended well and not, and of blobs that came. */
struct pull_counts {
	uint64_t good, failed, bytes;
	size_t running;
};

void pull_counts(struct puller *p, struct pull_counts *ret_counts);

#endif
