/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rpc/socket.c - unix sockets by path
 *
 * How:   a socket is created as .NAME~ in the same directory. It is renamed to NAME when its owner
 *        and mode are set and it is listening.
 */
#include "rpc/socket.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"

static int make_address(const char *path, struct sockaddr_un *ret, struct hw_err *e)
{
	*ret = (struct sockaddr_un){ .sun_family = AF_UNIX };
	if (strlen(path) >= sizeof(ret->sun_path))
		return err_text(e, -ENAMETOOLONG, "%s: socket path too long: %zu bytes, limit %zu",
				path, strlen(path), sizeof(ret->sun_path) - 1);
	memcpy(ret->sun_path, path, strlen(path));
	return 0;
}

static int create_socket(int *ret_fd, struct hw_err *e)
{
	*ret_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	return *ret_fd < 0 ? err_set(e, -errno, "create socket") : 0;
}

int socket_connect(const char *path, int *ret_fd, struct hw_err *e)
{
	struct sockaddr_un address;
	autoclose int fd = -1;
	int r;

	r = make_address(path, &address, e);
	if (r < 0)
		return r;
	r = create_socket(&fd, e);
	if (r < 0)
		return r;
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		return err_set(e, -errno, "connect to %s", path);
	*ret_fd = take_fd(fd);
	return 0;
}

static int check_unused(const char *path, struct hw_err *e)
{
	autoclose int fd = -1;
	struct stat st;

	if (lstat(path, &st) < 0)
		return errno == ENOENT ? 0 : err_set(e, -errno, "stat %s", path);
	if (!S_ISSOCK(st.st_mode))
		return err_text(e, -EEXIST, "%s: exists and is not a socket", path);
	if (socket_connect(path, &fd, e) == 0 || e->code == -EAGAIN)
		return err_text(e, -EADDRINUSE, "%s: another process is listening on the socket",
				path);
	return 0;
}

/* Binds the socket to the temporary @path and listens. */
static int bind_and_listen(int fd, const char *path, const struct socket_owner *owner,
			   struct hw_err *e)
{
	struct sockaddr_un address;
	int r;

	r = make_address(path, &address, e);
	if (r < 0)
		return r;
	if (unlink(path) < 0 && errno != ENOENT)
		return err_set(e, -errno, "remove %s", path);
	/* on Linux bind() creates the file with the mode that fchmod() has set; chmod() can then
	 * add permissions */
	if (fchmod(fd, 0600) < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		return err_set(e, -errno, "bind socket to %s", path);
	if (chown(path, owner->uid, owner->gid) < 0 || chmod(path, owner->mode) < 0)
		return err_set(e, -errno, "change owner and mode of %s", path);
	if (listen(fd, SOMAXCONN) < 0)
		return err_set(e, -errno, "listen on %s", path);
	return 0;
}

int socket_listen(const char *path, const struct socket_owner *owner, int *ret_fd, struct hw_err *e)
{
	const char *slash = strrchr(path, '/');
	int dir = slash ? (int)(slash - path) + 1 : 0; /* length of the directory's name */
	autofree char *temporary = str_printf("%.*s.%s~", dir, path, path + dir);
	autoclose int fd = -1;
	int r;

	r = check_unused(path, e);
	if (r == 0)
		r = create_socket(&fd, e);
	if (r == 0)
		r = bind_and_listen(fd, temporary, owner, e);
	if (r == 0 && rename(temporary, path) < 0)
		r = err_set(e, -errno, "rename %s to %s", temporary, path);
	if (r < 0) {
		unlink(temporary);
		return r;
	}
	*ret_fd = take_fd(fd);
	return 0;
}
