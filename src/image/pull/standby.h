/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image/pull/standby.h - a hawser-fetch process that is ready for the next pull
 *
 * What:  hawser-fetch is started without a job and waits for one (image/protocol/job.h) until its
 *        socket is closed. struct standby keeps one such process for the next pull, because loading
 *        its libraries takes longer than a request to a registry.
 */
#ifndef IMAGE_PULL_STANDBY_H
#define IMAGE_PULL_STANDBY_H

#include "base/os/helper.h"

/* Start hawser-fetch. */
int fetch_start(const char *program, struct helper **ret_fetch, struct hw_err *e);

struct standby;

struct standby *standby_new(int keep_ms);
void standby_free(struct standby *s); /* no thread may still be in standby_keep() */

/* Return: the standby process, now owned by the caller; NULL if no process is on standby */
struct helper *standby_take(struct standby *s);

/* Start a standby process, and wait until it is taken, keep_ms have passed or standby_stop() is
 * called. Returns at once if another thread already keeps a standby process. */
void standby_keep(struct standby *s, const char *program);
void standby_stop(struct standby *s);

#endif
