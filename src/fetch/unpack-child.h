/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/unpack-child.h - starts an unpacker and reads its result
 *
 * How:   helper_fork(): the child inherits the supervisor's memory, but no descriptors except its
 *        own. It sends one message: LAYER or FAILED (image/protocol/job.h).
 */
#ifndef FETCH_UNPACK_CHILD_H
#define FETCH_UNPACK_CHILD_H

#include <stddef.h>

#include "base/err.h"
#include "base/os/helper.h"
#include "image/protocol/job.h"
#include "image/protocol/layer-report.h"

/* Start an unpacker for layer number @i. *ret_archive: pipe to write the layer's archive to. Return:
 * 0, or negative errno */
int unpack_child_start(const struct fetch_job *job, const struct job_layer *layer, size_t i,
		       struct helper **ret_unpacker, int *ret_archive, struct hw_err *e);
/* Receive the result, when poll() reports it. Return: 0 with *ret_unpacked; or the unpacker's
 * error */
int unpack_child_read(const struct helper *unpacker, const struct fetch_job *job,
		      struct unpacked *ret_unpacked, struct hw_err *e);

#endif
