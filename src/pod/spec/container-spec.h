/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pod/spec/container-spec.h - what a client asks for when it creates a container
 *
 * Rules: as in pod/spec/spec.h: immutable and shared once it was checked; two requests are the same
 *        if their encoded texts are the same; error texts contain the names of the fields of CRI.
 */
#ifndef POD_SPEC_CONTAINER_SPEC_H
#define POD_SPEC_CONTAINER_SPEC_H

#include <stdbool.h>
#include <stdint.h>

#include <hawser/field.h>

#include "base/err.h"
#include "base/shared.h"
#include "oci/resources.h"
#include "pod/spec/spec.h"

/* The numbers are those of CRI. */
enum container_propagation {
	CONTAINER_PRIVATE,
	CONTAINER_FROM_HOST,
	CONTAINER_BOTH_WAYS,
};

struct container_mount {
	char *container_path, *host_path;
	bool readonly, recursive_read_only, selinux_relabel;
	int propagation;			   /* enum container_propagation */
	struct hw_list uid_mappings, gid_mappings; /* struct oci_mapping */
	char *image; /* an image whose files are mounted; "": host_path is mounted */
	char *user_image;
	char *image_sub_path;
	struct hw_strings options; /* noexec, nodev, nosuid */
};

struct container_device {
	char *container_path, *host_path, *permissions;
};

/* The numbers are those of CRI. */
enum container_profile_type { PROFILE_RUNTIME_DEFAULT, PROFILE_UNCONFINED, PROFILE_LOCALHOST };

/* A profile for seccomp or AppArmor. */
struct container_profile {
	int type;  /* enum container_profile_type */
	char *ref; /* file or name, for PROFILE_LOCALHOST */
};

/* The numbers are those of CRI. */
enum container_groups_policy { GROUPS_MERGE, GROUPS_STRICT };

struct container_security {
	struct hw_strings add_capabilities, drop_capabilities, ambient_capabilities;
	bool privileged;
	struct pod_namespaces namespaces; /* only .pid, .target and .user matter */
	struct pod_selinux selinux;
	bool has_user, has_group;
	int64_t user, group;
	char *username;
	bool readonly_rootfs;
	struct hw_list groups; /* uint32_t: supplemental groups */
	int groups_policy;     /* enum container_groups_policy */
	bool no_new_privs;
	struct hw_strings masked_paths, readonly_paths;
	bool has_seccomp, has_apparmor; /* a missing profile means: unconfined */
	struct container_profile seccomp, apparmor;
};

struct container_spec {
	struct shared shared;
	char *text; /* the encoded spec; set by container_spec_seal() */
	/* from here on: members of the table */
	char *name;
	uint32_t attempt;
	char *image;	  /* what the client asked for: an ID or a name */
	char *user_image; /* how the image is called in the manifest; "": unknown */
	struct hw_strings command, args;
	char *working_dir;
	struct hw_map env;	/* in the order of the request */
	struct hw_list mounts;	/* struct container_mount */
	struct hw_list devices; /* struct container_device */
	struct hw_strings cdi_devices;
	struct hw_map labels, annotations;
	char *log_path;
	bool stdin, stdin_once, tty;
	int stop_signal; /* a signal of this machine; 0: that of the image, or SIGTERM */
	bool has_resources;
	struct oci_resources resources;
	struct container_security security;
};

/* Return: an empty spec, to be released with shared_unref() */
struct container_spec *container_spec_new(void);
/* Checks a spec and encodes it. The spec must not change after that. Return: 0 or -EINVAL */
int container_spec_seal(struct container_spec *spec, struct hw_err *e);
/* Decodes a text of container_spec_seal(). */
int container_spec_decode(const char *text, struct container_spec **ret_spec, struct hw_err *e);
#endif
