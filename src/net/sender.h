/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/sender.h - a helper process that sends a datagram or keeps a socket open
 *
 * The kernel executes a netlink request while the sender is inside send(). Where
 * that takes long and the caller does not need the end of it, a helper process
 * sends the request; the reply arrives at the socket, which the caller shares.
 * The last close() of a netfilter socket blocks until the kernel has freed the
 * deleted objects: a helper process can be the one that closes last.
 */
#ifndef NET_SENDER_H
#define NET_SENDER_H

#include <stddef.h>

/* Send data on the socket fd from a helper process and return at once. The caller need not wait for
 * that process. Return: 0, or a negative errno and nothing will be sent. */
int sender_start(int fd, const void *data, size_t len);
/* Keep a duplicate of fd open, so that the caller's close() is not the last one and does not block.
 * The next helper process inherits it; if none is started, one is started at exit to hold it
 * briefly. Failure is ignored: the caller's close() then blocks. */
void sender_hold(int fd);

#endif
