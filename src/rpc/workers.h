/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rpc/workers.h - threads for straight-line blocking code
 *
 * What:  short jobs share a small pool and wait in a queue for it; a long job
 *        has a thread of its own. How many of these there may be is for the
 *        caller to say, who knows when one has done what it was for.
 * How:   threads have small stacks and take no signals; those of the pool are
 *        started as they are needed and stay.
 * Rules: a job is its caller's, who keeps it alive until run() is called; run()
 *        may free it. All functions may be called from any thread.
 */
#ifndef RPC_WORKERS_H
#define RPC_WORKERS_H

#include <stdbool.h>

#include "base/list.h"

struct workers;

struct job {
	void (*run)(struct job *job);
	/* private */
	struct list link;
	struct workers *workers;
};

struct workers_limits {
	unsigned pool;	/* threads for short jobs */
	unsigned queue; /* short jobs that wait */
};

struct workers *workers_new(const struct workers_limits *limits);
void workers_free(struct workers *w); /* waits for every job, those in the queue too */

/* Return: false: the queue is full, or no thread can be made */
bool workers_short(struct workers *w, struct job *job);
bool workers_long(struct workers *w, struct job *job);

#endif
