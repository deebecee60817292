/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image/pull-run.h - one pull, from the job to the image in the store
 *
 * What:  the daemon's part of the conversation with hawser-fetch (image/job.h).
 * Rules: nothing that it says is believed: every document is hashed again, every
 *        index must name the next document, every layer must have the diff id
 *        of the configuration. When it dies, or says something else than was to
 *        be said next, nothing of it is kept.
 */
#ifndef IMAGE_PULL_RUN_H
#define IMAGE_PULL_RUN_H

#include "base/err.h"
#include "image/job.h"
#include "image/pull-board.h"
#include "image/pull.h"
#include "image/store.h"

struct pull_run {
	struct store *store;
	const char *program;
	const struct job *job;
	int stop; /* readable: to be cancelled */
	struct board *board;
};

int pull_run(const struct pull_run *p, struct pull_result *ret_result, struct hw_err *e);

#endif
