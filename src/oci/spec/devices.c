/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci/spec/devices.c - device nodes of a container, and the rules of its device cgroup
 */
#include "oci/spec/devices.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/os/file.h"
#include "base/str.h"

#define ALL_PERMISSIONS "rwm"
#define DEPTH_MAX	16

/* Major 136 and those above it are the terminals of devpts. */
static const struct {
	unsigned major, minor;
	bool any_minor;
} standard[] = {
	{ 1, 3 }, { 1, 5 }, { 1, 7 }, { 1, 8 }, { 1, 9 }, { 5, 0 }, { 5, 2 }, { 136, 0, true },
};

static bool is_standard(dev_t device)
{
	for (size_t i = 0; i < ARRAY_SIZE(standard); i++)
		if (major(device) == standard[i].major &&
		    (minor(device) == standard[i].minor || standard[i].any_minor))
			return true;
	return false;
}

/* @type: "a" for any device */
static struct oci_device_rule *add_rule(struct oci_spec *s, bool allow, const char *type,
					const char *access)
{
	struct oci_device_rule *rule = spec_append(&s->limits.device_rules, sizeof(*rule));

	*rule = (struct oci_device_rule){ .allow = allow,
					  .type = str_copy(type),
					  .access = str_copy(access) };
	return rule;
}

int spec_check_permissions(const char *permissions, struct hw_err *e)
{
	for (const char *c = str_or(permissions, ""); *c; c++)
		if (!strchr(ALL_PERMISSIONS, *c) || strchr(c + 1, *c))
			return err_text(e, -EINVAL, "invalid permissions \"%.16s\"", permissions);
	return 0;
}

static void add_node(struct oci_spec *s, const struct oci_device *device)
{
	struct oci_device *new = spec_append(&s->devices, sizeof(*new));

	*new = *device;
	new->type = str_copy(device->type);
	new->path = str_copy(device->path);
}

void spec_add_device(struct oci_spec *s, const struct oci_device *device, const char *permissions)
{
	struct oci_device *nodes = s->devices.v;
	struct oci_device_rule *rule;

	for (size_t i = 0; i < s->devices.n; i++)
		if (str_equal(nodes[i].path, device->path)) {
			free(nodes[i].type);
			free(nodes[i].path);
			memmove(&nodes[i], &nodes[i + 1], (--s->devices.n - i) * sizeof(nodes[i]));
			break;
		}
	add_node(s, device);
	rule = add_rule(s, true, device->type,
			str_empty(permissions) ? ALL_PERMISSIONS : permissions);
	rule->has_major = rule->has_minor = true;
	rule->major = device->major;
	rule->minor = device->minor;
}

/* ---- nodes of the host --------------------------------------------------------------------------- */

/* Adds the device nodes of a directory. */
struct walk {
	struct oci_spec *spec;
	const char *permissions; /* NULL: without rules, and not the nodes that crun creates */
	const char *container_path;
	unsigned depth;
};

static bool is_device(const struct stat *st)
{
	return S_ISCHR(st->st_mode) || S_ISBLK(st->st_mode);
}

static void add_found(const struct walk *w, const char *path, const struct stat *st)
{
	const struct oci_device device = {
		.type = (char *)(S_ISBLK(st->st_mode) ? "b" : "c"),
		.path = (char *)path,
		.major = major(st->st_rdev),
		.minor = minor(st->st_rdev),
		.mode = st->st_mode & 07777,
		.uid = st->st_uid,
		.gid = st->st_gid,
	};

	if (w->permissions)
		spec_add_device(w->spec, &device, w->permissions);
	else if (!(S_ISCHR(st->st_mode) && is_standard(st->st_rdev)))
		add_node(w->spec, &device);
}

/* File systems of their own, and what other programs keep in /dev. A console is not passed on. */
static bool is_skipped(const char *name)
{
	static const char *const names[] = { "pts",  "shm",	    "fd",    "mqueue",
					     ".lxc", ".lxd-mounts", ".udev", "console" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (str_equal(name, names[i]))
			return true;
	return false;
}

/* A node or directory may disappear meanwhile. */
static int add_entry(void *ctx, const struct file_entry *entry, struct hw_err *e)
{
	const struct walk *w = ctx;
	autofree char *path = str_printf("%s/%s", w->container_path, entry->name);
	struct walk below = *w;
	struct stat st;
	int r;

	if (is_skipped(entry->name))
		return 0;
	if (entry->type == DT_DIR && w->depth < DEPTH_MAX) {
		below.container_path = path;
		below.depth++;
		r = file_walk(entry->dir, entry->name, add_entry, &below, e);
		return r == -ENOENT ? 0 : r;
	}
	if ((entry->type == DT_CHR || entry->type == DT_BLK) &&
	    fstatat(entry->dir, entry->name, &st, AT_SYMLINK_NOFOLLOW) == 0 && is_device(&st))
		add_found(w, path, &st);
	return 0;
}

static int add_requested(struct oci_spec *s, const struct spec_device *d, struct hw_err *e)
{
	const char *path = str_empty(d->container_path) ? d->host_path : d->container_path;
	struct walk w = { s, str_empty(d->permissions) ? ALL_PERMISSIONS : d->permissions, path,
			  0 };
	struct stat st;

	if (str_empty(d->host_path) || *d->host_path != '/' || *path != '/')
		return err_text(e, -EINVAL, "not an absolute path");
	if (spec_check_permissions(d->permissions, e) < 0)
		return e->code;
	if (stat(d->host_path, &st) < 0)
		return err_set(e, -errno, "stat %s", d->host_path);
	if (S_ISDIR(st.st_mode))
		return file_walk(AT_FDCWD, d->host_path, add_entry, &w, e);
	if (!is_device(&st))
		return err_text(e, -EINVAL, "not a device");
	add_found(&w, path, &st);
	return 0;
}

/* ---- all devices --------------------------------------------------------------------------------- */

static void add_standard_rules(struct oci_spec *s)
{
	add_rule(s, false, "a", ALL_PERMISSIONS);
	for (size_t i = 0; i < ARRAY_SIZE(standard); i++) {
		struct oci_device_rule *rule = add_rule(s, true, "c", ALL_PERMISSIONS);

		rule->has_major = true;
		rule->major = standard[i].major;
		rule->has_minor = !standard[i].any_minor;
		rule->minor = standard[i].minor;
	}
}

int spec_set_devices(struct oci_spec *s, const struct spec_devices *d, struct hw_err *e)
{
	struct walk host = { .spec = s, .container_path = "/dev" };
	int r = 0;

	if (d->privileged) {
		add_rule(s, true, "a", ALL_PERMISSIONS);
		r = file_walk(AT_FDCWD, "/dev", add_entry, &host, e);
	} else {
		add_standard_rules(s);
	}
	for (size_t i = 0; r == 0 && i < d->n; i++) {
		r = add_requested(s, &d->v[i], e);
		if (r < 0)
			return err_ctx(e, "device %.200s", str_or(d->v[i].host_path, ""));
	}
	return r;
}
