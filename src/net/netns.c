/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/netns.c - network namespaces by path
 *
 * How:   a namespace file is on nsfs (a bind mount) or on procfs. Any other
 *        file is refused before it is opened, because an untrusted path may
 *        name a FIFO or a device.
 */
#include "net/netns.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/vfs.h>
#include <unistd.h>

int netns_open(const char *path, int *ret_fd, struct hw_err *e)
{
	struct statfs fs;
	int fd;

	if (statfs(path, &fs) < 0)
		return err_set(e, -errno, "failed to Statfs \"%s\"", path);
	if (fs.f_type != NSFS_MAGIC && fs.f_type != PROC_SUPER_MAGIC)
		return err_text(e, -EINVAL, "unknown FS magic on \"%s\": %lx", path,
				(unsigned long)fs.f_type);

	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return err_set(e, -errno, "open namespace \"%s\"", path);
	*ret_fd = fd;
	return 0;
}

/* A namespace is mounted on an empty file. After a reboot or a manual unmount the file may still
 * exist: it is then treated as a missing namespace. Upstream's DEL fails every time in this
 * case. */
int netns_find(const char *path, int *ret_fd, struct hw_err *e)
{
	int r;

	if (!*path)
		return 0;
	r = netns_open(path, ret_fd, e);
	if (r == -ENOENT || r == -ENOTDIR || r == -EINVAL)
		return 0;
	return r < 0 ? r : 1;
}
