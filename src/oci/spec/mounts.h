/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci/spec/mounts.h - mounts of a container
 *
 * What:  in this order: the default mounts; files that the runtime provides (injected); the mounts of
 *        the request, sorted by the depth of their path.
 *
 *	default		/proc, /dev (tmpfs), /dev/pts, /dev/mqueue, /sys and /sys/fs/cgroup (read-only,
 *			unless the container is privileged)
 *	container path	must be absolute; a mount of the request replaces a default or injected one of
 *			the same path; one at /dev also replaces the default ones below it
 *	host path	must be absolute; symbolic links are followed, and their target is mounted; a
 *			missing directory is created, as containerd and CRI-O do, unless another mount
 *			is refused
 *	propagation	private; from the host, if the source's mount is shared or a slave; in both
 *			directions, if it is shared. Sets rootfsPropagation.
 *	read-only	only the mount itself; recursive: also the mounts below it, only if private
 *	options		noexec, nodev, nosuid
 *	mappings	idmapped, if the handler can do it
 */
#ifndef OCI_SPEC_MOUNTS_H
#define OCI_SPEC_MOUNTS_H

#include "oci/handler.h"
#include "oci/spec/spec.h"

enum spec_propagation {
	SPEC_PRIVATE,
	SPEC_FROM_HOST,
	SPEC_BOTH_WAYS,
};

/* NULL means: empty. */
struct spec_mount {
	const char *container_path, *host_path;
	bool readonly, recursive_readonly;
	enum spec_propagation propagation;
	const struct hw_strings *options;
	const struct hw_list *uid_mappings, *gid_mappings; /* struct oci_mapping */
};

struct spec_mounts {
	const struct spec_mount *injected, *requested;
	size_t n_injected, n_requested;
	bool privileged;
	/* /sys of the host instead of a new sysfs: for a user namespace with the network of the host,
	 * because mounting sysfs needs rights in the user namespace that owns the network */
	bool bind_sys;
	/* of the handler */
	bool rro;
	enum oci_idmap idmap;
};

/*
 * Fills in s->mounts and s->rootfs_propagation. spec_set_namespaces() must have been called.
 *
 * Return: 0; -EINVAL if a mount is invalid, or its source does not propagate mounts; -EOPNOTSUPP if the
 * handler cannot make mounts that are recursively read-only; -EPERM if it cannot make a mount with these
 * mappings, or a host path must not be used; or another negative errno
 */
int spec_set_mounts(struct oci_spec *s, const struct spec_mounts *m, struct hw_err *e);

#endif
