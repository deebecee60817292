/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/unpack/disk-space.c - checks free disk space before writing, and keeps a reserve free
 */
#include "fetch/unpack/disk-space.h"

#include <errno.h>

#include "base/os/file.h"

#define QUERY_EVERY  (32 << 20)
#define INODES_SHARE 100

int disk_space_check(struct disk_space *s, int64_t bytes, struct hw_err *e)
{
	uint64_t reserve = (uint64_t)s->reserve, kept, left, inodes;
	struct file_space fs;
	int r;

	r = file_space(s->fd, &fs, e);
	if (r < 0)
		return r;
	left = fs.bytes_free > reserve ? fs.bytes_free - reserve : 0;
	if ((uint64_t)bytes > left)
		return err_text(e, -ENOSPC,
				"not enough disk space for %lld bytes: %llu bytes free, %lld bytes "
				"reserved",
				(long long)bytes, (unsigned long long)fs.bytes_free,
				(long long)s->reserve);
	left -= (uint64_t)bytes;
	if (left > QUERY_EVERY)
		left = QUERY_EVERY;
	/* until the next query, allow at most one block for each remaining inode */
	kept = fs.inodes / INODES_SHARE;
	inodes = fs.inodes_free > kept ? fs.inodes_free - kept : 0;
	if (reserve > 0 && fs.inodes > 0) {
		if (inodes == 0)
			return err_text(e, -ENOSPC, "not enough free inodes: %llu of %llu free",
					(unsigned long long)fs.inodes_free,
					(unsigned long long)fs.inodes);
		if (left / DISK_SPACE_BLOCK >= inodes)
			left = inodes * DISK_SPACE_BLOCK;
	}
	s->left = (int64_t)left;
	return 0;
}

int disk_space_use(struct disk_space *s, int64_t bytes, struct hw_err *e)
{
	if (bytes > s->left)
		return disk_space_check(s, bytes, e);
	s->left -= bytes;
	return 0;
}
