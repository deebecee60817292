/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci/cgroup-parent.h - the cgroup of a pod, and the names of the cgroups below it
 *
 * What:  checks the cgroup parent that a client gives for a pod, and computes paths for the two
 *        drivers: cgroupfs, where a parent is a path, and systemd, where it is a slice.
 *
 *	given to the driver			path			OCI path of container 12
 *	cgroupfs  /kubepods/pod1		/kubepods/pod1		/kubepods/pod1/12
 *	systemd   kubepods-pod1.slice	/kubepods.slice/kubepods-pod1.slice  kubepods-pod1.slice:hawser:12
 *	cgroupfs  ""				/hawser/POD		/hawser/POD/12
 *	systemd   ""			/hawser.slice/hawser-POD.slice	hawser-POD.slice:hawser:12
 */
#ifndef OCI_CGROUP_PARENT_H
#define OCI_CGROUP_PARENT_H

#include <stdbool.h>

#include "base/err.h"
#include "base/mem.h"

enum cgroup_driver {
	CGROUP_CGROUPFS,
	CGROUP_SYSTEMD,
};

struct cgroup_parent {
	enum cgroup_driver driver;
	char *path; /* in each hierarchy: see cgroup.h; "/" if the client chose the root */
	/* The client gave no parent: the cgroup is created and removed with the pod. A parent that the
	 * client gave belongs to the client, and other pods may be in it. */
	bool own;
};

/* @given: the client's choice, or "". With cgroupfs a path, which may lack the first slash. With
 * systemd the name of a slice, with or without the path of the slices above it. @pod: the pod's ID.
 * Return: 0; -EINVAL if @given does not fit the driver; ret_parent is written on success only */
int cgroup_parent_init(struct cgroup_parent *ret_parent, enum cgroup_driver driver,
		       const char *given, const char *pod, struct hw_err *e);
void cgroup_parent_done(struct cgroup_parent *parent);
AUTO_VALUE_DEFINE(cgroup_parent_done, struct cgroup_parent);

/* The cgroup of a container, or of the pause process, with this ID, for the functions of cgroup.h;
 * and the same as cgroupsPath of an OCI configuration. Return: allocated */
char *cgroup_parent_child(const struct cgroup_parent *parent, const char *id);
char *cgroup_parent_oci_path(const struct cgroup_parent *parent, const char *id);

#endif
