/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci/spec/mounts.c - mounts of a container
 */
#include "oci/spec/mounts.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/os/file.h"
#include "base/str.h"

#define MOUNTINFO_MAX (64 << 20)

/* ---- paths ------------------------------------------------------------------------------------- */

/* Removes double slashes, "." and ".." of an absolute path, without looking at files. */
static char *clean_path(const char *path)
{
	AUTO(buf_done) struct buf b = { 0 };

	for (size_t len; *path; path += len) {
		path += strspn(path, "/");
		len = strcspn(path, "/");
		if (len == 0 || (len == 1 && path[0] == '.'))
			continue;
		if (len == 2 && path[0] == '.' && path[1] == '.') {
			while (b.len > 0 && b.data[--b.len] != '/')
				;
			continue;
		}
		buf_putc(&b, '/');
		buf_add(&b, path, len);
	}
	if (b.len == 0)
		buf_putc(&b, '/');
	return str_ncopy(b.data, b.len);
}

static size_t path_depth(const char *clean)
{
	size_t n = 0;

	for (; *clean; clean++)
		if (clean[0] == '/' && clean[1])
			n++;
	return n;
}

/* ---- propagation of the source ------------------------------------------------------------------ */

enum { SOURCE_SHARED = 1 << 0, SOURCE_SLAVE = 1 << 1 };

/* How mounts propagate to and from the mount that contains @path.
 * A line: ID PARENT DEVICE ROOT MOUNTPOINT OPTIONS [shared:N] [master:N] ... - TYPE ... */
static int get_source(const char *path, unsigned *ret_flags, struct hw_err *e)
{
	AUTO(buf_done) struct buf text = { 0 };
	unsigned flags = 0;
	struct statx stx;
	char *line, *next;
	int r;

	if (statx(AT_FDCWD, path, 0, STATX_MNT_ID, &stx) < 0)
		return err_set(e, -errno, "stat %s", path);
	r = file_read(AT_FDCWD, "/proc/thread-self/mountinfo", MOUNTINFO_MAX, &text, e);
	if (r < 0)
		return r;
	for (line = text.data; line && *line; line = next) {
		char *end;

		next = strchr(line, '\n');
		if (next)
			*next++ = '\0';
		if (strtoull(line, NULL, 10) != stx.stx_mnt_id)
			continue;
		end = strstr(line, " - ");
		if (end)
			*end = '\0';
		if (strstr(line, " shared:"))
			flags |= SOURCE_SHARED;
		if (strstr(line, " master:"))
			flags |= SOURCE_SLAVE;
		*ret_flags = flags;
		return 0;
	}
	return err_text(e, -ENOENT, "%s: its mount is not in mountinfo", path);
}

static int set_propagation(struct oci_spec *s, const struct spec_mount *m, struct oci_mount *ret,
			   struct hw_err *e)
{
	bool both = m->propagation == SPEC_BOTH_WAYS;
	unsigned flags = 0;
	int r;

	if (m->propagation == SPEC_PRIVATE) {
		strings_add(&ret->options, "rprivate");
		return 0;
	}
	r = get_source(ret->source, &flags, e);
	if (r < 0)
		return r;
	if (!(flags & SOURCE_SHARED) && (both || !(flags & SOURCE_SLAVE)))
		return err_text(e, -EINVAL, "%s is on a mount that is not shared%s", m->host_path,
				both ? "" : " or a slave");
	strings_add(&ret->options, both ? "rshared" : "rslave");
	if (both || !s->rootfs_propagation) {
		free(s->rootfs_propagation);
		s->rootfs_propagation = str_copy(both ? "rshared" : "rslave");
	}
	return 0;
}

/* ---- a mount of the request ---------------------------------------------------------------------- */

/* The client has chosen the path, so most errors are those of its request. */
static int source_error(struct hw_err *e)
{
	switch (e->code) {
	case -ENOENT: /* of a link in the path */
	case -ENOTDIR:
	case -ELOOP:
	case -ENAMETOOLONG:
		return err_replace(e, e->code, -EINVAL);
	case -EACCES:
	case -EROFS:
		return err_replace(e, e->code, -EPERM);
	default:
		return e->code;
	}
}

/* @create: creates the directory if nothing exists there. Return: 1 with the path that is mounted, allocated; 0 if
 * it does not exist; or a negative errno */
static int resolve_source(const char *host_path, bool create, char **ret_path, struct hw_err *e)
{
	struct stat st;
	char *path;
	int r;

	path = realpath(host_path, NULL);
	if (!path && errno == ENOENT && lstat(host_path, &st) < 0 && errno == ENOENT) {
		if (!create)
			return 0;
		r = file_mkdirs(AT_FDCWD, host_path, 0755, e);
		if (r < 0)
			return r;
		path = realpath(host_path, NULL);
	}
	if (!path)
		return err_set(e, -errno, "resolve %s", host_path);
	*ret_path = path;
	return 1;
}

/* Sets the source, unless it is set. @create: as above; otherwise the source of a missing directory stays unset */
static int set_source(struct oci_spec *s, const struct spec_mount *m, bool create,
		      struct oci_mount *ret, struct hw_err *e)
{
	int r;

	if (ret->source)
		return 0;
	if (str_empty(m->host_path) || *m->host_path != '/')
		return err_text(e, -EINVAL, "\"%.200s\" is not an absolute path",
				str_or(m->host_path, ""));
	r = resolve_source(m->host_path, create, &ret->source, e);
	if (r <= 0)
		return r < 0 ? source_error(e) : 0;
	return set_propagation(s, m, ret, e);
}

static int set_readonly(const struct spec_mounts *all, const struct spec_mount *m,
			struct oci_mount *ret, struct hw_err *e)
{
	if (!m->recursive_readonly) {
		strings_add(&ret->options, m->readonly ? "ro" : "rw");
		return 0;
	}
	if (!m->readonly)
		return err_text(e, -EINVAL, "recursively read-only, but not read-only");
	if (m->propagation != SPEC_PRIVATE)
		return err_text(e, -EINVAL, "recursively read-only, but mounts propagate");
	if (!all->rro)
		return err_text(e, -EOPNOTSUPP, "recursively read-only mounts are not supported");
	strings_add(&ret->options, "rro");
	return 0;
}

static int set_options(const struct spec_mount *m, struct oci_mount *ret, struct hw_err *e)
{
	static const char *const known[] = { "noexec", "nodev", "nosuid" };

	for (size_t i = 0; m->options && i < m->options->n; i++) {
		const char *option = m->options->v[i];
		bool found = false;

		for (size_t j = 0; j < ARRAY_SIZE(known); j++)
			found |= str_equal(option, known[j]);
		if (!found)
			return err_text(e, -EINVAL, "unknown mount option %.100s", option);
		if (!strings_has(&ret->options, option))
			strings_add(&ret->options, option);
	}
	return 0;
}

static bool mappings_equal(const struct hw_list *a, const struct hw_list *b)
{
	return a->n == b->n &&
	       (a->n == 0 || memcmp(a->v, b->v, a->n * sizeof(struct oci_mapping)) == 0);
}

static void copy_mappings(const struct hw_list *from, struct hw_list *to)
{
	to->n = from->n;
	to->v = from->n ? mem_copy(from->v, from->n * sizeof(struct oci_mapping)) : NULL;
}

static int set_mappings(const struct oci_spec *s, const struct spec_mounts *all,
			const struct spec_mount *m, struct oci_mount *ret, struct hw_err *e)
{
	static const struct hw_list none;
	const struct hw_list *uids = m->uid_mappings ? m->uid_mappings : &none;
	const struct hw_list *gids = m->gid_mappings ? m->gid_mappings : &none;
	bool same =
		mappings_equal(uids, &s->uid_mappings) && mappings_equal(gids, &s->gid_mappings);

	if (uids->n == 0 && gids->n == 0)
		return 0;
	if (uids->n == 0 || gids->n == 0)
		return err_text(e, -EINVAL, "only one of uidMappings and gidMappings is given");
	if (all->idmap == OCI_IDMAP_NONE)
		return err_text(e, -EPERM, "uidMappings: idmapped mounts are not supported");
	if (all->idmap == OCI_IDMAP_SAME && !same)
		return err_text(e, -EPERM, "uidMappings: differ from those of the user namespace");
	copy_mappings(uids, &ret->uid_mappings);
	copy_mappings(gids, &ret->gid_mappings);
	return 0;
}

/* Adds a mount without its source. */
static int add_bind(struct oci_spec *s, const struct spec_mounts *all, const struct spec_mount *m,
		    const char *destination, struct hw_err *e)
{
	struct oci_mount *ret = spec_append(&s->mounts, sizeof(*ret));
	int r;

	ret->destination = str_copy(destination);
	ret->type = str_copy("bind");
	strings_add(&ret->options, "rbind");
	r = set_readonly(all, m, ret, e);
	if (r == 0)
		r = set_options(m, ret, e);
	if (r == 0)
		r = set_mappings(s, all, m, ret, e);
	return r < 0 ? err_ctx(e, "mount %s", destination) : 0;
}

/* ---- all mounts ---------------------------------------------------------------------------------- */

static const struct {
	const char *destination, *type, *source;
	const char *options; /* separated by commas */
	bool readonly;	     /* unless the container is privileged */
} defaults[] = {
	{ "/proc", "proc", "proc", "nosuid,noexec,nodev" },
	{ "/dev", "tmpfs", "tmpfs", "nosuid,strictatime,mode=755,size=65536k" },
	{ "/dev/pts", "devpts", "devpts",
	  "nosuid,noexec,newinstance,ptmxmode=0666,mode=0620,gid=5" },
	{ "/dev/mqueue", "mqueue", "mqueue", "nosuid,noexec,nodev" },
	{ "/sys", "sysfs", "sysfs", "nosuid,noexec,nodev", true },
	{ "/sys/fs/cgroup", "cgroup", "cgroup", "nosuid,noexec,nodev,relatime", true },
};

static void add_default(struct oci_spec *s, const struct spec_mounts *m, size_t i)
{
	struct oci_mount *ret = spec_append(&s->mounts, sizeof(*ret));
	bool bind = m->bind_sys && str_equal(defaults[i].type, "sysfs");

	ret->destination = str_copy(defaults[i].destination);
	ret->type = str_copy(bind ? "bind" : defaults[i].type);
	ret->source = str_copy(bind ? "/sys" : defaults[i].source);
	strings_split(defaults[i].options, ',', &ret->options);
	if (bind)
		strings_add(&ret->options, "rbind");
	if (defaults[i].readonly)
		strings_add(&ret->options, m->privileged ? "rw" : "ro");
}

/* A mount of the request, with its cleaned path and its place in the request. */
struct entry {
	char *path;
	size_t depth, index;
};

struct entries {
	struct entry *v;
	size_t n;
};

static void entries_done(struct entries *all)
{
	for (size_t i = 0; i < all->n; i++)
		free(all->v[i].path);
	free(all->v);
}
AUTO_VALUE_DEFINE(entries_done, struct entries);

static int compare_entries(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	if (x->depth != y->depth)
		return x->depth < y->depth ? -1 : 1;
	return x->index < y->index ? -1 : x->index > y->index;
}

static int sort_requested(const struct spec_mounts *m, struct entries *ret, struct hw_err *e)
{
	ret->v = mem_new(m->n_requested * sizeof(*ret->v));
	for (size_t i = 0; i < m->n_requested; i++) {
		const char *path = m->requested[i].container_path;

		if (str_empty(path) || *path != '/')
			return err_text(
				e, -EINVAL,
				"mounts[%zu].container_path: \"%.200s\" is not an absolute path", i,
				str_or(path, ""));
		ret->v[ret->n] = (struct entry){ .path = clean_path(path), .index = i };
		ret->v[ret->n].depth = path_depth(ret->v[ret->n].path);
		ret->n++;
	}
	qsort(ret->v, ret->n, sizeof(*ret->v), compare_entries);
	return 0;
}

static bool is_requested(const struct entries *requested, const char *path)
{
	for (size_t i = 0; i < requested->n; i++)
		if (str_equal(requested->v[i].path, path))
			return true;
	return false;
}

static int add_injected(struct oci_spec *s, const struct spec_mounts *all,
			const struct spec_mount *m, struct hw_err *e)
{
	int r;

	r = add_bind(s, all, m, m->container_path, e);
	if (r < 0)
		return r;
	r = set_source(s, m, true, (struct oci_mount *)s->mounts.v + s->mounts.n - 1, e);
	return r < 0 ? err_ctx(e, "mount %s", m->container_path) : 0;
}

/* The mounts of the request are the last ones of the list. @create: as in set_source() */
static int set_sources(struct oci_spec *s, const struct spec_mounts *all,
		       const struct entries *requested, bool create, struct hw_err *e)
{
	struct oci_mount *mounts = (struct oci_mount *)s->mounts.v + s->mounts.n - requested->n;
	int r;

	for (size_t i = 0; i < requested->n; i++) {
		size_t index = requested->v[i].index;

		r = set_source(s, &all->requested[index], create, &mounts[i], e);
		if (r < 0)
			return err_ctx(e, "mounts[%zu].host_path", index);
	}
	return 0;
}

int spec_set_mounts(struct oci_spec *s, const struct spec_mounts *m, struct hw_err *e)
{
	AUTO(entries_done) struct entries requested = { 0 };
	bool has_dev;
	int r;

	r = sort_requested(m, &requested, e);
	if (r < 0)
		return r;
	has_dev = is_requested(&requested, "/dev");
	for (size_t i = 0; i < ARRAY_SIZE(defaults); i++)
		if (!is_requested(&requested, defaults[i].destination) &&
		    !(has_dev && str_starts(defaults[i].destination, "/dev/")))
			add_default(s, m, i);
	for (size_t i = 0; r == 0 && i < m->n_injected; i++)
		if (!is_requested(&requested, m->injected[i].container_path))
			r = add_injected(s, m, &m->injected[i], e);
	for (size_t i = 0; r == 0 && i < requested.n; i++)
		r = add_bind(s, m, &m->requested[requested.v[i].index], requested.v[i].path, e);
	if (r == 0)
		r = set_sources(s, m, &requested, false, e);
	/* last: nothing is created for a request that is refused */
	return r < 0 ? r : set_sources(s, m, &requested, true, e);
}
