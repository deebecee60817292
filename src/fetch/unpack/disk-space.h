/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/unpack/disk-space.h - room on a disk, of which some is to stay free
 *
 * What:  whoever writes says so before. What is free is looked at again when all
 *        that the last look found could be gone, and every 32 MiB.
 * Rules: a file that takes no bytes is counted as DISK_SPACE_BLOCK. With a reserve one
 *        of a hundred inodes stays free, too.
 */
#ifndef FETCH_UNPACK_DISK_SPACE_H
#define FETCH_UNPACK_DISK_SPACE_H

#include <stdint.h>

#include "base/err.h"

#define DISK_SPACE_BLOCK 4096

struct disk_space {
	int fd;		 /* anything on that disk; borrowed */
	int64_t reserve; /* bytes that stay free */
	int64_t left;	 /* bytes until the next look; 0: look at once */
};

int disk_space_use(struct disk_space *s, int64_t bytes, struct hw_err *e);
int disk_space_check(struct disk_space *s, int64_t bytes, struct hw_err *e);

#endif
