/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci/oom-score.h - oom_score_adj of processes that this one starts, and of those in a cgroup
 */
#ifndef OCI_OOM_SCORE_H
#define OCI_OOM_SCORE_H

#include "base/err.h"
#include "oci/cgroup.h"

/* Raises @wanted to the lowest oom_score_adj that this process may set for others. Without
 * CAP_SYS_RESOURCE that is its own value: a process inherits it, and may not lower it. Return: 0, or a
 * negative errno */
int oom_score_clamp(int wanted, int *ret_score, struct hw_err *e);

/* Clamps @wanted, and sets it for all processes in a cgroup and in the cgroups below it. */
int oom_score_set(const struct cgroup_fs *fs, const char *cgroup, int wanted, struct hw_err *e);

#endif
