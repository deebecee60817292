/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/sender.h - let a process of its own send a datagram, or hold a socket
 *
 * The kernel carries out a netlink request while its sender is inside send().
 * Where that takes long and nobody needs to see the end of it, another process
 * sends; the answer comes to the socket, which is ours as well.
 * And whoever closes a netfilter socket last waits for the end of what was
 * deleted: another process can be that one.
 */
#ifndef NET_SENDER_H
#define NET_SENDER_H

#include <stddef.h>

/* 0, or a negative errno and nothing will be sent. Nobody has to wait for the process. */
int sender_start(int fd, const void *data, size_t len);
/* Let our close() of a socket not be the last: it is held by the next sender, or by a process that
 * begins when we exit. */
void sender_hold(int fd);

#endif
