/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cri/host.c - mounts of the host that pods and crun need
 *
 * How:   a directory becomes a mount by a copy of itself that is mounted on it. The copy gets a peer
 *        group of its own before it is mounted. If it stayed in the group of the mount around it,
 *        every mount below would be mounted twice, the second time out of sight.
 */
#include "cri/host.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sched.h>
#include <stdbool.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/log.h"
#include "base/os/file.h"
#include "base/str.h"
#include "base/time.h"

#define CGROUP_DIR	"/sys/fs/cgroup"
#define UNIFIED_DIR	CGROUP_DIR "/unified"
#define CONTROLLERS_MAX 4096
#define MOUNTINFO_MAX	(64 << 20)
#define LOCK_MS		10000
#define LOCK_POLL_MS	10
#define STACKED_MAX	16 /* mounts on top of each other at UNIFIED_DIR */

/* ---- shared mounts --------------------------------------------------------------------------- */

/* The mount that contains a file */
struct mount_facts {
	bool is_root; /* the file is the root of the mount */
	bool is_shared;
};

/* @line: "ID PARENT MAJOR:MINOR ROOT MOUNT-POINT OPTIONS shared:7 master:2 - TYPE SOURCE OPTIONS" */
static bool line_is_shared(const char *line)
{
	const char *end = strstr(line, " - "), *word = strstr(line, " shared:");

	return word && end && word < end;
}

static int get_mount(int fd, struct mount_facts *ret_facts, struct hw_err *e)
{
	AUTO(hw_strings_free) struct hw_strings lines = { 0 };
	AUTO(buf_done) struct buf text = { 0 };
	autofree char *id = NULL;
	struct statx st;
	int r;

	if (statx(fd, "", AT_EMPTY_PATH, STATX_MNT_ID, &st) < 0)
		return err_set(e, -errno, "statx");
	r = file_read(AT_FDCWD, "/proc/self/mountinfo", MOUNTINFO_MAX, &text, e);
	if (r < 0)
		return r;
	id = str_printf("%llu ", (unsigned long long)st.stx_mnt_id);
	strings_split(text.len ? text.data : "", '\n', &lines);
	for (size_t i = 0; i < lines.n; i++) {
		if (!str_starts(lines.v[i], id))
			continue;
		ret_facts->is_root = st.stx_attributes & STATX_ATTR_MOUNT_ROOT;
		ret_facts->is_shared = line_is_shared(lines.v[i]);
		return 0;
	}
	return err_text(e, -ENOENT, "mount %sis not in /proc/self/mountinfo", id);
}

static int set_propagation(int fd, unsigned long propagation, struct hw_err *e)
{
	struct mount_attr attr = { .propagation = propagation };

	if (mount_setattr(fd, "", AT_EMPTY_PATH, &attr, sizeof(attr)) < 0)
		return err_set(e, -errno, "change the propagation of the mount");
	return 0;
}

static int mount_copy(int dir, struct hw_err *e)
{
	autoclose int tree = -1;
	int r;

	tree = open_tree(dir, "",
			 OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH | AT_RECURSIVE);
	if (tree < 0)
		return err_set(e, -errno, "open_tree");
	r = set_propagation(tree, MS_PRIVATE, e);
	if (r == 0)
		r = set_propagation(tree, MS_SHARED, e);
	if (r == 0 &&
	    move_mount(tree, "", dir, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0)
		r = err_set(e, -errno, "move_mount");
	return r;
}

/* Opens a directory, with the lock that ip-netns(8) takes to do the same. Closing it releases the
 * lock. */
static int open_locked(const char *path, int *ret_fd, struct hw_err *e)
{
	int64_t deadline = time_deadline(LOCK_MS);
	autoclose int fd = -1;

	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return err_set(e, -errno, "open");
	while (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		if (errno != EWOULDBLOCK && errno != EINTR)
			return err_set(e, -errno, "lock");
		if (time_has_passed(deadline))
			return err_text(e, -ETIMEDOUT, "another process has locked it");
		time_sleep(LOCK_POLL_MS);
	}
	*ret_fd = take_fd(fd);
	return 0;
}

/* Creates a directory and makes sure that mounts below it propagate. @own: it becomes a mount itself,
 * even if the mount that contains it is shared */
static int make_shared(const char *path, mode_t mode, bool own, struct hw_err *e)
{
	autoclose int lock = -1, dir = -1;
	struct mount_facts m;
	int r;

	r = file_mkdirs(AT_FDCWD, path, mode, e);
	if (r == 0)
		r = open_locked(path, &lock, e);
	if (r < 0)
		return r;
	dir = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC); /* perhaps mounted during the wait */
	if (dir < 0)
		return err_set(e, -errno, "open");
	r = get_mount(dir, &m, e);
	if (r < 0 || (m.is_shared && (m.is_root || !own)))
		return r;
	return m.is_root ? set_propagation(dir, MS_SHARED, e) : mount_copy(dir, e);
}

/* ---- cgroup2 beside v1 ----------------------------------------------------------------------- */

/* The test of crun 1.8: with cgroup v1 it reads this file */
static bool crun_refuses(void)
{
	AUTO(buf_done) struct buf controllers = { 0 };
	struct statfs top, unified;
	struct hw_err ignored;

	return statfs(CGROUP_DIR, &top) == 0 && top.f_type != CGROUP2_SUPER_MAGIC &&
	       statfs(UNIFIED_DIR, &unified) == 0 && unified.f_type == CGROUP2_SUPER_MAGIC &&
	       file_read(AT_FDCWD, UNIFIED_DIR "/cgroup.controllers", CONTROLLERS_MAX, &controllers,
			 &ignored) == 0 &&
	       controllers.len > 0;
}

/* A slave gets mounts from the host, and the host none from it. Otherwise cgroup2 would be unmounted
 * on the host, too, or what is mounted below it. */
static int leave_unified(struct hw_err *e)
{
	if (unshare(CLONE_NEWNS) < 0)
		return err_set(e, -errno, "create a mount namespace");
	if (mount(NULL, CGROUP_DIR, NULL, MS_SLAVE, NULL) < 0)
		return err_set(e, -errno, "change the propagation of " CGROUP_DIR);
	for (int i = 0; i < STACKED_MAX && crun_refuses(); i++)
		if (mount(NULL, UNIFIED_DIR, NULL, MS_SLAVE | MS_REC, NULL) < 0 ||
		    umount2(UNIFIED_DIR, MNT_DETACH | UMOUNT_NOFOLLOW) < 0)
			return err_set(e, -errno, "unmount " UNIFIED_DIR);
	return 0;
}

static int check_root_propagation(struct hw_err *e)
{
	struct mount_facts m;
	autoclose int root = -1;
	int r;

	root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		return err_set(e, -errno, "open /");
	r = get_mount(root, &m, e);
	if (r == 0 && !m.is_shared)
		log_warn("/ is not a shared mount: volumes that are mounted on the host later will "
			 "be missing in containers; run mount --make-rshared /, and restart "
			 "hawser-cri");
	return r;
}

static int hide_unified(const struct config *c, struct hw_err *e)
{
	int r;

	r = make_shared(c->root, 0711, false, e);
	if (r < 0)
		return err_ctx(e, "make %s a shared mount", c->root);
	r = make_shared(c->state, 0755, false, e);
	if (r < 0)
		return err_ctx(e, "make %s a shared mount", c->state);
	r = check_root_propagation(e);
	if (r == 0)
		r = leave_unified(e);
	if (r < 0)
		return err_ctx(e, "hide " UNIFIED_DIR);
	log_event(LOG_INFO,
		  "crun does not support cgroup2 with controllers beside v1: entered a "
		  "mount namespace without it",
		  "mount", UNIFIED_DIR, NULL);
	return 0;
}

int host_prepare(const struct config *c, struct hw_err *e)
{
	int r;

	r = make_shared(c->netns_dir, 0755, true, e);
	if (r < 0)
		return err_ctx(e, "make %s a shared mount", c->netns_dir);
	return crun_refuses() ? hide_unified(c, e) : 0;
}
