/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci/cgroup.h - cgroups of this host: create, list, kill, remove
 *
 * What:  the hierarchies in which crun puts containers, and operations on one cgroup in all of them
 *        at once. A cgroup is known by its path below the root of each hierarchy, such as
 *        /hawser/0123; cgroup-parent.h has the paths of pods.
 * Rules: all operations are idempotent: a cgroup that exists can be created, and one that is missing
 *        can be listed, killed and removed. struct cgroup_fs does not change, so threads share it.
 *        A path starts with a slash, is not "/", and has no component that is empty, "." or "..".
 * Not:   limits and statistics.
 */
#ifndef OCI_CGROUP_H
#define OCI_CGROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/str.h"

enum cgroup_mode {
	CGROUP_V1,
	CGROUP_V2,
	CGROUP_HYBRID, /* v1, and cgroup2 mounted beside it at /sys/fs/cgroup/unified */
};

struct cgroup_hierarchy {
	bool v2;
	char *dir;		       /* where it is mounted */
	struct hw_strings controllers; /* v1, if it has none: name=NAME; v2: may be empty */
};

struct cgroup_fs {
	enum cgroup_mode mode;
	struct cgroup_hierarchy *v;
	size_t n; /* at least 1 */
};

/* Finds the hierarchies of this host. @root: the directory that contains /proc and /sys; "" except in
 * tests. Return: 0; -ENOENT if no hierarchy is mounted below /sys/fs/cgroup; or another negative
 * errno */
int cgroup_fs_new(const char *root, struct cgroup_fs **ret_fs, struct hw_err *e);
void cgroup_fs_free(struct cgroup_fs *fs); /* accepts NULL */
AUTO_DEFINE(cgroup_fs_free, struct cgroup_fs);

/* Return: the hierarchy with a controller ("memory"); NULL if no hierarchy has it */
const struct cgroup_hierarchy *cgroup_find_hierarchy(const struct cgroup_fs *fs,
						     const char *controller);

#define CGROUP_PATH_MAX 2048

/* Whether a path is valid: see above. It has at most CGROUP_PATH_MAX bytes. */
bool cgroup_path_is_valid(const char *path);

/* Creates a cgroup and its parents. On v2, all controllers are enabled in it that can be: one that its
 * parents cannot enable is reported by crun, if a container has a limit that needs it. */
int cgroup_create(const struct cgroup_fs *fs, const char *path, struct hw_err *e);

/* The cgroup.procs files of a cgroup, one for each hierarchy: a process that writes "0" to all of them
 * moves into the cgroup. Overwrites *ret_files without freeing it. */
void cgroup_procs_files(const struct cgroup_fs *fs, const char *path, struct hw_strings *ret_files);

/* Process IDs, without order and duplicates; the caller frees v. */
struct cgroup_pids {
	pid_t *v;
	size_t n;
};
/* Lists the processes of a cgroup and of the cgroups below it. */
int cgroup_list(const struct cgroup_fs *fs, const char *path, struct cgroup_pids *ret_pids,
		struct hw_err *e);

/* Kills all processes of a cgroup and of the cgroups below it, including processes that are frozen or
 * that fork meanwhile, and waits for their end. Return: 0 if no process is left; -ETIMEDOUT */
int cgroup_kill(const struct cgroup_fs *fs, const char *path, int64_t deadline, struct hw_err *e);

/* Thaws the processes that a cgroup_kill() has left frozen because its process was killed. Thaws all frozen
 * processes of the cgroup and of those below it; only a v1 freezer, because nothing else was frozen. */
int cgroup_thaw(const struct cgroup_fs *fs, const char *path, struct hw_err *e);

/* Removes a cgroup and the cgroups below it; parents stay. Waits while processes are in it: call
 * cgroup_kill() first. Return: 0; -EBUSY if processes are left at the deadline; or another negative
 * errno */
int cgroup_remove(const struct cgroup_fs *fs, const char *path, int64_t deadline, struct hw_err *e);

#endif
