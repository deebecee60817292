/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/unpack/disk-space.c - room on a disk, of which some is to stay free
 */
#include "fetch/unpack/disk-space.h"

#include <errno.h>
#include <sys/statvfs.h>

#define SPACE_STEP   (32 << 20)
#define INODES_SHARE 100

static uint64_t beyond(uint64_t all, uint64_t kept)
{
	return all > kept ? all - kept : 0;
}

static uint64_t free_bytes(const struct statvfs *fs)
{
	uint64_t n;

	if (__builtin_mul_overflow((uint64_t)fs->f_bavail, (uint64_t)fs->f_frsize, &n))
		return UINT64_MAX;
	return n;
}

/* As if each were a block of bytes; not every file system counts them. */
static uint64_t free_inodes(const struct statvfs *fs, int64_t reserve)
{
	uint64_t n = beyond(fs->f_favail, fs->f_files / INODES_SHARE);

	if (reserve == 0 || fs->f_files == 0 || n > UINT64_MAX / DISK_SPACE_BLOCK)
		return UINT64_MAX;
	return n * DISK_SPACE_BLOCK;
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/**
 * disk_space_check() - is there room for so many bytes more, and what is to stay free?
 *
 * Return: 0, or -ENOSPC
 */
int disk_space_check(struct disk_space *s, int64_t bytes, struct hw_err *e)
{
	struct statvfs fs;
	uint64_t room, inodes, left;

	if (fstatvfs(s->fd, &fs) < 0)
		return err_set(e, -errno, "look for free space");
	room = free_bytes(&fs);
	inodes = free_inodes(&fs, s->reserve);
	left = beyond(room, (uint64_t)s->reserve);
	if ((uint64_t)bytes > left)
		return err_text(e, -ENOSPC,
				"there is no space for %lld bytes: %llu are free, %lld are to stay "
				"free",
				(long long)bytes, (unsigned long long)room, (long long)s->reserve);
	if (inodes == 0)
		return err_text(e, -ENOSPC,
				"there is no space for more files: %llu of %llu inodes "
				"are free",
				(unsigned long long)fs.f_favail, (unsigned long long)fs.f_files);
	s->left = (int64_t)least(least(left - (uint64_t)bytes, inodes), SPACE_STEP);
	return 0;
}

/**
 * disk_space_use() - so many bytes are about to be written
 *
 * Return: 0, or -ENOSPC
 */
int disk_space_use(struct disk_space *s, int64_t bytes, struct hw_err *e)
{
	if (bytes > s->left)
		return disk_space_check(s, bytes, e);
	s->left -= bytes;
	return 0;
}
