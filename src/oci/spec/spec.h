/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci/spec/spec.h - the OCI runtime configuration of a container: config.json
 *
 * What:  the parts of the OCI runtime specification that we use, as C structs with field tables that
 *        encode and decode them. The other headers of this folder fill in the parts, a header for
 *        each concern:
 *
 *	process.h	arguments, environment, working directory, user, limits of the process
 *	capabilities.h	capabilities
 *	mounts.h	mounts
 *	namespaces.h	namespaces, user and group mappings, cgroup
 *	limits.h	resource limits in the cgroup
 *	devices.h	device nodes and device rules
 *	cdi.h		devices that vendors describe in files
 *	security.h	masked and read-only paths, seccomp, AppArmor, SELinux
 *
 * Rules: a zeroed struct is an empty configuration. All strings and lists in it are owned by it:
 *        spec_done() frees them. A function that fills in a part overwrites that part without freeing
 *        it, so it is called once.
 *        A container that is restarted with its daemon is read back from its config.json, so whatever
 *        is encoded can be decoded.
 */
#ifndef OCI_SPEC_SPEC_H
#define OCI_SPEC_SPEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hawser/field.h>

#include "base/err.h"
#include "base/mem.h"
#include "oci/mapping.h"

struct oci_user {
	uint32_t uid, gid;
	struct hw_list additional_gids; /* uint32_t */
};

struct oci_capabilities {
	struct hw_strings bounding, effective, inheritable, permitted, ambient; /* CAP_... */
};

struct oci_rlimit {
	char *type;	    /* RLIMIT_... */
	int64_t soft, hard; /* -1: no limit */
};

struct oci_process {
	bool terminal;
	bool has_console;
	uint32_t console_height, console_width; /* characters */
	struct oci_user user;
	struct hw_strings args, env;
	char *cwd;
	struct oci_capabilities capabilities;
	struct hw_list rlimits; /* struct oci_rlimit */
	bool no_new_privileges;
	char *apparmor_profile, *selinux_label;
	bool has_oom_score_adj;
	int oom_score_adj;
};

struct oci_mount {
	char *destination, *type, *source;
	struct hw_strings options;
	struct hw_list uid_mappings, gid_mappings; /* struct oci_mapping */
};

struct oci_namespace {
	char *type; /* "pid", "network", ... */
	char *path; /* "": a new one */
};

struct oci_device {
	char *type; /* "c", "b" */
	char *path; /* in the container */
	int64_t major, minor;
	uint32_t mode; /* permission bits */
	uint32_t uid, gid;
};

struct oci_device_rule {
	bool allow;
	char *type; /* "a": any; "c", "b" */
	bool has_major, has_minor;
	int64_t major, minor;
	char *access; /* of "rwm" */
};

struct oci_hugepage_limit {
	char *page_size;
	int64_t limit;
};

/* Also the argument of `crun update`. A number that is 0 is not set. */
struct oci_limits {
	struct hw_list device_rules; /* struct oci_device_rule */
	int64_t memory, swap;
	int64_t cpu_shares, cpu_quota, cpu_period;
	char *cpus, *mems;
	int64_t pids;
	struct hw_list hugepages; /* struct oci_hugepage_limit */
	struct hw_map unified;
};

struct oci_hook {
	char *path;
	struct hw_strings args, env;
	int64_t timeout; /* seconds; 0: none */
};

struct oci_hooks {
	/* struct oci_hook */
	struct hw_list prestart, create_runtime, create_container, start_container, poststart,
		poststop;
};

struct oci_spec {
	char *version;
	struct oci_process process;
	char *root; /* path of the root file system */
	bool readonly_root;
	struct hw_list mounts; /* struct oci_mount */
	struct oci_hooks hooks;
	struct hw_map annotations;
	/* the object "linux": */
	struct hw_list namespaces;		   /* struct oci_namespace */
	struct hw_list uid_mappings, gid_mappings; /* struct oci_mapping */
	struct hw_list devices;			   /* struct oci_device */
	char *cgroups_path;
	struct oci_limits limits;
	char *seccomp; /* JSON object; NULL: no profile, or only a compiled one: see security.h */
	char *rootfs_propagation;
	struct hw_strings masked_paths, readonly_paths;
	char *mount_label;
};

/* The version that is written. crun 1.8.1 rejects 1.2.0 and later. */
#define SPEC_VERSION "1.0.2"

extern const struct hw_field spec_process_fields[]; /* struct oci_process; for `crun exec` */
extern const struct hw_field spec_limits_fields[];  /* struct oci_limits; for `crun update` */
extern const struct hw_field spec_hooks_fields[];   /* struct oci_hooks */

/* The text of config.json, to be freed by the caller. Return: 0; -E2BIG if it would be so large that
 * spec_decode() rejected it */
int spec_encode(const struct oci_spec *s, char **ret_json, struct hw_err *e);
/* Return: 0; -EBADMSG if it is malformed, then *ret needs no spec_done() */
int spec_decode(const char *json, size_t len, struct oci_spec *ret, struct hw_err *e);
void spec_done(struct oci_spec *s);
AUTO_VALUE_DEFINE(spec_done, struct oci_spec);

/* Appends a zeroed element. Return: the element, valid until the next call */
void *spec_append(struct hw_list *list, size_t size);

/* Sets an annotation, or replaces its value. */
void spec_annotate(struct oci_spec *s, const char *key, const char *value);
/* Return: the value of an annotation; "" if it is missing */
const char *spec_find_annotation(const struct oci_spec *s, const char *key);

#endif
