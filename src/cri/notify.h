/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cri/notify.h - the two things that systemd and a daemon say to each other
 *
 * What:  sockets that were opened for us (LISTEN_FDS), and how far we are
 *        (NOTIFY_SOCKET). Without systemd both are nothing.
 */
#ifndef CRI_NOTIFY_H
#define CRI_NOTIFY_H

#include <stddef.h>

#include "base/err.h"

#define NOTIFY_FDS_MAX 8

/* Listening stream sockets that we were started with; they are CLOEXEC and do not block, and the
 * environment no longer names them. Return: how many; -EINVAL: one is something else */
int notify_sockets(int fds[NOTIFY_FDS_MAX], struct hw_err *e);

/* "READY=1", "STOPPING=1" ...; a manager that cannot be told is not waited for. */
void notify_send(const char *text);
void notify_reloading(void);

#endif
