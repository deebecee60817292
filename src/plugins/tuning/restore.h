/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/tuning/restore.h - give a pod its former sysctls and attributes back
 */
#ifndef PLUGINS_TUNING_RESTORE_H
#define PLUGINS_TUNING_RESTORE_H

#include <hawser/plugin.h>

#include "plugins/tuning/saved.h"

/* @sysctl: former values by their path. What is gone, or what the kernel refuses, is no error. */
int tuning_restore(const struct hw_call *call, const struct hw_map *sysctl, const struct saved *s,
		   struct hw_err *e);

#endif
