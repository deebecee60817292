/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cni/lock.h - locks between GC, ADD and DEL of a network, and other lock files
 *
 * There is one lock file per network and holder. The holder is "libhawser"
 * or the name of a plugin, so a plugin never waits for the lock of the runtime
 * that started it. ADD and DEL share the lock of the network, GC holds it
 * exclusively. ADD and DEL also hold the lock of their attachment, so that two
 * of them for the same attachment run one after the other.
 */
#ifndef CNI_LOCK_H
#define CNI_LOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

#define LOCK_TIMEOUT_MS 60000

/*
 * The default directory for locks and records: $HAWSER_STATE; else $XDG_RUNTIME_DIR/hawser for users
 * other than root, who cannot write below /run; else /run/hawser.
 *
 * Return: the path, freed by the caller
 */
char *state_dir_default(void);

/*
 * Acquires a lock that belongs to no network.
 * @name: name of the lock file
 *
 * Return: 0, or a negative errno; -ETIMEDOUT if the deadline passes
 */
int lock_file(const char *state_dir, const char *name, bool exclusive, int64_t deadline,
	      int *ret_fd, struct hw_err *e);

/*
 * Acquires the lock of a network.
 * @state_dir: created if missing
 * @network:   any text
 * @holder:    "libhawser", or the plugin's name
 * @exclusive: true for GC; false for ADD and DEL, which share the lock
 * @deadline:  when to stop waiting
 * @ret_fd:    the lock; it is released when this is closed or the process exits
 *
 * Return: 0, or a negative errno; CNI code 11 if the deadline passes
 */
int lock_acquire(const char *state_dir, const char *network, const char *holder, bool exclusive,
		 int64_t deadline, int *ret_fd, struct hw_err *e);

/*
 * Acquires the lock of an attachment.
 * @fd: the lock of the network, from lock_acquire(); closing it releases both locks
 *
 * Return: 0, or a negative errno; CNI code 11 if the deadline passes
 */
int lock_attachment(int fd, const char *container_id, const char *ifname, int64_t deadline,
		    struct hw_err *e);

#endif
