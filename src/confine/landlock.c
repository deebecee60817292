/* SPDX-License-Identifier: Apache-2.0 */
/*
 * confine/landlock.c - restrict a process to reading certain files
 *
 * How:   a ruleset forbids all operations that this kernel's Landlock knows, and has an exception
 *        for each path. An exception belongs to the file that the path leads to at this time: if the
 *        file is replaced later, the process cannot read the new one.
 */
#include "confine/landlock.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/mem.h"

/* struct landlock_ruleset_attr of newer kernel headers; an older kernel accepts it if the members
 * that it does not know are 0 */
struct ruleset {
	uint64_t fs, net, scoped;
};

/* The restrictions that each version of Landlock added. */
static const struct ruleset additions[] = {
	[1] = { .fs = (UINT64_C(1) << 13) - 1 }, /* all up to MAKE_SYM */
	[2] = { .fs = UINT64_C(1) << 13 },	 /* REFER: rename to another directory */
	[3] = { .fs = UINT64_C(1) << 14 },	 /* TRUNCATE */
	[4] = { .net = UINT64_C(1) << 0 },	 /* BIND_TCP */
	[5] = { .fs = UINT64_C(1) << 15 },	 /* IOCTL_DEV */
	[6] = { .scoped = 3 },			 /* ABSTRACT_UNIX_SOCKET, SIGNAL */
};

static int add_path(int rules, const char *path, struct hw_err *e)
{
	struct landlock_path_beneath_attr rule = { .allowed_access = LANDLOCK_ACCESS_FS_READ_FILE };
	autoclose int fd = -1;
	struct stat st;

	fd = open(path, O_PATH | O_CLOEXEC);
	if (fd < 0 && (errno == ENOENT || errno == ENOTDIR || errno == EACCES))
		return 0;
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_set(e, -errno, "open %s", path);
	if (S_ISDIR(st.st_mode))
		rule.allowed_access |= LANDLOCK_ACCESS_FS_READ_DIR;
	rule.parent_fd = fd;
	if (syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) < 0)
		return err_set(e, -errno, "allow reading %s", path);
	return 0;
}

int landlock_allow_reading(const char *const *paths, size_t n, struct hw_err *e)
{
	struct ruleset all = { 0 };
	autoclose int rules = -1;
	long version;
	int r = 0;

	version = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
	/* ENOSYS and EOPNOTSUPP: not in this kernel, or switched off. EPERM and others: refused by a
	 * seccomp filter that was set before. */
	if (version < 0)
		return 0;
	for (long i = 1; i <= version && i < (long)ARRAY_SIZE(additions); i++) {
		all.fs |= additions[i].fs;
		all.net |= additions[i].net;
		all.scoped |= additions[i].scoped;
	}
	rules = (int)syscall(SYS_landlock_create_ruleset, &all, sizeof(all), 0);
	if (rules < 0)
		return err_set(e, -errno, "create a Landlock ruleset");
	for (size_t i = 0; r == 0 && i < n; i++)
		r = add_path(rules, paths[i], e);
	if (r == 0 && syscall(SYS_landlock_restrict_self, rules, 0) < 0)
		r = err_set(e, -errno, "restrict access to files");
	return r;
}
