/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci/spec/devices.h - device nodes of a container, and the rules of its device cgroup
 *
 *	host path	symbolic links are followed; all device nodes below a directory
 *	container path	of the node or the directory; if empty, the host path
 *	permissions	of r, w and m (create nodes); if empty, all
 *	otherwise	nothing is allowed but the nodes that every container has: null, zero, full,
 *			random, urandom, tty, ptmx and pts. crun creates them.
 *	privileged	all device nodes of the host, and everything is allowed
 */
#ifndef OCI_SPEC_DEVICES_H
#define OCI_SPEC_DEVICES_H

#include "oci/spec/spec.h"

struct spec_device {
	const char *host_path, *container_path, *permissions;
};

struct spec_devices {
	const struct spec_device *v;
	size_t n;
	bool privileged;
};

/* Fills in s->devices and s->limits.device_rules. Return: 0; -EINVAL if a path is not a device or the
 * permissions are invalid; or another negative errno */
int spec_set_devices(struct oci_spec *s, const struct spec_devices *d, struct hw_err *e);

/* Adds a node that may not exist on this host, and a rule that allows it; for CDI. It replaces a node of the same path.
 * *device is copied. */
void spec_add_device(struct oci_spec *s, const struct oci_device *device, const char *permissions);

/* Return: 0 if these are permissions as described above; -EINVAL */
int spec_check_permissions(const char *permissions, struct hw_err *e);

#endif
