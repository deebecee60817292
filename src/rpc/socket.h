/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rpc/socket.h - unix sockets by path
 *
 * Rules: descriptors do not block and are CLOEXEC.
 */
#ifndef RPC_SOCKET_H
#define RPC_SOCKET_H

#include <sys/types.h>

#include "base/err.h"

struct socket_owner {
	mode_t mode; /* 0600 if nobody else is to call */
	uid_t uid;   /* -1: as it comes */
	gid_t gid;
};

/* The socket appears at @path complete, with owner and mode, when it can already be called; what a
 * dead server left there is replaced. -EADDRINUSE: somebody answers there. */
int socket_listen(const char *path, const struct socket_owner *owner, int *ret_fd,
		  struct hw_err *e);
int socket_connect(const char *path, int *ret_fd, struct hw_err *e);

#endif
