/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci/oom-score.c - oom_score_adj of processes that this one starts, and of those in a cgroup
 */
#include "oci/oom-score.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/os/file.h"

#define SCORE_MAX 16 /* bytes of the file */
#define ROUNDS	  10 /* children of processes that have the old value still appear meanwhile */

static bool has_sys_resource(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

	return syscall(SYS_capget, &head, data) == 0 &&
	       (data[CAP_TO_INDEX(CAP_SYS_RESOURCE)].effective & CAP_TO_MASK(CAP_SYS_RESOURCE));
}

int oom_score_clamp(int wanted, int *ret_score, struct hw_err *e)
{
	AUTO(buf_done) struct buf text = { 0 };
	int own, r;

	if (has_sys_resource()) {
		*ret_score = wanted;
		return 0;
	}
	r = file_read(AT_FDCWD, "/proc/self/oom_score_adj", SCORE_MAX, &text, e);
	if (r < 0)
		return r;
	own = text.len > 0 ? (int)strtol(text.data, NULL, 10) : 0;
	*ret_score = wanted > own ? wanted : own;
	return 0;
}

static bool has_pid(const struct cgroup_pids *pids, pid_t pid)
{
	for (size_t i = 0; i < pids->n; i++)
		if (pids->v[i] == pid)
			return true;
	return false;
}

/* The file is opened before the process is looked for in the cgroup again, so it is not the file of another
 * process that has got the number. Return: 1 if the value has changed; 0; or a negative errno */
static int set_one(const struct cgroup_fs *fs, const char *cgroup, pid_t pid, int score,
		   struct hw_err *e)
{
	char path[64], text[SCORE_MAX] = "";
	struct cgroup_pids still = { 0 };
	autoclose int fd = -1;
	bool found;
	int r;

	snprintf(path, sizeof(path), "/proc/%d/oom_score_adj", pid);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT || errno == ESRCH ? 0 : err_set(e, -errno, "open %s", path);
	if (read(fd, text, sizeof(text) - 1) < 0 || strtol(text, NULL, 10) == score)
		return 0;
	r = cgroup_list(fs, cgroup, &still, e);
	if (r < 0)
		return r;
	found = has_pid(&still, pid);
	free(still.v);
	if (!found)
		return 0;
	if (dprintf(fd, "%d", score) < 0)
		return errno == ESRCH ? 0 : err_set(e, -errno, "write %s", path);
	return 1;
}

int oom_score_set(const struct cgroup_fs *fs, const char *cgroup, int wanted, struct hw_err *e)
{
	bool changed = true;
	int r, score;

	r = oom_score_clamp(wanted, &score, e);
	for (int i = 0; r == 0 && changed && i < ROUNDS; i++) {
		struct cgroup_pids pids = { 0 };

		changed = false;
		r = cgroup_list(fs, cgroup, &pids, e);
		for (size_t j = 0; r >= 0 && j < pids.n; j++) {
			r = set_one(fs, cgroup, pids.v[j], score, e);
			changed |= r > 0;
		}
		free(pids.v);
		r = r < 0 ? r : 0;
	}
	return r < 0 ? err_ctx(e, "oom_score_adj") : 0;
}
