/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci/spec/namespaces.h - namespaces of a container, its user and group mappings, and its cgroup
 *
 *	mount		always new
 *	pid, network, ipc, uts, cgroup	the host's, new, or an existing one by its path
 *	user		the host's; new or by path, with at least one mapping each of users and groups
 */
#ifndef OCI_SPEC_NAMESPACES_H
#define OCI_SPEC_NAMESPACES_H

#include "oci/spec/spec.h"

/* Each namespace: NULL: the host's; "": a new one; else the path of an existing one. */
struct spec_namespaces {
	const char *pid, *network, *ipc, *uts, *cgroup, *user;
	const struct hw_list *uid_mappings, *gid_mappings; /* struct oci_mapping; NULL: none */
	const char *cgroups_path;			   /* cgroup_parent_oci_path() */
};

/* Fills in s->namespaces, s->uid_mappings, s->gid_mappings and s->cgroups_path. Return: 0; -EINVAL if
 * mappings are given without a user namespace or the reverse, or overlap */
int spec_set_namespaces(struct oci_spec *s, const struct spec_namespaces *n, struct hw_err *e);

#endif
