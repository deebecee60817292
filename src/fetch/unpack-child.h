/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/unpack-child.h - starts an unpacker and reads its result
 *
 * How:   fork() without exec: the child inherits the supervisor's memory, and closes all
 *        descriptors but its own. The result is JSON on a pipe, after one letter: 'u' for struct
 *        unpacked, 'f' for an error.
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
	pid_t pid;  /* 0: not running */
	int result; /* pipe, to poll for reading; -1: not running */
	struct buf received;
};

void unpack_child_init(struct unpack_child *c);
void unpack_child_done(struct unpack_child *c); /* kills the process */
/* *ret_archive: pipe to write the layer's archive to. Return: 0, or negative errno */
int unpack_child_start(struct unpack_child *c, const struct job *job, const struct job_layer *layer,
		       int *ret_archive, struct hw_err *e);
/* Return: 1: unpacked, *ret_unpacked is set; 0: not finished yet; or the unpacker's error */
int unpack_child_read(struct unpack_child *c, struct unpacked *ret_unpacked, struct hw_err *e);

#endif
