/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image/pull/standby.h - hawser-fetch as a child process; standby process
 *
 * What:  start hawser-fetch, connected by a socket. It is started without a job and
 *        waits for one (image/protocol/job.h) until the socket is closed.
 *        struct standby keeps one such process for the next pull, because loading
 *        its libraries takes longer than a request to a registry.
 */
#ifndef IMAGE_PULL_STANDBY_H
#define IMAGE_PULL_STANDBY_H

#include "base/err.h"
#include "base/mem.h"
#include "base/os/child.h"

struct fetch_child {
	int socket;
	int child_end; /* the child's end of the socket pair; see fetch_child_running() */
	const char *argv[2];
	struct child_start start;
	struct child *child;
};

int fetch_child_start(const char *program, struct fetch_child **ret_child, struct hw_err *e);
/* Close our copy of the child's end of the socket pair. To be called when the first message has
 * arrived or the process has exited. While the copy is open, we never receive EOF. */
void fetch_child_running(struct fetch_child *f);
/* Kills the process if it is still running. NULL is allowed. */
void fetch_child_free(struct fetch_child *f);

AUTO_DEFINE(fetch_child_free, struct fetch_child);

/* ---- standby process --------------------------------------------------------- */

struct standby;

struct standby *standby_new(int keep_ms);
void standby_free(struct standby *s); /* no thread may still be in standby_keep() */

/* Return: the standby process, now owned by the caller; NULL if no process is on standby */
struct fetch_child *standby_take(struct standby *s);

/* Start a standby process, and wait until it is taken, keep_ms have passed or standby_stop() is
 * called. Returns at once if another thread already keeps a standby process. */
void standby_keep(struct standby *s, const char *program);
void standby_stop(struct standby *s);

#endif
