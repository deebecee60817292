/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image/pull/fetch-child.h - a process of hawser-fetch, and the socket to it
 *
 * What:  started without a job, which is sent to it (image/protocol/job.h). It waits for one
 *        until the socket is closed, and has its libraries ready by then: to load
 *        them takes longer than to ask a registry.
 *        struct spare has one that waits, for the next pull.
 */
#ifndef IMAGE_PULL_FETCH_CHILD_H
#define IMAGE_PULL_FETCH_CHILD_H

#include "base/err.h"
#include "base/mem.h"
#include "base/os/child.h"

struct fetch_child {
	int socket;
	int theirs; /* its end; see fetch_child_runs() */
	const char *argv[2];
	struct child_start start;
	struct child *child;
};

int fetch_child_start(const char *program, struct fetch_child **ret_child, struct hw_err *e);
/* Something has come from it, or it has ended: so its end of the socket must not be open here any
 * more, that the end is seen after its last words. */
void fetch_child_runs(struct fetch_child *f);
void fetch_child_free(struct fetch_child *f); /* killed, if it has not ended; NULL is fine */

AUTO_DEFINE(fetch_child_free, struct fetch_child);

/* ---- one that waits ---------------------------------------------------------- */

struct spare;

struct spare *spare_new(int keep_ms);
void spare_free(struct spare *s); /* nobody keeps one any more */

/* Return: the one that waits, or NULL */
struct fetch_child *spare_take(struct spare *s);

/* Have one for the next pull: start it and wait until it is taken, or has not been for keep_ms, or
 * until spare_stop(). Returns at once where somebody else does that. */
void spare_keep(struct spare *s, const char *program);
void spare_stop(struct spare *s);

#endif
