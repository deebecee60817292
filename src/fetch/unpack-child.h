/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/unpack-child.h - starts an unpacker and reads its result
 *
 * How:   fork() without exec: the child inherits the supervisor's memory, and closes all
 *        descriptors except its own. The child writes its result to a pipe: one letter ('u' for
 *        struct unpacked, 'f' for an error), followed by JSON.
 */
#ifndef FETCH_UNPACK_CHILD_H
#define FETCH_UNPACK_CHILD_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"
#include "image/protocol/job.h"
#include "image/protocol/layer-report.h"

struct unpack_child {
	pid_t pid;  /* 0: not running */
	int result; /* pipe with the result, for poll(); -1: not running */
	struct buf received;
};

void unpack_child_init(struct unpack_child *c);
void unpack_child_done(struct unpack_child *c); /* kills the process */
/* Start an unpacker. *ret_archive: pipe to write the layer's archive to. Return: 0, or negative
 * errno */
int unpack_child_start(struct unpack_child *c, const struct fetch_job *job,
		       const struct job_layer *layer, int *ret_archive, struct hw_err *e);
/* Read the result, when poll() reports it. Return: 1: unpacked, *ret_unpacked is set; 0: not
 * finished yet; or the unpacker's error */
int unpack_child_read(struct unpack_child *c, struct unpacked *ret_unpacked, struct hw_err *e);

#endif
