/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/sender.h - a sender process that sends datagrams or keeps a descriptor open
 *
 * The kernel executes a netlink request inside send(). If that takes long and the
 * caller does not need to wait for it, a sender process calls send() instead. It
 * shares the socket with the caller, so the caller can read the reply.
 * The last close() of some descriptors blocks until the kernel has freed an object:
 * of a netfilter socket that has deleted something, or of a mount. If a sender process
 * holds the descriptor open, the caller's close() is not the last one.
 */
#ifndef NET_SENDER_H
#define NET_SENDER_H

#include <stddef.h>
#include <sys/uio.h>

/* Send the messages, in their order, on the socket fd from a sender process and return at once. The
 * messages are copied, and the caller need not wait for that process. Return: 0; or a negative
 * errno, then nothing will be sent */
int sender_start(int fd, const struct iovec *messages, size_t n);
/* Keep a duplicate of fd open, so that the caller's close() is not the last one and does not block.
 * The next sender process inherits the duplicate. If the caller starts no other sender process, one
 * is started when the caller exits, and holds the duplicate for a few milliseconds. Failure is
 * ignored: the caller's close() then blocks. */
void sender_hold(int fd);

#endif
