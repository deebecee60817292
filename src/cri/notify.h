/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cri/notify.h - systemd's protocols: socket activation and readiness notification
 *
 * What:  sockets that systemd has opened for us (LISTEN_FDS), and state notifications
 *        (NOTIFY_SOCKET). Without systemd neither does anything.
 */
#ifndef CRI_NOTIFY_H
#define CRI_NOTIFY_H

#include <stddef.h>

#include "base/err.h"

#define NOTIFY_FDS_MAX 8

/* The listening stream sockets that the process was started with. They are set to CLOEXEC and
 * non-blocking, and their variables are removed from the environment.
 * Return: their number; -EINVAL if a descriptor is not such a socket */
int notify_sockets(int fds[NOTIFY_FDS_MAX], struct hw_err *e);

/* Sends lines of NAME=VALUE, such as "READY=1". Never blocks; errors are ignored. */
void notify_send(const char *text);
void notify_reloading(void); /* until the next READY=1 */

#endif
