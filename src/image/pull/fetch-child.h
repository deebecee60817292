/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image/pull/fetch-child.h - hawser-fetch as a child process, and one kept on standby
 *
 * What:  start hawser-fetch with a socket to it. It is started without a job and
 *        waits for one (image/protocol/job.h) until the socket is closed.
 *        struct standby keeps one such process for the next pull: loading its
 *        libraries takes longer than a request to a registry.
 */
#ifndef IMAGE_PULL_FETCH_CHILD_H
#define IMAGE_PULL_FETCH_CHILD_H

#include "base/err.h"
#include "base/mem.h"
#include "base/os/child.h"

struct fetch_child {
	int socket;
	int child_end; /* of the socket pair; see fetch_child_running() */
	const char *argv[2];
	struct child_start start;
	struct child *child;
};

int fetch_child_start(const char *program, struct fetch_child **ret_child, struct hw_err *e);
/* To be called when the first message has arrived or the process has exited: closes the child's end
 * of the socket here. While it is open, EOF would not be seen after the last message. */
void fetch_child_running(struct fetch_child *f);
/* Kills the process if it is still running. NULL is allowed. */
void fetch_child_free(struct fetch_child *f);

AUTO_DEFINE(fetch_child_free, struct fetch_child);

/* ---- standby process --------------------------------------------------------- */

struct standby;

struct standby *standby_new(int keep_ms);
void standby_free(struct standby *s); /* no thread is in standby_keep() any more */

/* Return: the standby process, now owned by the caller; NULL if no process is on standby */
struct fetch_child *standby_take(struct standby *s);

/* Start a standby process, and wait until it is taken, for at most keep_ms or until standby_stop().
 * Returns at once if another thread is doing this. */
void standby_keep(struct standby *s, const char *program);
void standby_stop(struct standby *s);

#endif
