/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci/run/monitor-internal.h - what monitor.c and monitor-create.c share
 */
#ifndef OCI_RUN_MONITOR_INTERNAL_H
#define OCI_RUN_MONITOR_INTERNAL_H

#include "oci/run/monitor.h"

int monitor_open_bundle(const char *bundle, int *ret_dir, struct hw_err *e);

/* Like monitor_adopt(), for a bundle whose lock is held. Return: 1; 0 if conmon is not found; or a negative
 * errno */
int monitor_find(int dir, struct monitor *ret, struct hw_err *e);

#endif
