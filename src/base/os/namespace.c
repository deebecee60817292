/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/os/namespace.c - namespaces of any kind: recognize and identify
 */
#include "base/os/namespace.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/mem.h"

/* With O_PATH, a path that leads to a FIFO or a device does no harm. */
int namespace_get(const char *path, struct namespace_id *ret_id, struct hw_err *e)
{
	autoclose int fd = -1;
	struct statfs fs;
	struct stat st;

	fd = open(path, O_PATH | O_CLOEXEC);
	if (fd < 0) {
		/* a process that has just ended has no namespaces */
		if (errno == ENOENT || errno == ENOTDIR || errno == ESRCH || errno == EACCES)
			return 0;
		return err_set(e, -errno, "open namespace %s", path);
	}
	if (fstatfs(fd, &fs) < 0 || fstat(fd, &st) < 0)
		return err_set(e, -errno, "read namespace %s", path);
	if (fs.f_type != NSFS_MAGIC)
		return 0;
	*ret_id = (struct namespace_id){ st.st_dev, st.st_ino };
	return 1;
}

bool namespace_exists(const char *path)
{
	struct namespace_id ignored_id;
	struct hw_err ignored;

	return namespace_get(path, &ignored_id, &ignored) > 0;
}
