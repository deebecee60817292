/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cri/notify.h - systemd's protocols: socket activation and readiness notification
 *
 * What:  sockets that systemd has opened for us (LISTEN_FDS), and state notifications
 *        (NOTIFY_SOCKET). Without systemd these functions do nothing.
 */
#ifndef CRI_NOTIFY_H
#define CRI_NOTIFY_H

#include <stddef.h>

#include "base/err.h"

#define NOTIFY_FDS_MAX 8

/* Get the listening stream sockets that the process was started with. They are set to CLOEXEC and
 * non-blocking, and LISTEN_FDS etc. are removed from the environment.
 * Return: the number of sockets; -EINVAL if a descriptor is not a listening stream socket */
int notify_sockets(int fds[NOTIFY_FDS_MAX], struct hw_err *e);

/* Sends lines of NAME=VALUE, such as "READY=1". Never blocks; errors are ignored. */
void notify_send(const char *text);
void notify_reloading(void); /* lasts until the next READY=1 */

#endif
