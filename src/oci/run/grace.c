/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci/run/grace.c - wait early for the grace period that the first move between cgroups costs
 *
 * How:   the thread moves this process to the cgroup where it is. That changes nothing, but takes
 *        the kernel's lock for moves (cgroup_threadgroup_rwsem). Until a grace period after its
 *        release, the next writer gets that lock without waiting. Any hierarchy will do.
 */
#include "oci/run/grace.h"

#include <fcntl.h>
#include <string.h>

#include "base/os/file.h"
#include "base/os/thread.h"
#include "base/str.h"

#define CGROUP_FILE_MAX (64 << 10)

/* Whether a line of /proc/self/cgroup, NUMBER:CONTROLLER,...:PATH, is that of a hierarchy. */
static const char *find_path(char *line, const struct cgroup_hierarchy *h)
{
	char *list = strchr(line, ':'), *path = list ? strchr(list + 1, ':') : NULL;
	AUTO(hw_strings_free) struct hw_strings controllers = { 0 };

	if (!path)
		return NULL;
	*path++ = '\0';
	if (h->v2)
		return list[1] ? NULL : path;
	strings_split(list + 1, ',', &controllers);
	return h->controllers.n > 0 && strings_has(&controllers, h->controllers.v[0]) ? path : NULL;
}

/* Return: the cgroup.procs of this process's own cgroup, allocated; NULL if it is not found */
static char *find_file(const struct cgroup_hierarchy *h)
{
	AUTO(buf_done) struct buf text = { 0 };
	struct hw_err ignored;
	char *next;

	if (file_read(AT_FDCWD, "/proc/self/cgroup", CGROUP_FILE_MAX, &text, &ignored) < 0)
		return NULL;
	for (char *line = text.data; line && *line; line = next) {
		const char *path;

		next = strchr(line, '\n');
		if (next)
			*next++ = '\0';
		path = find_path(line, h);
		if (path)
			return str_printf("%s%s/cgroup.procs", h->dir,
					  str_equal(path, "/") ? "" : path);
	}
	return NULL;
}

static void *move_to_own(void *arg)
{
	struct grace *g = arg;
	struct hw_err ignored;

	(void)file_write_value(AT_FDCWD, g->file, "0", &ignored);
	return NULL;
}

void grace_start(struct grace *g, const struct cgroup_fs *fs)
{
	struct hw_err ignored;

	*g = (struct grace){ .file = find_file(&fs->v[0]) };
	g->started = g->file && thread_start(move_to_own, g, &g->thread, &ignored) == 0;
}

void grace_end(struct grace *g)
{
	if (g->started)
		pthread_join(g->thread, NULL);
	free(g->file);
	*g = (struct grace){ 0 };
}
