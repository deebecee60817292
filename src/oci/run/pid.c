/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci/run/pid.c - process IDs that other programs have written to files, and facts about processes
 */
#include "oci/run/pid.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/os/file.h"
#include "base/str.h"

#define FILE_MAX 32
#define STAT_MAX 4096

int pid_read_file(int dir, const char *name, int *ret_n, struct hw_err *e)
{
	AUTO(buf_done) struct buf text = { 0 };
	long long n;
	int r;

	r = file_read_if_exists(dir, name, FILE_MAX, &text, e);
	if (r <= 0)
		return r;
	if (text.len > 0 && text.data[text.len - 1] == '\n')
		text.data[--text.len] = '\0';
	if (!str_to_int64(text.data, 0, INT_MAX, &n))
		return err_text(e, -EBADMSG, "malformed file %s", name);
	*ret_n = (int)n;
	return 1;
}

/* Errors of files below /proc/PID that say that the process does not exist. */
static bool has_ended(int error)
{
	return error == ENOENT || error == ESRCH;
}

pid_t pid_get_parent(pid_t pid)
{
	AUTO(buf_done) struct buf text = { 0 };
	struct hw_err ignored;
	const char *after;
	char path[64];
	int r;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	r = file_read(AT_FDCWD, path, STAT_MAX, &text, &ignored);
	if (r < 0)
		return has_ended(-r) ? 0 : r;
	/* PID (NAME) STATE PARENT ...; the name may contain anything */
	after = strrchr(str_or(text.data, ""), ')');
	return after && strlen(after) > 4 ? (pid_t)strtol(after + 4, NULL, 10) : 0;
}

/* Calls each() with the path of every open file of a process, until it returns another value than 0. Return:
 * that value; 0 also if there is no such process; or a negative errno */
static int walk_open_files(pid_t pid, int (*each)(void *ctx, const char *path), void *ctx)
{
	char path[PATH_MAX], folder[64];
	struct dirent *entry;
	int r = 0;
	ssize_t n;
	DIR *fds;

	snprintf(folder, sizeof(folder), "/proc/%d/fd", pid);
	fds = opendir(folder);
	if (!fds)
		return has_ended(errno) ? 0 : -errno;
	while (r == 0) {
		errno = 0;
		entry = readdir(fds);
		if (!entry) {
			r = -errno;
			break;
		}
		if (*entry->d_name == '.')
			continue;
		n = readlinkat(dirfd(fds), entry->d_name, path, sizeof(path) - 1);
		if (n < 0) {
			r = has_ended(errno) ? 0 : -errno; /* or it was closed */
			continue;
		}
		path[n] = '\0';
		r = each(ctx, path);
	}
	closedir(fds);
	return r < 0 && has_ended(-r) ? 0 : r;
}

struct wanted_path {
	bool (*matches)(const char *path, const char *name);
	const char *name;
};

static int compare_path(void *ctx, const char *path)
{
	const struct wanted_path *wanted = ctx;

	return wanted->matches(path, wanted->name);
}

int pid_has_open(pid_t pid, bool (*matches)(const char *path, const char *name), const char *name)
{
	struct wanted_path wanted = { matches, name };

	return walk_open_files(pid, compare_path, &wanted);
}

struct file_count {
	uint64_t max, files, sockets;
};

static int count_file(void *ctx, const char *path)
{
	struct file_count *count = ctx;

	if (count->files == count->max)
		return -E2BIG;
	count->files++;
	count->sockets += str_starts(path, "socket:[");
	return 0;
}

int pid_count_files(pid_t pid, uint64_t max, uint64_t *files, uint64_t *sockets)
{
	struct file_count count = { max, *files, *sockets };
	int r;

	r = walk_open_files(pid, count_file, &count);
	*files = count.files;
	*sockets = count.sockets;
	return r;
}
