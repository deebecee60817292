/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image/pull/session.h - one pull or load, from the job to the layers in the store
 *
 * What:  the daemon's part of the conversation with hawser-fetch (image/protocol/job.h).
 * Rules: nothing that it says is believed: every document is hashed again, every
 *        index must name the next document, every layer must have the diff id
 *        of the configuration.
 *        A layer is in the store as soon as it and those below it are complete, and
 *        stays there for the next try, however this one ends (store.h, holds).
 */
#ifndef IMAGE_PULL_SESSION_H
#define IMAGE_PULL_SESSION_H

#include "base/err.h"
#include "image/protocol/job.h"
#include "image/pull/fetch-child.h"
#include "image/pull/incoming.h"
#include "image/pull/pull.h"
#include "image/store/store.h"

struct pull_run {
	struct store *store;
	const char *program;
	struct spare *spare; /* NULL: none */
	const struct job *job;
	int archive; /* that the image is in, borrowed; -1: none */
	int stop;    /* readable: to be cancelled; -1: never */
	struct board *board;
};

/* The image holds its layers, and is to be put (pull_image_put()). It borrows from *p. The process
 * has done its work; to end it can wait until somebody has time. */
int pull_run(const struct pull_run *p, struct pull_image **ret_image,
	     struct fetch_child **ret_fetch, struct hw_err *e);

#endif
