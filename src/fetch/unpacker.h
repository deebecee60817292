/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/unpacker.h - the process that unpacks a layer
 *
 * What:  reads the archive from a pipe, to its end, and unpacks it, confined to
 *        the layer's root (confine.h).
 * Rules: descriptors of other folders are closed before. A writer that sends
 *        nothing for too long is not waited for.
 */
#ifndef FETCH_UNPACKER_H
#define FETCH_UNPACKER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "fetch/unpack/unpack.h"
#include "image/protocol/unpacked.h"

#define UNPACKER_CHUNK (256 << 10)

struct unpacker {
	int archive;	     /* to read it from */
	size_t chunk;	     /* at once, at most */
	int idle_ms;	     /* to wait for the next bytes; 0: for ever */
	bool open;	     /* not confined, for tests under a sanitizer */
	const char *diff_id; /* that it must have; NULL: any */
	struct unpack_options unpack;
};

int unpacker_run(const struct unpacker *p, struct unpacked *ret_unpacked, struct hw_err *e);

#endif
