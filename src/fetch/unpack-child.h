/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/unpack-child.h - a process that unpacks one layer, seen from outside
 *
 * What:  start it, with the pipe to write the archive to; take what it says.
 * How:   a fork without exec: nothing of this process is secret to it but the
 *        descriptors, of which it keeps its own. What it found out is JSON on a
 *        pipe, behind one letter: 'u' for unpacked.h's, 'f' for a failure.
 */
#ifndef FETCH_UNPACK_CHILD_H
#define FETCH_UNPACK_CHILD_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"
#include "image/protocol/job.h"
#include "image/protocol/unpacked.h"

struct unpack_child {
	pid_t pid;  /* 0: not started, or gone */
	int answer; /* to be polled; -1: none */
	struct buf said;
};

void unpack_child_init(struct unpack_child *c);
void unpack_child_done(struct unpack_child *c); /* kills it */
/* @ret_archive: where to write the archive */
int unpack_child_start(struct unpack_child *c, const struct job *job, const struct job_layer *layer,
		       int *ret_archive, struct hw_err *e);
/* Return: 1 when it has unpacked the layer, with *ret_unpacked; 0: not yet; or why it failed */
int unpack_child_read(struct unpack_child *c, struct unpacked *ret_unpacked, struct hw_err *e);

#endif
