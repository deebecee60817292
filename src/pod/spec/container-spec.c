/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pod/spec/container-spec.c - what a client asks for when it creates a container
 */
#include "pod/spec/container-spec.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#include "base/json/value.h"
#include "base/mem.h"
#include "base/str.h"

#define AT(member)	     HW_AT(struct container_spec, member)
#define MOUNT_AT(member)     HW_AT(struct container_mount, member)
#define SECURITY_AT(member)  HW_AT(struct container_security, member)
#define SECURITY_HAS(member) HW_HAS(struct container_security, member)
#define ID_MAX		     (UINT32_MAX - 1)

static const struct hw_field mount_fields[] = {
	{ "container_path", HW_STRING, MOUNT_AT(container_path) },
	{ "host_path", HW_STRING, MOUNT_AT(host_path) },
	{ "readonly", HW_BOOL, MOUNT_AT(readonly) },
	{ "recursive_read_only", HW_BOOL, MOUNT_AT(recursive_read_only) },
	{ "selinux_relabel", HW_BOOL, MOUNT_AT(selinux_relabel) },
	{ "propagation", HW_INT, MOUNT_AT(propagation) },
	{ "uidMappings", HW_LIST, MOUNT_AT(uid_mappings), .sub = pod_mapping_fields,
	  .size = sizeof(struct oci_mapping) },
	{ "gidMappings", HW_LIST, MOUNT_AT(gid_mappings), .sub = pod_mapping_fields,
	  .size = sizeof(struct oci_mapping) },
	{ "image", HW_STRING, MOUNT_AT(image) },
	{ "user_specified_image", HW_STRING, MOUNT_AT(user_image) },
	{ "image_sub_path", HW_STRING, MOUNT_AT(image_sub_path) },
	{ "mount_options", HW_STRINGS, MOUNT_AT(options) },
	{ 0 },
};

static const struct hw_field device_fields[] = {
	{ "container_path", HW_STRING, HW_AT(struct container_device, container_path) },
	{ "host_path", HW_STRING, HW_AT(struct container_device, host_path) },
	{ "permissions", HW_STRING, HW_AT(struct container_device, permissions) },
	{ 0 },
};

static const struct hw_field profile_fields[] = {
	{ "profile_type", HW_INT, HW_AT(struct container_profile, type) },
	{ "localhost_ref", HW_STRING, HW_AT(struct container_profile, ref) },
	{ 0 },
};

static const struct hw_field security_fields[] = {
	{ "add_capabilities", HW_STRINGS, SECURITY_AT(add_capabilities) },
	{ "drop_capabilities", HW_STRINGS, SECURITY_AT(drop_capabilities) },
	{ "add_ambient_capabilities", HW_STRINGS, SECURITY_AT(ambient_capabilities) },
	{ "privileged", HW_BOOL, SECURITY_AT(privileged) },
	{ "namespace_options", HW_OBJECT, SECURITY_AT(namespaces), .sub = pod_namespace_fields },
	{ "selinux_user", HW_STRING, SECURITY_AT(selinux.user) },
	{ "selinux_role", HW_STRING, SECURITY_AT(selinux.role) },
	{ "selinux_type", HW_STRING, SECURITY_AT(selinux.type) },
	{ "selinux_level", HW_STRING, SECURITY_AT(selinux.level) },
	{ "run_as_user", HW_INT64, SECURITY_AT(user), .has = SECURITY_HAS(has_user) },
	{ "run_as_group", HW_INT64, SECURITY_AT(group), .has = SECURITY_HAS(has_group) },
	{ "run_as_username", HW_STRING, SECURITY_AT(username) },
	{ "readonly_rootfs", HW_BOOL, SECURITY_AT(readonly_rootfs) },
	{ "supplemental_groups", HW_UINT32S, SECURITY_AT(groups) },
	{ "supplemental_groups_policy", HW_INT, SECURITY_AT(groups_policy) },
	{ "no_new_privs", HW_BOOL, SECURITY_AT(no_new_privs) },
	{ "masked_paths", HW_STRINGS, SECURITY_AT(masked_paths) },
	{ "readonly_paths", HW_STRINGS, SECURITY_AT(readonly_paths) },
	{ "seccomp", HW_OBJECT, SECURITY_AT(seccomp), .has = SECURITY_HAS(has_seccomp),
	  .sub = profile_fields },
	{ "apparmor", HW_OBJECT, SECURITY_AT(apparmor), .has = SECURITY_HAS(has_apparmor),
	  .sub = profile_fields },
	{ 0 },
};

static const struct hw_field spec_fields[] = {
	{ "name", HW_STRING, AT(name), .flags = HW_REQUIRED },
	{ "attempt", HW_UINT32, AT(attempt) },
	{ "image", HW_STRING, AT(image), .flags = HW_REQUIRED },
	{ "user_specified_image", HW_STRING, AT(user_image) },
	{ "command", HW_STRINGS, AT(command) },
	{ "args", HW_STRINGS, AT(args) },
	{ "working_dir", HW_STRING, AT(working_dir) },
	{ "envs", HW_MAP, AT(env) },
	{ "mounts", HW_LIST, AT(mounts), .sub = mount_fields,
	  .size = sizeof(struct container_mount) },
	{ "devices", HW_LIST, AT(devices), .sub = device_fields,
	  .size = sizeof(struct container_device) },
	{ "CDI_devices", HW_STRINGS, AT(cdi_devices) },
	{ "labels", HW_MAP, AT(labels) },
	{ "annotations", HW_MAP, AT(annotations) },
	{ "log_path", HW_STRING, AT(log_path) },
	{ "stdin", HW_BOOL, AT(stdin) },
	{ "stdin_once", HW_BOOL, AT(stdin_once) },
	{ "tty", HW_BOOL, AT(tty) },
	{ "stop_signal", HW_INT, AT(stop_signal) },
	{ "resources", HW_OBJECT, AT(resources),
	  .has = HW_HAS(struct container_spec, has_resources), .sub = oci_resources_fields },
	{ "security_context", HW_OBJECT, AT(security), .sub = security_fields },
	{ 0 },
};

/* ---- checks ------------------------------------------------------------------------- */

#define SECURITY "linux.security_context."

static int check_ids(const struct container_security *s, struct hw_err *e)
{
	const struct {
		const char *field;
		bool has;
		int64_t id;
	} ids[] = {
		{ SECURITY "run_as_user", s->has_user, s->user },
		{ SECURITY "run_as_group", s->has_group, s->group },
	};

	for (size_t i = 0; i < ARRAY_SIZE(ids); i++)
		if (ids[i].has && (ids[i].id < 0 || ids[i].id > ID_MAX))
			return err_text(e, -EINVAL, "%s: %lld is not a valid ID", ids[i].field,
					(long long)ids[i].id);
	if (s->has_user && !str_empty(s->username))
		return err_text(e, -EINVAL,
				SECURITY "run_as_user and run_as_username exclude each other");
	if (s->has_group && !s->has_user && str_empty(s->username))
		return err_text(e, -EINVAL,
				SECURITY "run_as_group needs run_as_user or run_as_username");
	if (s->groups_policy != GROUPS_MERGE && s->groups_policy != GROUPS_STRICT)
		return err_text(e, -EINVAL, SECURITY "supplemental_groups_policy: unknown value %d",
				s->groups_policy);
	return 0;
}

static int check_profile(bool has, const struct container_profile *p, const char *field,
			 struct hw_err *e)
{
	if (!has)
		return 0;
	if (p->type < PROFILE_RUNTIME_DEFAULT || p->type > PROFILE_LOCALHOST)
		return err_text(e, -EINVAL, "%s.profile_type: unknown value %d", field, p->type);
	if (p->type == PROFILE_LOCALHOST && str_empty(p->ref))
		return err_text(e, -EINVAL, "%s.localhost_ref is missing", field);
	return 0;
}

static int check_namespaces(const struct pod_namespaces *n, struct hw_err *e)
{
	if (n->pid < POD_MODE_POD || n->pid > POD_MODE_TARGET)
		return err_text(e, -EINVAL, SECURITY "namespace_options.pid: unknown mode %d",
				n->pid);
	if (n->pid == POD_MODE_TARGET && str_empty(n->target))
		return err_text(e, -EINVAL, SECURITY "namespace_options.target_id is missing");
	return pod_check_user(n, e);
}

static int check_mount(const struct container_mount *m, size_t i, struct hw_err *e)
{
	if (str_empty(m->container_path))
		return err_text(e, -EINVAL, "mounts[%zu].container_path is missing", i);
	if (str_empty(m->host_path) && str_empty(m->image))
		return err_text(e, -EINVAL, "mounts[%zu].host_path is missing", i);
	if (!str_empty(m->host_path) && !str_empty(m->image))
		return err_text(e, -EINVAL, "mounts[%zu]: host_path and image exclude each other",
				i);
	if (!str_empty(m->image) && !m->readonly)
		return err_text(e, -EINVAL, "mounts[%zu].readonly: an image is mounted read-only",
				i);
	if (str_empty(m->image) && !str_empty(m->image_sub_path))
		return err_text(e, -EINVAL, "mounts[%zu].image_sub_path needs an image", i);
	if (!str_empty(m->image) && m->propagation != CONTAINER_PRIVATE)
		return err_text(e, -EINVAL,
				"mounts[%zu].propagation: an image is mounted privately", i);
	if (m->propagation < CONTAINER_PRIVATE || m->propagation > CONTAINER_BOTH_WAYS)
		return err_text(e, -EINVAL, "mounts[%zu].propagation: unknown value %d", i,
				m->propagation);
	return 0;
}

static int check_absolute(const struct hw_strings *list, const char *field, struct hw_err *e)
{
	for (size_t i = 0; i < list->n; i++)
		if (list->v[i][0] != '/')
			return err_text(e, -EINVAL, "%s[%zu]: \"%.200s\" is not an absolute path",
					field, i, list->v[i]);
	return 0;
}

static int check_log_path(const char *path, struct hw_err *e)
{
	for (const char *part = str_or(path, ""); *part; part += strcspn(part, "/")) {
		part += strspn(part, "/");
		if (strcspn(part, "/") == 2 && strncmp(part, "..", 2) == 0)
			return err_text(e, -EINVAL, "log_path: \"..\" is not allowed");
	}
	return 0;
}

static int check_spec(const struct container_spec *spec, struct hw_err *e)
{
	const struct container_mount *mounts = spec->mounts.v;
	const struct container_security *s = &spec->security;
	const struct hw_strings *programs[] = { &spec->command, &spec->args };
	static const char *const names[] = { "command", "args" };
	int r;

	if (str_empty(spec->name))
		return err_text(e, -EINVAL, "config.metadata.name is missing");
	if (str_empty(spec->image))
		return err_text(e, -EINVAL, "config.image.image is missing");
	for (size_t i = 0; i < ARRAY_SIZE(programs); i++)
		if (programs[i]->n > 0 && strlen(programs[i]->v[0]) >= PATH_MAX)
			return err_text(e, -EINVAL, "%s[0]: more than %d bytes", names[i],
					PATH_MAX - 1);
	if (!str_empty(spec->working_dir) && spec->working_dir[0] != '/')
		return err_text(e, -EINVAL, "working_dir: \"%.200s\" is not an absolute path",
				spec->working_dir);
	r = check_ids(s, e);
	if (r == 0)
		r = check_absolute(&s->masked_paths, SECURITY "masked_paths", e);
	if (r == 0)
		r = check_absolute(&s->readonly_paths, SECURITY "readonly_paths", e);
	if (r == 0)
		r = check_profile(s->has_seccomp, &s->seccomp, SECURITY "seccomp", e);
	if (r == 0)
		r = check_profile(s->has_apparmor, &s->apparmor, SECURITY "apparmor", e);
	if (r == 0)
		r = check_namespaces(&s->namespaces, e);
	if (r == 0)
		r = pod_check_selinux(&s->selinux, e);
	for (size_t i = 0; r == 0 && i < spec->mounts.n; i++)
		r = check_mount(&mounts[i], i, e);
	if (r == 0)
		r = check_log_path(spec->log_path, e);
	if (r < 0)
		return r;
	return pod_check_labels(&spec->labels, &spec->annotations, e);
}

/* ---- lifetime ----------------------------------------------------------------------- */

static void spec_free(void *object)
{
	struct container_spec *spec = object;

	hw_field_clear(spec_fields, spec);
	free(spec->text);
	free(spec);
}

struct container_spec *container_spec_new(void)
{
	struct container_spec *spec = mem_new(sizeof(*spec));

	shared_init(&spec->shared, spec_free);
	return spec;
}

int container_spec_seal(struct container_spec *spec, struct hw_err *e)
{
	int r;

	r = check_spec(spec, e);
	if (r < 0)
		return r;
	spec->text = hw_field_encode(spec_fields, spec, 0);
	if (strlen(spec->text) > VALUE_SIZE_MAX)
		return err_text(e, -EINVAL, "config: more than %d bytes", VALUE_SIZE_MAX);
	return 0;
}

int container_spec_decode(const char *text, struct container_spec **ret_spec, struct hw_err *e)
{
	AUTO(shared_unref) struct container_spec *spec = container_spec_new();
	int r;

	r = hw_field_decode(spec_fields, text, strlen(text), spec, e);
	if (r < 0)
		return r;
	spec->text = str_copy(text);
	*ret_spec = take_ptr(spec);
	return 0;
}
