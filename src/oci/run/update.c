/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci/run/update.c - change the limits of a container: all of them, or none
 *
 * How:   crun writes one file of the cgroup after the other and stops at the first error. So the
 *        files that an update may change are read before it, and written back if it fails. Some
 *        limits depend on each other (memory on memory and swap, quota on period): what cannot be
 *        written yet is tried again after the others. What was read is also in a file, the journal,
 *        while limits change: after a kill, the next process writes it back. crun has inherited a lock
 *        on it, so that process first waits until crun has ended.
 * Not:   with the systemd driver, the properties of the unit are not restored. systemd writes them
 *        only when the unit is changed again.
 */
#include "oci/run/update.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <hawser/field.h>

#include "base/mem.h"
#include "base/os/file.h"
#include "base/str.h"
#include "base/time.h"

#define VALUE_MAX   4096
#define JOURNAL_MAX (4 << 20)
#define CRUN_MS	    5000 /* an update takes a few milliseconds */

static const struct {
	const char *controller, *v1, *v2; /* "": no such file */
} files[] = {
	{ "memory", "memory.memsw.limit_in_bytes", "memory.swap.max" },
	{ "memory", "memory.limit_in_bytes", "memory.max" },
	{ "cpu", "cpu.shares", "cpu.weight" },
	{ "cpu", "cpu.cfs_period_us", "" },
	{ "cpu", "cpu.cfs_quota_us", "cpu.max" },
	{ "cpuset", "cpuset.cpus", "cpuset.cpus" },
	{ "cpuset", "cpuset.mems", "cpuset.mems" },
	{ "pids", "pids.max", "pids.max" },
};

/* Paths of files, and what they contain. */
struct snapshot {
	char *next; /* what the limits will be: limits_update.text */
	struct hw_strings paths, values;
};

static const struct hw_field snapshot_fields[] = {
	{ "next", HW_STRING, HW_AT(struct snapshot, next), .flags = HW_REQUIRED },
	{ "paths", HW_STRINGS, HW_AT(struct snapshot, paths) },
	{ "values", HW_STRINGS, HW_AT(struct snapshot, values) },
	{ 0 },
};

static void snapshot_done(struct snapshot *s)
{
	hw_field_clear(snapshot_fields, s);
}
AUTO_VALUE_DEFINE(snapshot_done, struct snapshot);

/* A file that does not exist is left out: an update of it fails. */
static int add_file(struct snapshot *s, const struct cgroup_hierarchy *h, const char *cgroup,
		    const char *name, struct hw_err *e)
{
	autofree char *path = str_printf("%s%s/%s", h->dir, cgroup, name);
	AUTO(buf_done) struct buf text = { 0 };
	int r;

	r = file_read_if_exists(AT_FDCWD, path, VALUE_MAX, &text, e);
	if (r <= 0)
		return r;
	strings_add(&s->paths, path);
	strings_add(&s->values, str_or(text.data, ""));
	return 0;
}

static int take_snapshot(struct snapshot *s, const struct cgroup_fs *fs, const char *cgroup,
			 const struct oci_limits *limits, struct hw_err *e)
{
	const struct oci_hugepage_limit *pages = limits->hugepages.v;
	const struct cgroup_hierarchy *h;
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(files); i++) {
		h = cgroup_find_hierarchy(fs, files[i].controller);
		if (h && *(h->v2 ? files[i].v2 : files[i].v1))
			r = add_file(s, h, cgroup, h->v2 ? files[i].v2 : files[i].v1, e);
	}
	h = cgroup_find_hierarchy(fs, "hugetlb");
	for (size_t i = 0; h && r == 0 && i < limits->hugepages.n; i++) {
		autofree char *name = str_printf("hugetlb.%s.%s", pages[i].page_size,
						 h->v2 ? "max" : "limit_in_bytes");

		r = add_file(s, h, cgroup, name, e);
	}
	for (size_t i = 0; r == 0 && i < limits->unified.n; i++)
		r = add_file(s, &fs->v[0], cgroup, limits->unified.keys[i], e);
	return r;
}

static int restore_once(const struct snapshot *s, bool *ret_progress, struct hw_err *e)
{
	int result = 0, r;

	*ret_progress = false;
	for (size_t i = 0; i < s->paths.n; i++) {
		AUTO(buf_done) struct buf now = { 0 };

		r = file_read(AT_FDCWD, s->paths.v[i], VALUE_MAX, &now, e);
		if (r < 0)
			return r;
		if (str_equal(str_or(now.data, ""), s->values.v[i]))
			continue;
		r = file_write_value(AT_FDCWD, s->paths.v[i], s->values.v[i], e);
		if (r < 0)
			result = err_ctx(e, "restore limits");
		else
			*ret_progress = true;
	}
	return result;
}

static int restore(const struct snapshot *s, struct hw_err *e)
{
	bool progress;
	int r;

	do
		r = restore_once(s, &progress, e);
	while (r < 0 && progress);
	return r;
}

/* ---- the journal ----------------------------------------------------------------------- */

static int write_journal(const char *path, const struct snapshot *s, struct hw_err *e)
{
	autofree char *text = hw_field_encode(snapshot_fields, s, 0);

	return file_replace(AT_FDCWD, path, text, strlen(text), 0600, 0, e);
}

/* Return: 1; 0 if there is no journal; or a negative errno */
static int read_journal(const char *path, struct snapshot *ret, struct hw_err *e)
{
	AUTO(buf_done) struct buf text = { 0 };
	int r;

	r = file_read_if_exists(AT_FDCWD, path, JOURNAL_MAX, &text, e);
	if (r <= 0)
		return r;
	r = hw_field_decode(snapshot_fields, str_or(text.data, ""), text.len, ret, e);
	if (r == 0 && ret->paths.n != ret->values.n)
		r = err_text(e, -EBADMSG, "a path without a value");
	return r < 0 ? err_ctx(e, "%s", path) : 1;
}

int update_recover(const char *journal, const char *text, struct hw_err *e)
{
	AUTO(snapshot_done) struct snapshot before = { 0 };
	autoclose int lock = -1;
	int r;

	r = read_journal(journal, &before, e);
	if (r <= 0)
		return r;
	r = file_lock(AT_FDCWD, journal, true, time_deadline(CRUN_MS), &lock, e);
	if (r < 0)
		return r;
	if (!str_equal(before.next, text)) {
		r = restore(&before, e);
		if (r < 0 && r != -ENOENT) /* the cgroup of a container that has ended */
			return r;
	}
	unlink(journal); /* if it stays, it has no effect: the limits are as it says */
	return 1;
}

/* ---- update ---------------------------------------------------------------------------- */

/* crun 1.8 cannot write -1 for "no limit" to the file of v1. */
static int apply(const struct limits_update *u, int lock, int64_t deadline, struct hw_err *e)
{
	const struct cgroup_hierarchy *cpu = cgroup_find_hierarchy(u->fs, "cpu");
	bool remove_quota = u->limits->cpu_quota < 0 && cpu && !cpu->v2;
	struct oci_limits others = *u->limits;
	autofree char *path = NULL;
	int r;

	if (remove_quota)
		others.cpu_quota = 0;
	r = runtime_update(u->runtime, u->id, &others, lock, deadline, e);
	if (r < 0 || !remove_quota)
		return r;
	path = str_printf("%s%s/cpu.cfs_quota_us", cpu->dir, u->cgroup);
	return file_write_value(AT_FDCWD, path, "-1", e);
}

int update_limits(const struct limits_update *u, int64_t deadline, struct hw_err *e)
{
	AUTO(snapshot_done) struct snapshot before = { .next = str_copy(u->text) };
	autoclose int lock = -1;
	struct hw_err undo;
	int r;

	r = take_snapshot(&before, u->fs, u->cgroup, u->limits, e);
	if (r == 0)
		r = write_journal(u->journal, &before, e);
	if (r == 0)
		r = file_lock(AT_FDCWD, u->journal, false, deadline, &lock, e);
	if (r < 0)
		return r;
	r = apply(u, lock, deadline, e);
	if (r == 0)
		r = u->commit(u->ctx, e);
	if (r < 0 && restore(&before, &undo) < 0)
		return err_text(e, r, "%.900s; and then: %.900s", e->msg, undo.msg);
	unlink(u->journal);
	return r;
}
