/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/unpacker.h - the unpacker: the process that unpacks one layer
 *
 * What:  reads an archive from a pipe to its end and unpacks it, confined to the layer's root
 *        (confine.h).
 * Rules: the caller must first close all descriptors of other directories.
 */
#ifndef FETCH_UNPACKER_H
#define FETCH_UNPACKER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "fetch/unpack/unpack.h"
#include "image/protocol/layer-report.h"

#define UNPACKER_CHUNK (256 << 10)

struct unpacker {
	int archive;	     /* pipe to read from */
	size_t chunk;	     /* maximum number of bytes of one read */
	int idle_ms;	     /* timeout for the next bytes; 0: none */
	bool open;	     /* do not confine: for tests with a sanitizer */
	const char *diff_id; /* expected; NULL: any */
	struct unpack_options unpack;
};

/* Unpack a layer. The process stays confined: it must exit afterwards.
 * Return: 0; -EBADMSG: malformed archive, member that cannot be created, or diff ID mismatch;
 * -EOPNOTSUPP: unsupported member type; -EFBIG: a limit is exceeded; -ETIMEDOUT: no more bytes; or
 * an error of this machine */
int unpacker_run(const struct unpacker *p, struct unpacked *ret_unpacked, struct hw_err *e);

#endif
