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
	mode_t mode; /* 0600 if only the owner may connect */
	uid_t uid;   /* -1: unchanged */
	gid_t gid;   /* -1: unchanged */
};

/* Creates a listening socket. It appears at @path with its owner and mode, ready for connections;
 * the socket of a server that no longer runs is replaced.
 * Return: 0; -EADDRINUSE if another process listens there; -EEXIST if @path is not a socket */
int socket_listen(const char *path, const struct socket_owner *owner, int *ret_fd,
		  struct hw_err *e);
/* Return: 0, connected; -EAGAIN if too many connections wait to be accepted */
int socket_connect(const char *path, int *ret_fd, struct hw_err *e);

#endif
