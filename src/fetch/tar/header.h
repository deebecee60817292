/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/tar/header.h - parser of a tar header block
 */
#ifndef FETCH_TAR_HEADER_H
#define FETCH_TAR_HEADER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "fetch/tar/tar.h"

#define TAR_NAME_MAX 256 /* for prefix, slash and name */
#define TAR_LINK_MAX 100

struct tar_header {
	char flag; /* type of the member: '0', '5', 'x' ... */
	char path[TAR_NAME_MAX + 1];
	char target[TAR_LINK_MAX + 1];
	int64_t mode, uid, gid, size, mtime, major, minor;
};

/* Does the block contain only zeros? Two zero blocks end an archive. */
bool tar_header_is_zero(const uint8_t block[TAR_BLOCK]);
/* Return: 0, or -EINVAL: checksum mismatch or malformed number */
int tar_header_decode(const uint8_t block[TAR_BLOCK], struct tar_header *ret_header,
		      struct hw_err *e);

#endif
