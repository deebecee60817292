/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci/spec/cdi.c - devices of the Container Device Interface: edits of a container's configuration
 *
 * How:   all files are read for each container that has such devices. Only those of the requested vendors and
 *        classes are kept.
 */
#include "oci/spec/cdi.h"

#include <assert.h>
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/json/field.h"
#include "base/json/yaml.h"
#include "base/os/file.h"
#include "base/str.h"
#include "oci/spec/devices.h"

#define FILE_MAX  (1 << 20)
#define FILES_MAX 256 /* in a directory */

struct edits {
	struct hw_strings env;
	struct hw_list nodes, mounts; /* struct node, struct mount */
	char *rest;		      /* edits that are not supported: an object */
};

struct node {
	char *path, *host_path, *type, *permissions, *rest;
	bool has_major, has_minor, has_mode, has_uid, has_gid;
	int64_t major, minor;
	uint32_t mode, uid, gid;
};

struct mount {
	char *host_path, *container_path, *type, *rest;
	struct hw_strings options;
};

struct device {
	char *name;
	struct edits edits;
};

struct cdi_spec {
	char *version, *kind;
	struct hw_list devices; /* struct device */
	struct edits edits;	/* for all of them */
	char *path;		/* of the file; NULL: none */
	size_t dir;		/* its place in the list of directories */
	bool used;		/* .edits were applied */
};

/* ---- the format --------------------------------------------------------------------- */

#define NODE(member) HW_AT(struct node, member)
#define HAS(member)  HW_HAS(struct node, member)
static const struct hw_field node_fields[] = {
	{ "path", HW_STRING, NODE(path), .flags = HW_REQUIRED },
	{ "hostPath", HW_STRING, NODE(host_path) },
	{ "type", HW_STRING, NODE(type) },
	{ "major", HW_INT64, NODE(major), .has = HAS(has_major) },
	{ "minor", HW_INT64, NODE(minor), .has = HAS(has_minor) },
	{ "fileMode", HW_UINT32, NODE(mode), .has = HAS(has_mode) },
	{ "permissions", HW_STRING, NODE(permissions) },
	{ "uid", HW_UINT32, NODE(uid), .has = HAS(has_uid) },
	{ "gid", HW_UINT32, NODE(gid), .has = HAS(has_gid) },
	{ "", HW_REST, NODE(rest) },
	{ 0 },
};

#define MOUNT(member) HW_AT(struct mount, member)
static const struct hw_field mount_fields[] = {
	{ "hostPath", HW_STRING, MOUNT(host_path), .flags = HW_REQUIRED },
	{ "containerPath", HW_STRING, MOUNT(container_path), .flags = HW_REQUIRED },
	{ "type", HW_STRING, MOUNT(type) },
	{ "options", HW_STRINGS, MOUNT(options) },
	{ "", HW_REST, MOUNT(rest) },
	{ 0 },
};

#define EDITS(member) HW_AT(struct edits, member)
static const struct hw_field edits_fields[] = {
	{ "env", HW_STRINGS, EDITS(env) },
	{ "deviceNodes", HW_LIST, EDITS(nodes), .sub = node_fields, .size = sizeof(struct node) },
	{ "mounts", HW_LIST, EDITS(mounts), .sub = mount_fields, .size = sizeof(struct mount) },
	{ "", HW_REST, EDITS(rest) },
	{ 0 },
};

static const struct hw_field device_fields[] = {
	{ "name", HW_STRING, HW_AT(struct device, name), .flags = HW_REQUIRED },
	{ "containerEdits", HW_OBJECT, HW_AT(struct device, edits), .sub = edits_fields },
	{ 0 },
};

static const struct hw_field spec_fields[] = {
	{ "cdiVersion", HW_STRING, HW_AT(struct cdi_spec, version), .flags = HW_REQUIRED },
	{ "kind", HW_STRING, HW_AT(struct cdi_spec, kind), .flags = HW_REQUIRED },
	{ "devices", HW_LIST, HW_AT(struct cdi_spec, devices), .sub = device_fields,
	  .size = sizeof(struct device) },
	{ "containerEdits", HW_OBJECT, HW_AT(struct cdi_spec, edits), .sub = edits_fields },
	{ 0 },
};

void cdi_spec_free(struct cdi_spec *spec)
{
	if (!spec)
		return;
	hw_field_clear(spec_fields, spec);
	free(spec->path);
	free(spec);
}

int cdi_parse(const char *text, size_t len, bool is_yaml, struct cdi_spec **ret_spec,
	      struct hw_err *e)
{
	AUTO(value_free) struct value *v = NULL;
	AUTO(cdi_spec_free) struct cdi_spec *spec = mem_new(sizeof(*spec));
	int r;

	r = is_yaml ? yml_parse(text, len, &v, e) : value_parse(text, len, &v, e);
	if (r == 0)
		r = field_decode(spec_fields, v, spec, e);
	if (r == 0)
		*ret_spec = take_ptr(spec);
	return r;
}

/* ---- edits -------------------------------------------------------------------------- */

/* @rest: the unknown keys of an object */
static int check_rest(const char *rest, const char *what, struct hw_err *e)
{
	const char *key = str_or(rest, "{}");

	if (str_equal(key, "{}"))
		return 0;
	key += strlen("{\"");
	return err_text(e, -EINVAL, "%s.%.*s is not supported", what, (int)strcspn(key, "\""), key);
}

static int set_env(struct oci_spec *s, const char *variable, struct hw_err *e)
{
	struct hw_strings *env = &s->process.env;
	size_t len = strcspn(variable, "=");

	if (len == 0 || !variable[len])
		return err_text(e, -EINVAL, "env: \"%.200s\": expected NAME=VALUE", variable);
	for (size_t i = 0; i < env->n; i++)
		if (strncmp(env->v[i], variable, len + 1) == 0) {
			free(env->v[i]);
			env->v[i] = str_copy(variable);
			return 0;
		}
	strings_add(env, variable);
	return 0;
}

/* Completes what is not given from the node of the host. */
static int find_node(const struct node *n, struct oci_device *ret, struct hw_err *e)
{
	const char *path = str_empty(n->host_path) ? n->path : n->host_path;
	bool complete = !str_empty(n->type) && n->has_major && n->has_minor;
	struct stat st = { 0 };

	if (*n->path != '/' || *path != '/')
		return err_text(e, -EINVAL, "not an absolute path");
	if (!complete && stat(path, &st) < 0)
		return err_set(e, -errno, "stat %.200s", path);
	if (!complete && !S_ISCHR(st.st_mode) && !S_ISBLK(st.st_mode))
		return err_text(e, -EINVAL, "%.200s: not a device", path);
	*ret = (struct oci_device){
		.type = (char *)(S_ISBLK(st.st_mode) ? "b" : "c"),
		.path = n->path,
		.major = n->has_major ? n->major : major(st.st_rdev),
		.minor = n->has_minor ? n->minor : minor(st.st_rdev),
		.mode = n->has_mode ? n->mode & 07777
			: complete  ? 0666
				    : st.st_mode & 07777,
		.uid = n->has_uid ? n->uid : st.st_uid,
		.gid = n->has_gid ? n->gid : st.st_gid,
	};
	if (str_empty(n->type))
		return 0;
	if (!str_equal(n->type, "c") && !str_equal(n->type, "u") && !str_equal(n->type, "b"))
		return err_text(e, -EINVAL, "type \"%.16s\" is not supported", n->type);
	ret->type = (char *)(str_equal(n->type, "b") ? "b" : "c");
	return 0;
}

static int add_node(struct oci_spec *s, const struct node *n, struct hw_err *e)
{
	struct oci_device device;
	int r;

	r = check_rest(n->rest, "deviceNodes", e);
	if (r == 0)
		r = spec_check_permissions(n->permissions, e);
	if (r == 0)
		r = find_node(n, &device, e);
	if (r < 0)
		return err_ctx(e, "device %.200s", n->path);
	spec_add_device(s, &device, n->permissions);
	return 0;
}

static int add_mount(struct oci_spec *s, const struct mount *m, struct hw_err *e)
{
	bool bind = str_empty(m->type) || str_equal(m->type, "bind");
	struct oci_mount *new;
	int r;

	r = check_rest(m->rest, "mounts", e);
	if (r < 0)
		return r;
	if (*m->container_path != '/' || (bind && *m->host_path != '/'))
		return err_text(e, -EINVAL, "mount %.200s: not an absolute path",
				m->container_path);
	new = spec_append(&s->mounts, sizeof(*new));
	new->destination = str_copy(m->container_path);
	new->source = str_copy(m->host_path);
	new->type = str_copy(bind ? "bind" : m->type);
	for (size_t i = 0; i < m->options.n; i++)
		strings_add(&new->options, m->options.v[i]);
	if (bind && !strings_has(&new->options, "bind") && !strings_has(&new->options, "rbind"))
		strings_add(&new->options, "rbind");
	return 0;
}

static int apply(const struct edits *edits, struct oci_spec *s, struct hw_err *e)
{
	const struct mount *mounts = edits->mounts.v;
	const struct node *nodes = edits->nodes.v;
	int r;

	r = check_rest(edits->rest, "containerEdits", e);
	for (size_t i = 0; r == 0 && i < edits->env.n; i++)
		r = set_env(s, edits->env.v[i], e);
	for (size_t i = 0; r == 0 && i < edits->nodes.n; i++)
		r = add_node(s, &nodes[i], e);
	for (size_t i = 0; r == 0 && i < edits->mounts.n; i++)
		r = add_mount(s, &mounts[i], e);
	return r;
}

int cdi_apply_all(const struct cdi_spec *spec, struct oci_spec *s, struct hw_err *e)
{
	const struct device *devices = spec->devices.v;
	int r;

	r = apply(&spec->edits, s, e);
	for (size_t i = 0; r == 0 && i < spec->devices.n; i++)
		r = apply(&devices[i].edits, s, e);
	return r;
}

/* ---- files -------------------------------------------------------------------------- */

struct files {
	const struct hw_strings *names; /* of the requested devices */
	const char *path;		/* of the directory that is read */
	size_t dir, n_files;
	struct hw_list specs; /* struct cdi_spec * */
	char *error;	      /* of the first file that cannot be used; NULL: none */
};

static void files_done(struct files *f)
{
	struct cdi_spec **specs = f->specs.v;

	for (size_t i = 0; i < f->specs.n; i++)
		cdi_spec_free(specs[i]);
	free(specs);
	free(f->error);
}
AUTO_VALUE_DEFINE(files_done, struct files);

/* The name is KIND=DEVICE. */
static bool is_of_kind(const char *name, const char *kind)
{
	size_t len = strlen(kind);

	return strncmp(name, kind, len) == 0 && name[len] == '=';
}

static bool is_wanted(const struct files *f, const struct cdi_spec *spec)
{
	for (size_t i = 0; i < f->names->n; i++)
		if (is_of_kind(f->names->v[i], spec->kind))
			return true;
	return false;
}

static int read_spec(const char *path, bool is_yaml, struct cdi_spec **ret_spec, struct hw_err *e)
{
	AUTO(buf_done) struct buf text = { 0 };
	int r;

	r = file_read(AT_FDCWD, path, FILE_MAX, &text, e);
	if (r < 0)
		return r;
	r = cdi_parse(str_or(text.data, ""), text.len, is_yaml, ret_spec, e);
	return r < 0 ? err_ctx(e, "%s", path) : 0;
}

static int add_file(void *ctx, const struct file_entry *entry, struct hw_err *e)
{
	AUTO(cdi_spec_free) struct cdi_spec *spec = NULL;
	bool is_yaml = str_ends(entry->name, ".yaml") || str_ends(entry->name, ".yml");
	autofree char *path = NULL;
	struct files *f = ctx;
	struct hw_err why;

	if (!is_yaml && !str_ends(entry->name, ".json"))
		return 0;
	path = str_printf("%s/%s", f->path, entry->name);
	if (++f->n_files > FILES_MAX)
		return err_text(e, -EFBIG, "%s: more than %d files", f->path, FILES_MAX);
	if (read_spec(path, is_yaml, &spec, &why) < 0) {
		if (!f->error)
			f->error = str_copy(why.msg);
		return 0;
	}
	assert(spec);
	if (!is_wanted(f, spec))
		return 0;
	spec->path = take_ptr(path);
	spec->dir = f->dir;
	*(struct cdi_spec **)spec_append(&f->specs, sizeof(struct cdi_spec *)) = spec;
	spec = NULL;
	return 0;
}

static int read_files(struct files *f, const char *dirs, struct hw_err *e)
{
	AUTO(hw_strings_free) struct hw_strings list = { 0 };
	int r = 0;

	strings_split(dirs, ':', &list);
	for (size_t i = 0; r == 0 && i < list.n; i++) {
		f->path = list.v[i];
		f->dir = i;
		f->n_files = 0;
		r = file_walk(AT_FDCWD, f->path, add_file, f, e);
		if (r == -ENOENT)
			r = 0;
	}
	return r;
}

/* ---- devices ------------------------------------------------------------------------ */

/* Return: the length of a word of letters, digits and these other characters, which begins with a letter or
 * digit; 0: it does not */
static size_t word_length(const char *text, const char *others)
{
	size_t n = 0;

	if (!isalnum((unsigned char)*text))
		return 0;
	while (isalnum((unsigned char)text[n]) || (text[n] && strchr(others, text[n])))
		n++;
	return n;
}

static int check_name(const char *name, struct hw_err *e)
{
	const char *class = name + word_length(name, "-_.");
	const char *device = *class == '/' ? class + 1 + word_length(class + 1, "-_") : "";

	if (class > name && *class == '/' && device > class + 1 && *device == '=' && device[1] &&
	    !device[1 + word_length(device + 1, "-_.:")])
		return 0;
	return err_text(e, -EINVAL, "\"%.200s\": expected VENDOR/CLASS=DEVICE", name);
}

static const struct device *find_in(const struct cdi_spec *spec, const char *name)
{
	const struct device *devices = spec->devices.v;

	if (!is_of_kind(name, spec->kind))
		return NULL;
	for (size_t i = 0; i < spec->devices.n; i++)
		if (str_equal(devices[i].name, name + strlen(spec->kind) + 1))
			return &devices[i];
	return NULL;
}

/* Return: 0 with the device and its file */
static int find_device(const struct files *f, const char *name, struct cdi_spec **ret_spec,
		       const struct device **ret_device, struct hw_err *e)
{
	struct cdi_spec **specs = f->specs.v, *found = NULL;

	for (size_t i = f->specs.n; i-- > 0;) {
		const struct device *device;

		device = find_in(specs[i], name);
		if (!device)
			continue;
		if (found && found->dir == specs[i]->dir)
			return err_text(e, -EINVAL, "%s and %s have the same device",
					specs[i]->path, found->path);
		if (found)
			break;
		found = specs[i];
		*ret_device = device;
	}
	*ret_spec = found;
	if (found)
		return 0;
	return err_text(e, -ENODATA, "no such device on this node%s%s", f->error ? "; " : "",
			str_or(f->error, ""));
}

static int apply_device(const struct files *f, const char *name, struct oci_spec *s,
			struct hw_err *e)
{
	const struct device *device = NULL;
	struct cdi_spec *spec;
	int r;

	r = find_device(f, name, &spec, &device, e);
	if (r < 0)
		return r;
	if (!spec->used)
		r = apply(&spec->edits, s, e);
	spec->used = true;
	if (r == 0)
		r = apply(&device->edits, s, e);
	return r < 0 ? err_ctx(e, "%s", spec->path) : 0;
}

int cdi_apply(const char *dirs, const struct hw_strings *names, struct oci_spec *s,
	      struct hw_err *e)
{
	AUTO(files_done) struct files f = { .names = names };
	int r = 0;

	for (size_t i = 0; r == 0 && i < names->n; i++) {
		r = check_name(names->v[i], e);
		if (r < 0)
			return err_ctx(e, "CDI_devices[%zu]", i);
	}
	r = read_files(&f, dirs, e);
	if (r < 0)
		return err_ctx(e, "CDI_devices");
	for (size_t i = 0; i < names->n; i++) {
		r = apply_device(&f, names->v[i], s, e);
		if (r < 0)
			return err_ctx(e, "CDI_devices[%zu]: %s", i, names->v[i]);
	}
	return 0;
}
