/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/unpack/disk-space.h - free space of a file system, with a reserve that stays free
 *
 * What:  a writer calls disk_space_use() before it writes. The free space is queried again after
 *        32 MiB, or earlier if less was free at the last query.
 * Rules: a file without data counts as DISK_SPACE_BLOCK bytes. With a reserve, one percent of the
 *        inodes stays free, too.
 */
#ifndef FETCH_UNPACK_DISK_SPACE_H
#define FETCH_UNPACK_DISK_SPACE_H

#include <stdint.h>

#include "base/err.h"

#define DISK_SPACE_BLOCK 4096

struct disk_space {
	int fd;		 /* any file on the file system; borrowed */
	int64_t reserve; /* bytes that stay free */
	int64_t left;	 /* bytes until the next query; 0: query at once */
};

/* Account for @bytes about to be written. Return: 0, or -ENOSPC */
int disk_space_use(struct disk_space *s, int64_t bytes, struct hw_err *e);
/* Query the free space: is there room for @bytes and the reserve? Return: 0, or -ENOSPC */
int disk_space_check(struct disk_space *s, int64_t bytes, struct hw_err *e);

#endif
