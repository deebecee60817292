/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cni/lock.h - the lock between GC and ADD or DEL of a network
 *
 * There is one lock file per network and holder. A holder is libhawser or a
 * plugin, by name, so a plugin never waits for the lock of the runtime that
 * started it. ADD and DEL share the lock, GC holds it exclusively.
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
char *lock_state_dir(void);

/*
 * Acquires the lock of a network.
 * @state_dir: created if missing
 * @network:   any text
 * @holder:    "libhawser", or the plugin's name
 * @exclusive: for GC; false: shared, for ADD and DEL
 * @deadline:  when to stop waiting
 * @ret_fd:    the lock; closing it, or the end of the process, releases it
 *
 * Return: 0, or a negative errno; CNI code 11 at the deadline
 */
int lock_acquire(const char *state_dir, const char *network, const char *holder, bool exclusive,
		 int64_t deadline, int *ret_fd, struct hw_err *e);

#endif
