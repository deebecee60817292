/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci/run/update.h - change the limits of a container: all of them, or none
 */
#ifndef OCI_RUN_UPDATE_H
#define OCI_RUN_UPDATE_H

#include "oci/cgroup.h"
#include "oci/run/runtime.h"

/* Like runtime_update(), but after a failure all limits are as before. @cgroup: the container's, as in
 * cgroup.h; @commit: called when the limits have changed; if it fails, they change back. Return: 0; as
 * runtime_update(); or the error of @commit */
int update_limits(const struct runtime *rt, const struct cgroup_fs *fs, const char *cgroup,
		  const char *id, const struct oci_limits *limits, int64_t deadline,
		  int (*commit)(void *ctx, struct hw_err *e), void *ctx, struct hw_err *e);

#endif
