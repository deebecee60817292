/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/os/pass-fd.h - messages on a unix socket that carry a file descriptor
 */
#ifndef BASE_OS_PASS_FD_H
#define BASE_OS_PASS_FD_H

#include <stddef.h>
#include <sys/types.h>

struct iovec;

/* Like sendmsg() with MSG_NOSIGNAL and @flags. @along is a descriptor to pass with the first byte,
 * which is borrowed; or -1. Return: the number of bytes; -1 with errno */
ssize_t pass_fd_send(int socket, struct iovec *parts, size_t n_parts, int along, int flags);
/* Like recvmsg() with @flags. A descriptor that came along, with CLOEXEC, is stored in *ret_fd, or
 * closed if *ret_fd is not -1; further ones are closed. Return: the number of bytes; 0 on EOF; -1
 * with errno */
ssize_t pass_fd_receive(int socket, void *data, size_t len, int *ret_fd, int flags);

#endif
