/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rpc/workers.h - threads for blocking code
 *
 * What:  short jobs wait in a queue for a thread of a small pool; a long job has a
 *        thread of its own. The caller limits the number of long jobs.
 * How:   threads have small stacks and block all signals. The threads of the pool are started when
 *        they are needed, and run until workers_free().
 * Rules: the caller owns a job and keeps it alive until run() is called; run() may
 *        free it. All functions may be called from any thread.
 */
#ifndef RPC_WORKERS_H
#define RPC_WORKERS_H

#include "base/list.h"

struct hw_err;
struct workers;

struct worker_job {
	void (*run)(struct worker_job *job);
	/* private */
	struct list link;
	struct workers *workers;
};

struct workers_limits {
	unsigned pool;	/* threads for short jobs */
	unsigned queue; /* short jobs that wait for a thread */
};

struct workers *workers_new(const struct workers_limits *limits); /* starts no thread */
void workers_free(struct workers *w); /* waits for all running and queued jobs */

/* Return: 0, -EBUSY if the queue is full, or another negative errno if no thread could be started. A
 * short job needs a new thread only if the pool has none. */
int workers_run_short(struct workers *w, struct worker_job *job, struct hw_err *e);
int workers_run_long(struct workers *w, struct worker_job *job, struct hw_err *e);

#endif
