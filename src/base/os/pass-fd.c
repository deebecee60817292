/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/os/pass-fd.c - messages on a unix socket that carry a file descriptor
 */
#include "base/os/pass-fd.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

ssize_t pass_fd_send(int socket, struct iovec *parts, size_t n_parts, int along, int flags)
{
	union {
		char space[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = { 0 };
	struct msghdr msg = { .msg_iov = parts, .msg_iovlen = n_parts };

	if (along >= 0) {
		msg.msg_control = control.space;
		msg.msg_controllen = sizeof(control.space);
		*CMSG_FIRSTHDR(&msg) = (struct cmsghdr){ .cmsg_len = CMSG_LEN(sizeof(int)),
							 .cmsg_level = SOL_SOCKET,
							 .cmsg_type = SCM_RIGHTS };
		memcpy(CMSG_DATA(CMSG_FIRSTHDR(&msg)), &along, sizeof(along));
	}
	return sendmsg(socket, &msg, MSG_NOSIGNAL | flags);
}

ssize_t pass_fd_receive(int socket, void *data, size_t len, int *ret_fd, int flags)
{
	struct iovec iov = { .iov_base = data, .iov_len = len };
	/* CMSG_SPACE() includes padding in which a second descriptor would fit. With CMSG_LEN() the
	 * kernel discards the second one. */
	union {
		char space[CMSG_LEN(sizeof(int))];
		struct cmsghdr align;
	} control;
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = control.space,
			      .msg_controllen = sizeof(control.space) };
	struct cmsghdr *c;
	int received;
	ssize_t n;

	n = recvmsg(socket, &msg, MSG_CMSG_CLOEXEC | flags);
	if (n < 0)
		return n;
	c = CMSG_FIRSTHDR(&msg);
	if (!c || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS ||
	    c->cmsg_len != CMSG_LEN(sizeof(int)))
		return n;
	memcpy(&received, CMSG_DATA(c), sizeof(received));
	if (*ret_fd < 0)
		*ret_fd = received;
	else
		close(received);
	return n;
}
