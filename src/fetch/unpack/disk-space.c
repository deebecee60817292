/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/unpack/disk-space.c - free space of a file system, with a reserve that stays free
 */
#include "fetch/unpack/disk-space.h"

#include <errno.h>
#include <sys/statvfs.h>

#define QUERY_EVERY  (32 << 20)
#define INODES_SHARE 100

static uint64_t subtract(uint64_t all, uint64_t part)
{
	return all > part ? all - part : 0;
}

static uint64_t free_bytes(const struct statvfs *fs)
{
	uint64_t n;

	if (__builtin_mul_overflow((uint64_t)fs->f_bavail, (uint64_t)fs->f_frsize, &n))
		return UINT64_MAX;
	return n;
}

/* Free inodes, counted as one block each. Not every file system counts inodes. */
static uint64_t free_inode_bytes(const struct statvfs *fs, int64_t reserve)
{
	uint64_t n = subtract(fs->f_favail, fs->f_files / INODES_SHARE);

	if (reserve == 0 || fs->f_files == 0 || n > UINT64_MAX / DISK_SPACE_BLOCK)
		return UINT64_MAX;
	return n * DISK_SPACE_BLOCK;
}

static uint64_t min(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

int disk_space_check(struct disk_space *s, int64_t bytes, struct hw_err *e)
{
	struct statvfs fs;
	uint64_t room, inodes, left;

	if (fstatvfs(s->fd, &fs) < 0)
		return err_set(e, -errno, "query free disk space");
	room = free_bytes(&fs);
	inodes = free_inode_bytes(&fs, s->reserve);
	left = subtract(room, (uint64_t)s->reserve);
	if ((uint64_t)bytes > left)
		return err_text(e, -ENOSPC,
				"not enough disk space for %lld bytes: %llu bytes free, %lld bytes "
				"reserved",
				(long long)bytes, (unsigned long long)room, (long long)s->reserve);
	if (inodes == 0)
		return err_text(e, -ENOSPC, "not enough free inodes: %llu of %llu free",
				(unsigned long long)fs.f_favail, (unsigned long long)fs.f_files);
	s->left = (int64_t)min(min(left - (uint64_t)bytes, inodes), QUERY_EVERY);
	return 0;
}

int disk_space_use(struct disk_space *s, int64_t bytes, struct hw_err *e)
{
	if (bytes > s->left)
		return disk_space_check(s, bytes, e);
	s->left -= bytes;
	return 0;
}
