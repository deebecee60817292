/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/supervisor-layer.h - the layers of a pull, on their way to be complete
 *
 *	state      meaning                                  next
 *	WAITING    not begun                                RUNNING, when there is room
 *	RUNNING    is fetched and unpacked at once          READY, when both have ended well
 *	READY      complete by itself                       DONE or AGAIN, when all below are
 *	AGAIN      cannot be rebuilt: fetched once more,    KEPT
 *	           for its blob to be kept
 *	KEPT       the blob is there                        DONE
 *	DONE       the daemon knows
 *
 * The last is gone to in the order of layers, since folders inherit from those below
 * (implied.h).
 */
#ifndef FETCH_SUPERVISOR_LAYER_H
#define FETCH_SUPERVISOR_LAYER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"
#include "fetch/unpack-child.h"
#include "image/protocol/job.h"
#include "image/protocol/unpacked.h"

enum layer_state { WAITING, RUNNING, READY, AGAIN, KEPT, DONE };

struct layer {
	const struct job_layer *plan;
	int root; /* O_PATH: once it is DONE, the daemon may give it another name */
	enum layer_state state;
	bool fetched, unpacked;
	bool has_blob; /* it is kept */
	struct layer_child child;
	struct unpacked result;
};

struct conductor {
	const struct job *job;
	int daemon;  /* borrowed */
	int fetcher; /* socket to the process that fetches */
	pid_t fetcher_pid;
	char *host; /* that the image comes from, once it is known */
	bool planned;
	struct job_plan plan;
	struct layer *layers;
	size_t n;
	size_t done; /* so many are DONE: the lowest ones */
	int running;
	bool broken; /* a pipe: a process that unpacks has failed */
};

/* After anything has changed: @l, which may be NULL, has come further. */
int conductor_go_on(struct conductor *c, struct layer *l, struct hw_err *e);
int conductor_layer_ctx(const struct conductor *c, const struct layer *l, struct hw_err *e);

#endif
