/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cri/notify.c - systemd's protocols: socket activation and readiness notification
 *
 * How:   implements the protocols of sd_listen_fds(3) and sd_notify(3). Loading
 *        libsystemd would cost more than these few lines.
 */
#include "cri/notify.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/time.h"

#define FIRST_FD 3

int notify_sockets(int fds[NOTIFY_FDS_MAX], struct hw_err *e)
{
	long long pid = 0, n = 0;
	const char *count;
	bool ours = str_to_int64(str_or(getenv("LISTEN_PID"), ""), 1, INT32_MAX, &pid) &&
		    pid == getpid();

	count = getenv("LISTEN_FDS");
	if (!ours || !count)
		return 0;
	if (!str_to_int64(count, 0, NOTIFY_FDS_MAX, &n))
		return err_text(e, -EINVAL, "LISTEN_FDS=%.32s: expected a number up to %d", count,
				NOTIFY_FDS_MAX);
	for (int i = 0; i < n; i++) {
		int fd = FIRST_FD + i, listens = 0, type = 0;
		socklen_t size = sizeof(listens), type_size = sizeof(type);

		if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) < 0 ||
		    getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &type_size) < 0)
			return err_set(e, -errno, "descriptor %d of LISTEN_FDS", fd);
		if (!listens || type != SOCK_STREAM)
			return err_text(e, -EINVAL,
					"descriptor %d of LISTEN_FDS: not a listening stream "
					"socket",
					fd);
		if (fcntl(fd, F_SETFD, FD_CLOEXEC) < 0 ||
		    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) < 0)
			return err_set(e, -errno, "descriptor %d of LISTEN_FDS", fd);
		fds[i] = fd;
	}
	unsetenv("LISTEN_PID");
	unsetenv("LISTEN_FDS");
	unsetenv("LISTEN_FDNAMES");
	return (int)n;
}

void notify_send(const char *text)
{
	const char *path = str_or(getenv("NOTIFY_SOCKET"), "");
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	size_t len = strlen(path);
	autoclose int fd = -1;

	if ((path[0] != '/' && path[0] != '@') || len >= sizeof(to.sun_path))
		return;
	memcpy(to.sun_path, path, len);
	if (path[0] == '@')
		to.sun_path[0] = '\0';
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd >= 0)
		(void)!sendto(fd, text, strlen(text), MSG_NOSIGNAL, (struct sockaddr *)&to,
			      (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len));
}

void notify_reloading(void)
{
	autofree char *text = str_printf("RELOADING=1\nMONOTONIC_USEC=%" PRId64, time_now() / 1000);

	notify_send(text);
}
