/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rpc/socket.h - unix sockets by path
 *
 * Rules: descriptors are non-blocking and CLOEXEC.
 */
#ifndef RPC_SOCKET_H
#define RPC_SOCKET_H

#include <sys/types.h>

#include "base/err.h"

struct socket_owner {
	mode_t mode; /* such as 0600: only the owner may connect */
	uid_t uid;   /* -1: unchanged */
	gid_t gid;   /* -1: unchanged */
};

/* Creates a listening socket. When it appears at @path, its owner and mode are set and it accepts
 * connections. The socket of a server that no longer runs is replaced.
 * Return: 0; -EADDRINUSE if another process listens at @path; -EEXIST if @path exists and is not a
 * socket */
int socket_listen(const char *path, const struct socket_owner *owner, int *ret_fd,
		  struct hw_err *e);
/* Connects to a socket. Return: 0; -EAGAIN if too many connections wait to be accepted */
int socket_connect(const char *path, int *ret_fd, struct hw_err *e);

#endif
