/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci/run/update.h - change the limits of a container: all of them, or none
 */
#ifndef OCI_RUN_UPDATE_H
#define OCI_RUN_UPDATE_H

#include "oci/cgroup.h"
#include "oci/run/runtime.h"

struct limits_update {
	const struct runtime *runtime;
	const struct cgroup_fs *fs;
	const char *cgroup; /* the container's, as in cgroup.h */
	const char *id;
	const struct oci_limits *limits;
	const char *text;    /* identifies the new limits */
	const char *journal; /* path of a file that exists while limits change */
	/* Called when the limits have changed; if it fails, they change back. */
	int (*commit)(void *ctx, struct hw_err *e);
	void *ctx;
};

/* Like runtime_update(), but after a failure all limits are as before. Return: 0; as
 * runtime_update(); or the error of commit() */
int update_limits(const struct limits_update *u, int64_t deadline, struct hw_err *e);
/* If the process was killed during an update: the limits change back, unless commit() was successful.
 * @text: identifies the limits that were committed last. Return: 1; 0 if there was none; or a negative
 * errno: try again later */
int update_recover(const char *journal, const char *text, struct hw_err *e);

#endif
