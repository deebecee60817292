/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/tar/header.h - tar header block
 */
#ifndef FETCH_TAR_HEADER_H
#define FETCH_TAR_HEADER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "fetch/tar/tar.h"

#define HEADER_NAME_MAX 256 /* prefix, slash, name */
#define HEADER_LINK_MAX 100

struct header {
	char flag; /* type of the member: '0', '5', 'x' ... */
	char path[HEADER_NAME_MAX + 1];
	char target[HEADER_LINK_MAX + 1];
	int64_t mode, uid, gid, size, mtime, major, minor;
};

/* Two zero blocks end an archive. */
bool header_is_zero(const uint8_t block[TAR_BLOCK]);
/* Return: 0, or -EINVAL: checksum mismatch or malformed number */
int header_decode(const uint8_t block[TAR_BLOCK], struct header *ret_header, struct hw_err *e);

#endif
