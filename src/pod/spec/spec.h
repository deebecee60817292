/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pod/spec/spec.h - what a client asks for when it creates a pod
 *
 * What:  the request as a struct, with a field table that encodes it for the database.
 * Rules: immutable and shared (base/shared.h) once it was checked. Two requests are the same if
 *        their encoded texts are the same. Error texts contain the names of the fields of CRI,
 *        which are also the keys of the encoded text.
 */
#ifndef POD_SPEC_SPEC_H
#define POD_SPEC_SPEC_H

#include <stdbool.h>
#include <stdint.h>

#include <hawser/field.h>

#include "base/err.h"
#include "base/shared.h"
#include "oci/mapping.h"
#include "oci/resources.h"

/* Labels and annotations together, keys and values, in bytes. */
#define POD_LABELS_MAX (1 << 20)

/* Which namespace a pod or a container uses. The numbers are those of CRI. */
enum pod_mode {
	POD_MODE_POD,	    /* one namespace for the whole pod */
	POD_MODE_CONTAINER, /* one for each container */
	POD_MODE_NODE,	    /* the host's */
	POD_MODE_TARGET,    /* that of another container */
};

const char *pod_mode_name(int mode); /* "unknown" for other numbers */

struct pod_namespaces {
	int network, pid, ipc;	   /* enum pod_mode */
	char *target;		   /* container ID, for POD_MODE_TARGET */
	bool has_user;		   /* the client has sent a mode for the user namespace */
	int user;		   /* enum pod_mode */
	struct hw_list uids, gids; /* struct oci_mapping: one each and equal, for POD_MODE_POD */
};

/* An SELinux label. */
struct pod_selinux {
	char *user, *role, *type, *level;
};

struct pod_dns {
	struct hw_strings servers, searches, options;
};

struct pod_port {
	char *protocol; /* "tcp", "udp" or "sctp" */
	int container_port;
	int host_port; /* 0: the port is not published */
	char *host_ip; /* "": every address */
};

struct pod_spec {
	struct shared shared;
	char *text; /* the encoded spec; set by pod_spec_seal() */
	/* from here on: members of the table */
	char *name, *namespace, *uid;
	uint32_t attempt;
	char *handler; /* name of the runtime handler; "": the default one */
	char *hostname;
	char *log_directory;
	bool has_dns;
	struct pod_dns dns;
	struct hw_list ports; /* struct pod_port */
	struct hw_map labels, annotations;
	char *cgroup_parent;
	struct hw_map sysctls;
	struct pod_namespaces namespaces;
	struct pod_selinux selinux;
	bool privileged;
	char *security; /* hash of what else the security context has; it is only compared */
	bool has_resources, has_overhead;
	struct oci_resources resources, overhead;
};

/* Return: an empty spec, to be released with shared_unref() */
struct pod_spec *pod_spec_new(void);
/* Checks a spec and encodes it. The spec must not change after that. Return: 0 or -EINVAL */
int pod_spec_seal(struct pod_spec *spec, struct hw_err *e);
/* Decodes a text of pod_spec_seal(). */
int pod_spec_decode(const char *text, struct pod_spec **ret_spec, struct hw_err *e);

extern const struct hw_field pod_namespace_fields[]; /* struct pod_namespaces */
extern const struct hw_field pod_mapping_fields[];   /* struct oci_mapping */

/* Return: the mapping of the users and of the groups of a pod with a user namespace; NULL: it has none */
const struct oci_mapping *pod_user_mapping(const struct pod_namespaces *n);
/* Return: 0; -EINVAL if the mode or the mappings of the user namespace are invalid */
int pod_check_user(const struct pod_namespaces *n, struct hw_err *e);

/* Return: 0; -EINVAL if labels and annotations have more than POD_LABELS_MAX bytes in all */
int pod_check_labels(const struct hw_map *labels, const struct hw_map *annotations,
		     struct hw_err *e);

/* Labels are not supported yet. One that is not empty is refused on every host: a client that sends
 * it relies on it. Return: 0 or -EINVAL */
int pod_check_selinux(const struct pod_selinux *label, struct hw_err *e);

/* Return: the value of an annotation; NULL if the pod does not have it */
const char *pod_spec_annotation(const struct pod_spec *spec, const char *key);

/* The namespace that a sysctl belongs to. */
enum pod_sysctl { POD_SYSCTL_HOST, POD_SYSCTL_NETWORK, POD_SYSCTL_IPC, POD_SYSCTL_UTS };
enum pod_sysctl pod_sysctl_kind(const char *name);

#endif
