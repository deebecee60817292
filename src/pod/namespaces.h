/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pod/namespaces.h - the namespaces of a pod
 *
 * What:  creates the namespaces that the containers of a pod share, with host name, sysctls and lo,
 *        and keeps each one by a bind mount. With a user namespace, the others belong to it. A pod has a process, hawser-pause, only if it has a
 *        PID namespace.
 */
#ifndef POD_NAMESPACES_H
#define POD_NAMESPACES_H

#include <hawser/field.h>

#include "base/err.h"
#include "oci/pause.h"
#include "pod/spec/spec.h"

struct namespaces_new {
	const struct pod_spec *spec;
	const char *netns;		      /* path of the pin of the network namespace */
	const char *dir;		      /* directory for the other pins */
	const struct hw_map *default_sysctls; /* those of the spec take precedence */
	const struct pause_host *pause;
	const struct hw_strings *procs; /* files cgroup.procs that hawser-pause joins */
};

/* *ret_pid: process ID of hawser-pause; 0: none. *ret_later: sysctls of interfaces that do not exist
 * yet; see namespaces_set_sysctls(). On failure some pins may exist: namespaces_remove() removes
 * them. */
int namespaces_create(const struct namespaces_new *n, int *ret_pid, struct hw_strings *ret_later,
		      struct hw_err *e);
/* Sets sysctls of the pod's network namespace: the values that the spec has for @names. */
int namespaces_set_sysctls(const char *netns, const struct pod_spec *spec,
			   const struct hw_strings *names, struct hw_err *e);
/* Kills hawser-pause and all processes in its namespace, and removes the pins. Idempotent. */
int namespaces_remove(const char *netns, const char *dir, struct hw_err *e);

/* Whether pods can have user namespaces: root file systems below @root, idmapped mounts at @state. Return: 0; or
 * a negative errno */
int namespaces_probe_user(const char *root, const char *state, struct hw_err *e);

#endif
