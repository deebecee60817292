/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci/run/update.h - change the limits of a container: all of them, or none
 */
#ifndef OCI_RUN_UPDATE_H
#define OCI_RUN_UPDATE_H

#include "oci/cgroup.h"
#include "oci/run/runtime.h"

/* Like runtime_update(), but after a failure all limits are as before. @cgroup: the container's, as in
 * cgroup.h. Return: 0; -EIO if the runtime or the kernel refuses a limit, such as a memory limit below
 * what is in use; or another negative errno */
int update_limits(const struct runtime *rt, const struct cgroup_fs *fs, const char *cgroup,
		  const char *id, const struct oci_limits *limits, int64_t deadline,
		  struct hw_err *e);

#endif
