/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci/cgroup-kill.c - list and kill the processes of a cgroup
 *
 * How:   in a cgroup2 hierarchy the file cgroup.kill does everything. In v1 the processes are frozen
 *        while they are listed and killed, so that none of them forks meanwhile, and thawed, because
 *        a frozen process does not die. Both is done in hybrid mode, where a process may be in the
 *        cgroup of one hierarchy only. The list has the processes of all hierarchies.
 * Rules: a process ID may be reused between the listing and the signal. So a pidfd is opened, and the
 *        signal is sent only if the process ID is then still, or again, in the cgroup.
 *        If this process dies meanwhile, processes may stay frozen until the next cgroup_kill() or
 *        cgroup_thaw().
 */
#include "oci/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/os/file.h"
#include "base/time.h"
#include "oci/cgroup-internal.h"

#define PROCS_MAX (16 << 20) /* bytes of a cgroup.procs file: over two million processes */
#define STATE_MAX 64	     /* bytes of freezer.state */
#define BATCH	  64	     /* processes with an open pidfd */
#define FREEZE_MS 100	     /* a process in an uninterruptible system call cannot be frozen */
#define END_MS	  100	     /* until the processes are killed again */
#define POLL_MS	  1

/* ---- list ------------------------------------------------------------------------------------ */

static int add_pids(const char *dir, struct cgroup_pids *pids, struct hw_err *e)
{
	autofree char *path = str_printf("%s/cgroup.procs", dir);
	AUTO(buf_done) struct buf text = { 0 };
	char *line, *rest;
	int r;

	r = file_read(AT_FDCWD, path, PROCS_MAX, &text, e);
	if (r == -ENOENT || r == -ENODEV) /* removed before or after it was opened */
		return 0;
	if (r == -EOPNOTSUPP) /* of threads: the root of their domain lists the processes */
		return 0;
	if (r < 0)
		return r;
	rest = text.data;
	while ((line = strsep(&rest, "\n"))) {
		pid_t pid;

		pid = (pid_t)strtol(line, NULL, 10);
		if (pid <= 0) /* the last line; or a process of another PID namespace */
			continue;
		pids->v = mem_resize(pids->v, pids->n + 1, sizeof(*pids->v));
		pids->v[pids->n++] = pid;
	}
	return 0;
}

static int compare_pids(const void *a, const void *b)
{
	pid_t x = *(const pid_t *)a, y = *(const pid_t *)b;

	return x < y ? -1 : x > y;
}

static void sort_unique(struct cgroup_pids *pids)
{
	size_t n = 0;

	if (pids->n == 0)
		return;
	qsort(pids->v, pids->n, sizeof(*pids->v), compare_pids);
	for (size_t i = 1; i < pids->n; i++)
		if (pids->v[i] != pids->v[n])
			pids->v[++n] = pids->v[i];
	pids->n = n + 1;
}

int cgroup_list(const struct cgroup_fs *fs, const char *path, struct cgroup_pids *ret_pids,
		struct hw_err *e)
{
	struct cgroup_pids pids = { 0 };
	int r = 0;

	for (size_t i = 0; r == 0 && i < fs->n; i++) {
		AUTO(hw_strings_free) struct hw_strings dirs = { 0 };
		autofree char *dir = cgroup_dir(&fs->v[i], path);

		r = cgroup_subtree(dir, &dirs, e);
		for (size_t d = 0; r == 0 && d < dirs.n; d++)
			r = add_pids(dirs.v[d], &pids, e);
	}
	if (r < 0) {
		free(pids.v);
		return err_ctx(e, "list the processes of cgroup %s", path);
	}
	sort_unique(&pids);
	*ret_pids = pids;
	return 0;
}

/* ---- freezer of v1 --------------------------------------------------------------------------- */

static bool is_freezing(const char *dir)
{
	autofree char *path = str_printf("%s/freezer.state", dir);
	AUTO(buf_done) struct buf state = { 0 };
	struct hw_err ignored;

	return file_read(AT_FDCWD, path, STATE_MAX, &state, &ignored) == 0 && state.len > 0 &&
	       str_starts(state.data, "FREEZING");
}

/* Freezes a cgroup and all below it. A process that cannot be frozen in time may fork; the next
 * round of cgroup_kill() kills its children. */
static void freeze(const struct cgroup_hierarchy *freezer, const char *path)
{
	autofree char *dir = cgroup_dir(freezer, path);
	int64_t deadline = time_deadline(FREEZE_MS);

	if (cgroup_write(dir, "freezer.state", "FROZEN") < 0)
		return;
	while (is_freezing(dir) && !time_has_passed(deadline))
		time_sleep(POLL_MS);
}

/* Also thaws cgroups below it, which a process inside may have frozen. */
static int thaw(const struct cgroup_hierarchy *freezer, const char *path, struct hw_err *e)
{
	AUTO(hw_strings_free) struct hw_strings dirs = { 0 };
	autofree char *dir = cgroup_dir(freezer, path);
	int r;

	cgroup_write(dir, "freezer.state", "THAWED"); /* at once, even if the list fails */
	r = cgroup_subtree(dir, &dirs, e);
	for (size_t i = 0; r == 0 && i < dirs.n; i++) {
		r = cgroup_write(dirs.v[i], "freezer.state", "THAWED");
		if (r == -ENOENT || r == -ENODEV)
			r = 0;
		else if (r < 0)
			err_set(e, r, "thaw cgroup %s", dirs.v[i]);
	}
	return r;
}

int cgroup_thaw(const struct cgroup_fs *fs, const char *path, struct hw_err *e)
{
	const struct cgroup_hierarchy *freezer = cgroup_find_hierarchy(fs, "freezer");

	return freezer && !freezer->v2 ? thaw(freezer, path, e) : 0;
}

/* ---- kill ------------------------------------------------------------------------------------ */

/* Kills some of the processes: @pids has at most BATCH. */
static int kill_batch(const struct cgroup_fs *fs, const char *path, const pid_t *pids, size_t n,
		      struct hw_err *e)
{
	struct cgroup_pids still = { 0 };
	int fds[BATCH], r;

	for (size_t i = 0; i < n; i++)
		fds[i] = pidfd_open(pids[i], 0);
	r = cgroup_list(fs, path, &still, e);
	for (size_t i = 0; i < n; i++) {
		if (r == 0 && fds[i] >= 0 && still.n > 0 &&
		    bsearch(&pids[i], still.v, still.n, sizeof(*pids), compare_pids) &&
		    pidfd_send_signal(fds[i], SIGKILL, NULL, 0) < 0 && errno != ESRCH)
			r = err_set(e, -errno, "kill process %d of cgroup %s", (int)pids[i], path);
		if (fds[i] >= 0)
			close(fds[i]);
	}
	free(still.v);
	return r;
}

static int kill_listed(const struct cgroup_fs *fs, const char *path, struct hw_err *e)
{
	struct cgroup_pids pids = { 0 };
	int r;

	r = cgroup_list(fs, path, &pids, e);
	for (size_t i = 0; r == 0 && i < pids.n; i += BATCH)
		r = kill_batch(fs, path, pids.v + i, pids.n - i < BATCH ? pids.n - i : BATCH, e);
	free(pids.v);
	return r;
}

static int kill_v1(const struct cgroup_fs *fs, const char *path, struct hw_err *e)
{
	const struct cgroup_hierarchy *freezer = cgroup_find_hierarchy(fs, "freezer");
	struct hw_err thaw_error;
	int r, thawed = 0;

	if (freezer)
		freeze(freezer, path);
	r = kill_listed(fs, path, e);
	if (freezer)
		thawed = thaw(freezer, path, &thaw_error);
	if (r == 0 && thawed < 0) {
		*e = thaw_error;
		r = thawed;
	}
	return r;
}

static int kill_once(const struct cgroup_fs *fs, const char *path, struct hw_err *e)
{
	for (size_t i = 0; i < fs->n; i++) {
		autofree char *dir = cgroup_dir(&fs->v[i], path);
		int r;

		if (!fs->v[i].v2)
			continue;
		r = cgroup_write(dir, "cgroup.kill", "1");
		if (r < 0 && r != -ENOENT && r != -ENODEV && r != -EOPNOTSUPP)
			return err_set(e, r, "kill the processes of cgroup %s", path);
	}
	return fs->mode == CGROUP_V2 ? 0 : kill_v1(fs, path, e);
}

/* Return: the number of processes; or a negative errno */
static int count_processes(const struct cgroup_fs *fs, const char *path, struct hw_err *e)
{
	struct cgroup_pids pids = { 0 };
	int r;

	r = cgroup_list(fs, path, &pids, e);
	free(pids.v);
	return r < 0 ? r : (int)pids.n;
}

int cgroup_kill(const struct cgroup_fs *fs, const char *path, int64_t deadline, struct hw_err *e)
{
	int64_t again = 0;
	int n, r;

	for (;;) {
		n = count_processes(fs, path, e);
		if (n <= 0)
			return n;
		if (time_has_passed(again)) {
			r = kill_once(fs, path, e);
			if (r < 0)
				return r;
			again = time_deadline(END_MS);
		}
		if (time_has_passed(deadline))
			return err_text(e, -ETIMEDOUT,
					"kill cgroup %s: timed out, %d processes left", path, n);
		time_sleep(POLL_MS);
	}
}
