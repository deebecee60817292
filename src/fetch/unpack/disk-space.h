/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/unpack/disk-space.h - checks free disk space before writing, and keeps a reserve free
 *
 * What:  a writer calls disk_space_use() before it writes. The free space is queried again after 32
 *        MiB were written, or earlier if less was free at the last query.
 * Rules: callers count a file without data as DISK_SPACE_BLOCK bytes. If there is a reserve, one
 *        percent of the inodes also stays free.
 */
#ifndef FETCH_UNPACK_DISK_SPACE_H
#define FETCH_UNPACK_DISK_SPACE_H

#include <stdint.h>

#include "base/err.h"

#define DISK_SPACE_BLOCK 4096

struct disk_space {
	int fd;		 /* any open file on the file system; borrowed */
	int64_t reserve; /* bytes that stay free */
	int64_t left;	 /* bytes until the next query; 0: query at once */
};

/* To be called before @bytes are written. Return: 0, or -ENOSPC */
int disk_space_use(struct disk_space *s, int64_t bytes, struct hw_err *e);
/* Query the free space now. Return: 0 if there is enough for @bytes and the reserve, or -ENOSPC */
int disk_space_check(struct disk_space *s, int64_t bytes, struct hw_err *e);

#endif
