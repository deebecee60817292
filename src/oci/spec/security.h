/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci/spec/security.h - masked and read-only paths, seccomp, AppArmor, SELinux
 *
 *	readonly_root	the root file system is read-only; mounts.h decides about mounts
 *	masked_paths, readonly_paths	as given; none if privileged
 *	seccomp		a compiled filter, and an OCI profile for its flags; only the profile for a handler
 *			that does not take compiled ones; none if privileged
 *	apparmor	a profile that is loaded, else an error; NULL: none
 *	selinux		labels of the process and of its mounts; an error if the host has no SELinux
 */
#ifndef OCI_SPEC_SECURITY_H
#define OCI_SPEC_SECURITY_H

#include "oci/spec/spec.h"

/* The AppArmor profile of containers without one of their own: units/hawser-default. */
#define SPEC_APPARMOR_DEFAULT "hawser-default"

/* NULL means: none. */
struct spec_security {
	bool privileged, readonly_root;
	const struct hw_strings *masked_paths, *readonly_paths;
	const void *seccomp_bpf; /* array of struct sock_filter; crun only, see handler.h */
	size_t seccomp_len;	 /* bytes */
	const char *seccomp;	 /* JSON of an OCI profile; with a filter, only its flags matter */
	const char *apparmor;
	const char *selinux_label, *mount_label; /* USER:ROLE:TYPE[:LEVEL] */
	const char *root; /* directory that contains /sys; "" except in tests */
};

/* Return: 0; -EOPNOTSUPP if the host lacks AppArmor or SELinux; -ENOENT if the AppArmor profile is not
 * loaded; -EINVAL if a label or a path is malformed; or another negative errno */
int spec_set_security(struct oci_spec *s, const struct spec_security *security, struct hw_err *e);

#endif
