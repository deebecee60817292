/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/tar/header.h - the block before a member
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
	char flag; /* what it is: '0', '5', 'x' ... */
	char path[HEADER_NAME_MAX + 1];
	char target[HEADER_LINK_MAX + 1];
	int64_t mode, uid, gid, size, mtime, major, minor;
};

bool header_is_zero(const uint8_t block[TAR_BLOCK]);
int header_decode(const uint8_t block[TAR_BLOCK], struct header *ret_header, struct hw_err *e);

#endif
