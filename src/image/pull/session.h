/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image/pull/session.h - one pull or load: conversation with hawser-fetch
 *
 * What:  the daemon's side of image/protocol/job.h, from the JOB message until all
 *        layers are in the store.
 * Rules: a layer is added to the store as soon as it and all layers below it are
 *        complete. It stays there for the next attempt even if this one fails
 *        (store.h, holds).
 */
#ifndef IMAGE_PULL_SESSION_H
#define IMAGE_PULL_SESSION_H

#include "base/err.h"
#include "image/protocol/job.h"
#include "image/pull/incoming.h"
#include "image/pull/pull.h"
#include "image/pull/standby.h"
#include "image/store/store.h"

struct session_options {
	struct store *store;
	const char *program;	 /* path of hawser-fetch */
	struct standby *standby; /* or NULL */
	struct fetch_job *job;	 /* known documents are added */
	int archive;		 /* file to load from, borrowed; -1: pull */
	int cancel_fd;		 /* cancel when readable; -1: never */
	struct pull_progress *progress;
};

/*
 * Get an image and its layers. On success the layers are in the store and on disk, held by
 * *ret_image, which borrows from *o; the caller then adds the image with incoming_store(). The
 * process *ret_fetch is no longer needed; the caller may free it later, because that takes time.
 * Return: 0, or negative errno; the message names image and host
 */
int session_run(const struct session_options *o, struct incoming **ret_image,
		struct helper **ret_fetch, struct hw_err *e);

#endif
