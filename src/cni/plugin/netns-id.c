/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cni/plugin/netns-id.c - the identity of a network namespace
 *
 * How:   the cookie of a namespace is an option of every socket in it.
 * Rules: a path from outside may lead to a FIFO or a device, so only files of
 *        nsfs are opened.
 */
#include "cni/plugin/netns-id.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/os/netns.h"
#include "base/str.h"

static int open_socket(int netns, int *ret_fd, struct hw_err *e)
{
	AUTO(netns_leave) struct netns_home home = NETNS_HOME;
	int fd, r;

	r = netns_enter(netns, &home, e);
	if (r < 0)
		return r;
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return err_set(e, -errno, "create a socket");
	*ret_fd = fd;
	return 0;
}

static int read_cookie(int netns, int64_t *ret_cookie, struct hw_err *e)
{
	autoclose int fd = -1;
	uint64_t cookie = 0;
	socklen_t len = sizeof(cookie);
	int r;

	r = open_socket(netns, &fd, e);
	if (r == -EPERM || r == -EINVAL) /* -EINVAL: a namespace of another type */
		return 0;
	if (r < 0)
		return r;
	if (getsockopt(fd, SOL_SOCKET, SO_NETNS_COOKIE, &cookie, &len) == 0)
		*ret_cookie = (int64_t)cookie;
	return 0;
}

/* Return: 1 if the file was opened; 0 if it is not on nsfs or does not exist; or a negative errno */
static int open_nsfs(const char *path, int *ret_fd)
{
	struct statfs fs;
	int fd;

	if (statfs(path, &fs) < 0)
		return errno == ENOENT || errno == ENOTDIR ? 0 : -errno;
	if (fs.f_type != NSFS_MAGIC)
		return 0;
	fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	*ret_fd = fd;
	return 1;
}

int netns_id_read(const char *path, char **ret_file, int64_t *ret_cookie, struct hw_err *e)
{
	autoclose int fd = -1;
	int64_t cookie = 0;
	struct stat st;
	int r;

	r = open_nsfs(path, &fd);
	if (r < 0)
		return err_set(e, r, "open namespace %s", path);
	if (r > 0 && read_cookie(fd, &cookie, e) < 0)
		return err_ctx(e, "identify namespace %s", path);
	if ((fd >= 0 ? fstat(fd, &st) : stat(path, &st)) == 0)
		*ret_file = str_printf("%llu:%llu", (unsigned long long)st.st_dev,
				       (unsigned long long)st.st_ino);
	else if (errno == ENOENT || errno == ENOTDIR)
		*ret_file = str_copy("");
	else
		return err_set(e, -errno, "stat namespace %s", path);
	*ret_cookie = cookie;
	return 0;
}
