/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cni/lock.h - GC on one side, ADD and DEL on the other
 *
 * One file per (network, taker) under STATE/locks; the taker is libhawser or a
 * plugin by name, so nobody waits for a lock that its caller holds. ADD and DEL
 * share it, GC has it alone; waiting ends at a deadline with CNI code 11.
 */
#ifndef CNI_LOCK_H
#define CNI_LOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

#define LOCK_TIMEOUT_MS 60000

/* $HAWSER_STATE, else /run/hawser, for others than root $XDG_RUNTIME_DIR/hawser; to be freed */
char *lock_state_dir(void);
int lock_take(const char *state_dir, const char *network, const char *taker, bool exclusive,
	      int64_t deadline, int *ret_fd, struct hw_err *e);

#endif
