/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci/cgroup.c - cgroups of this host: hierarchies, creation and removal
 *
 * How:   the hierarchies are found as crun finds them, so that both always use the same ones: cgroup
 *        v2 if /sys/fs/cgroup is a cgroup2 mount; else each hierarchy of /proc/self/cgroup that is
 *        mounted below /sys/fs/cgroup under its name, and cgroup2 if it is mounted at
 *        /sys/fs/cgroup/unified.
 *        cgroup-kill.c has the operations on processes.
 */
#include "oci/cgroup.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/log.h"
#include "base/os/file.h"
#include "base/time.h"
#include "oci/cgroup-internal.h"

#define CGROUP_DIR	 "/sys/fs/cgroup"
#define CGROUP_DIR_V2	 CGROUP_DIR "/unified"
#define CGROUP_VALUE_MAX (64 << 10)
#define RETRY_MS	 2

/* ---- hierarchies ----------------------------------------------------------------------------- */

static bool has_file(const char *dir, const char *name)
{
	autofree char *path = str_printf("%s/%s", dir, name);

	return access(path, F_OK) == 0;
}

/* Reads a file of a cgroup, without the newline at its end. Return: 0, or a negative errno */
static int read_value(const char *dir, const char *name, char **ret_value, struct hw_err *e)
{
	autofree char *path = str_printf("%s/%s", dir, name);
	AUTO(buf_done) struct buf text = { 0 };
	int r;

	r = file_read(AT_FDCWD, path, CGROUP_VALUE_MAX, &text, e);
	if (r < 0)
		return r;
	if (text.len > 0 && text.data[text.len - 1] == '\n')
		text.data[--text.len] = '\0';
	*ret_value = buf_take(&text);
	return 0;
}

int cgroup_write(const char *dir, const char *name, const char *value)
{
	autofree char *path = str_printf("%s/%s", dir, name);
	struct hw_err ignored;

	return file_write_value(AT_FDCWD, path, value, &ignored);
}

/* "cpu io memory", or "" */
static void split_words(const char *text, struct hw_strings *ret_words)
{
	AUTO(hw_strings_free) struct hw_strings parts = { 0 };

	strings_split(text, ' ', &parts);
	*ret_words = (struct hw_strings){ 0 };
	for (size_t i = 0; i < parts.n; i++)
		if (!str_empty(parts.v[i]))
			strings_add(ret_words, parts.v[i]);
}

static struct cgroup_hierarchy *add_hierarchy(struct cgroup_fs *fs, const char *dir)
{
	struct cgroup_hierarchy *h;

	fs->v = mem_resize(fs->v, fs->n + 1, sizeof(*fs->v));
	h = &fs->v[fs->n++];
	*h = (struct cgroup_hierarchy){ .dir = str_copy(dir) };
	return h;
}

static int add_v2(struct cgroup_fs *fs, const char *dir, struct hw_err *e)
{
	autofree char *controllers = NULL;
	struct cgroup_hierarchy *h;
	int r;

	r = read_value(dir, "cgroup.controllers", &controllers, e);
	if (r < 0)
		return r;
	h = add_hierarchy(fs, dir);
	h->v2 = true;
	split_words(controllers, &h->controllers);
	return 0;
}

/* @list: controllers as in /proc/self/cgroup, which may have another order than the directory */
static void add_v1(struct cgroup_fs *fs, const char *root, const char *list)
{
	const char *name = list;
	autofree char *dir = NULL;

	if (str_starts(list, "name="))
		name += strlen("name=");
	else if (str_equal(list, "cpuacct,cpu"))
		name = "cpu,cpuacct";
	else if (str_equal(list, "net_prio,net_cls"))
		name = "net_cls,net_prio";
	dir = str_printf("%s" CGROUP_DIR "/%s", root, name);
	if (has_file(dir, "cgroup.procs"))
		strings_split(list, ',', &add_hierarchy(fs, dir)->controllers);
}

/* @line: NUMBER:CONTROLLERS:PATH; cgroup2 has no controllers here */
static void add_line(struct cgroup_fs *fs, const char *root, const char *line)
{
	AUTO(hw_strings_free) struct hw_strings parts = { 0 };

	strings_split(line, ':', &parts);
	if (parts.n >= 3 && !str_empty(parts.v[1]))
		add_v1(fs, root, parts.v[1]);
}

static int add_all_v1(struct cgroup_fs *fs, const char *root, struct hw_err *e)
{
	AUTO(hw_strings_free) struct hw_strings lines = { 0 };
	autofree char *proc = str_printf("%s/proc/self", root);
	autofree char *text = NULL;
	int r;

	r = read_value(proc, "cgroup", &text, e);
	if (r < 0)
		return r;
	strings_split(text, '\n', &lines);
	for (size_t i = 0; i < lines.n; i++)
		add_line(fs, root, lines.v[i]);
	return 0;
}

int cgroup_fs_new(const char *root, struct cgroup_fs **ret_fs, struct hw_err *e)
{
	AUTO(cgroup_fs_free) struct cgroup_fs *fs = mem_new(sizeof(*fs));
	autofree char *top = str_printf("%s" CGROUP_DIR, root);
	autofree char *beside = str_printf("%s" CGROUP_DIR_V2, root);
	int r;

	if (has_file(top, "cgroup.controllers")) {
		fs->mode = CGROUP_V2;
		r = add_v2(fs, top, e);
	} else {
		r = add_all_v1(fs, root, e);
		if (r == 0 && has_file(beside, "cgroup.controllers")) {
			fs->mode = CGROUP_HYBRID;
			r = add_v2(fs, beside, e);
		}
	}
	if (r < 0)
		return err_ctx(e, "find the cgroup hierarchies");
	if (fs->n == 0)
		return err_text(e, -ENOENT, "no cgroup hierarchy is mounted in %s", top);
	*ret_fs = take_ptr(fs);
	return 0;
}

void cgroup_fs_free(struct cgroup_fs *fs)
{
	if (!fs)
		return;
	for (size_t i = 0; i < fs->n; i++) {
		free(fs->v[i].dir);
		hw_strings_free(&fs->v[i].controllers);
	}
	free(fs->v);
	free(fs);
}

const struct cgroup_hierarchy *cgroup_find_hierarchy(const struct cgroup_fs *fs,
						     const char *controller)
{
	for (size_t i = 0; i < fs->n; i++)
		if (strings_has(&fs->v[i].controllers, controller))
			return &fs->v[i];
	return NULL;
}

/* ---- paths ----------------------------------------------------------------------------------- */

bool cgroup_path_is_valid(const char *path)
{
	if (*path != '/' || strlen(path) > CGROUP_PATH_MAX)
		return false;
	do {
		size_t len = strcspn(++path, "/");

		if (len == 0 || len > NAME_MAX || (len == 1 && path[0] == '.') ||
		    (len == 2 && path[0] == '.' && path[1] == '.'))
			return false;
		path += len;
	} while (*path == '/');
	return true;
}

char *cgroup_dir(const struct cgroup_hierarchy *h, const char *path)
{
	assert(cgroup_path_is_valid(path));
	return str_printf("%s%s", h->dir, path);
}

void cgroup_procs_files(const struct cgroup_fs *fs, const char *path, struct hw_strings *ret_files)
{
	*ret_files = (struct hw_strings){ 0 };
	for (size_t i = 0; i < fs->n; i++) {
		autofree char *dir = cgroup_dir(&fs->v[i], path);
		autofree char *file = str_printf("%s/cgroup.procs", dir);

		strings_add(ret_files, file);
	}
}

/* ---- creation -------------------------------------------------------------------------------- */

/* Enables in a directory's children every controller that the directory has. Each one is written by
 * itself, because the kernel rejects a list as a whole. */
static int enable_controllers(const char *dir, struct hw_err *e)
{
	autofree char *present = NULL, *enabled = NULL;
	AUTO(hw_strings_free) struct hw_strings want = { 0 }, have = { 0 };
	int r;

	r = read_value(dir, "cgroup.controllers", &present, e);
	if (r == 0)
		r = read_value(dir, "cgroup.subtree_control", &enabled, e);
	if (r < 0)
		return r;
	split_words(present, &want);
	split_words(enabled, &have);
	for (size_t i = 0; i < want.n; i++) {
		autofree char *word = str_printf("+%s", want.v[i]);

		if (strings_has(&have, want.v[i]))
			continue;
		r = cgroup_write(dir, "cgroup.subtree_control", word);
		if (r < 0)
			log_debug("%s: enable %s: %s", dir, want.v[i], strerror(-r));
	}
	return 0;
}

/* A process cannot enter a cgroup of cpuset without processors and memory nodes: copies the parent's. */
static int copy_cpuset(const char *parent, const char *dir, struct hw_err *e)
{
	static const char *const files[] = { "cpuset.cpus", "cpuset.mems" };

	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		autofree char *path = str_printf("%s/%s", dir, files[i]), *value = NULL;
		int r;

		r = read_value(dir, files[i], &value, e);
		if (r < 0)
			return r;
		if (!str_empty(value))
			continue;
		free(take_ptr(value));
		r = read_value(parent, files[i], &value, e);
		if (r < 0)
			return r;
		r = file_write_value(AT_FDCWD, path, value, e);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Creates the cgroup with the first @len bytes of @path; its parent exists. */
static int create_one(const struct cgroup_hierarchy *h, const char *path, size_t parent_len,
		      size_t len, struct hw_err *e)
{
	autofree char *parent = str_printf("%s%.*s", h->dir, (int)parent_len, path);
	autofree char *dir = str_printf("%s%.*s", h->dir, (int)len, path);
	int r;

	if (h->v2) {
		r = enable_controllers(parent, e);
		if (r < 0)
			return r;
	}
	if (mkdir(dir, 0755) < 0 && errno != EEXIST)
		return err_set(e, -errno, "create cgroup %s", dir);
	return strings_has(&h->controllers, "cpuset") && !h->v2 ? copy_cpuset(parent, dir, e) : 0;
}

int cgroup_create(const struct cgroup_fs *fs, const char *path, struct hw_err *e)
{
	int r = 0;

	assert(cgroup_path_is_valid(path));
	for (size_t i = 0; r == 0 && i < fs->n; i++) {
		size_t parent = 0, len = 0;

		while (r == 0 && path[len]) {
			len += 1 + strcspn(path + len + 1, "/");
			r = create_one(&fs->v[i], path, parent, len, e);
			parent = len;
		}
	}
	return r;
}

/* ---- removal --------------------------------------------------------------------------------- */

struct found_dirs {
	const char *parent;
	struct hw_strings *list;
};

static int add_dir(void *ctx, const struct file_entry *entry, struct hw_err *e)
{
	struct found_dirs *found = ctx;
	autofree char *path = NULL;

	(void)e;
	if (entry->type != DT_DIR)
		return 0;
	path = str_printf("%s/%s", found->parent, entry->name);
	strings_add(found->list, path);
	return 0;
}

int cgroup_subtree(const char *dir, struct hw_strings *ret_dirs, struct hw_err *e)
{
	AUTO(hw_strings_free) struct hw_strings dirs = { 0 };

	strings_add(&dirs, dir);
	for (size_t i = 0; i < dirs.n; i++) {
		autofree char *parent = str_copy(dirs.v[i]);
		struct found_dirs found = { parent, &dirs };
		struct stat st;
		int r;

		/* most cgroups have no children, but dozens of files */
		if (stat(parent, &st) == 0 && st.st_nlink == 2)
			continue;
		r = file_walk(AT_FDCWD, parent, add_dir, &found, e);
		if (r < 0 && r != -ENOENT && r != -ENODEV)
			return r;
	}
	*ret_dirs = dirs;
	dirs = (struct hw_strings){ 0 };
	return 0;
}

/* Return: 0; 1 if a cgroup has processes; or a negative errno */
static int remove_from(const struct cgroup_hierarchy *h, const char *path, struct hw_err *e)
{
	AUTO(hw_strings_free) struct hw_strings dirs = { 0 };
	autofree char *dir = cgroup_dir(h, path);
	bool busy = false;
	int r;

	if (rmdir(dir) == 0 || errno == ENOENT)
		return 0;
	r = cgroup_subtree(dir, &dirs, e);
	for (size_t i = dirs.n; r == 0 && i-- > 0;) {
		if (rmdir(dirs.v[i]) == 0 || errno == ENOENT)
			continue;
		if (errno != EBUSY && errno != ENOTEMPTY)
			return err_set(e, -errno, "remove cgroup %s", dirs.v[i]);
		busy = true;
	}
	return r < 0 ? r : busy;
}

int cgroup_remove(const struct cgroup_fs *fs, const char *path, int64_t deadline, struct hw_err *e)
{
	bool busy;
	int r;

	for (;;) {
		busy = false;
		for (size_t i = 0; i < fs->n; i++) {
			r = remove_from(&fs->v[i], path, e);
			if (r < 0)
				return r;
			busy = busy || r > 0;
		}
		if (!busy)
			return 0;
		if (time_has_passed(deadline))
			return err_text(e, -EBUSY, "remove cgroup %s: it still has processes",
					path);
		time_sleep(RETRY_MS);
	}
}
