/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci/spec/spec.c - the OCI runtime configuration of a container: config.json
 *
 * How:   field tables. HW_ALWAYS is on the keys that mean something else when they are absent: without
 *        "capabilities" crun leaves all capabilities, and it refuses a configuration without "mounts".
 */
#include "oci/spec/spec.h"

#include <errno.h>
#include <string.h>

#include "base/str.h"

/* ---- process ----------------------------------------------------------------------------------- */

#define USER(member) HW_AT(struct oci_user, member)
static const struct hw_field user_fields[] = {
	{ "uid", HW_UINT32, USER(uid), .flags = HW_ALWAYS },
	{ "gid", HW_UINT32, USER(gid), .flags = HW_ALWAYS },
	{ "additionalGids", HW_UINT32S, USER(additional_gids) },
	{ 0 },
};

#define CAPS(member) HW_AT(struct oci_capabilities, member)
static const struct hw_field capabilities_fields[] = {
	{ "bounding", HW_STRINGS, CAPS(bounding), .flags = HW_ALWAYS },
	{ "effective", HW_STRINGS, CAPS(effective), .flags = HW_ALWAYS },
	{ "inheritable", HW_STRINGS, CAPS(inheritable), .flags = HW_ALWAYS },
	{ "permitted", HW_STRINGS, CAPS(permitted), .flags = HW_ALWAYS },
	{ "ambient", HW_STRINGS, CAPS(ambient), .flags = HW_ALWAYS },
	{ 0 },
};

#define RLIMIT(member) HW_AT(struct oci_rlimit, member)
static const struct hw_field rlimit_fields[] = {
	{ "type", HW_STRING, RLIMIT(type), .flags = HW_ALWAYS },
	{ "soft", HW_INT64, RLIMIT(soft), .flags = HW_ALWAYS },
	{ "hard", HW_INT64, RLIMIT(hard), .flags = HW_ALWAYS },
	{ 0 },
};

/* The members of the console size are in struct oci_process, too. */
#define PROCESS(member) HW_AT(struct oci_process, member)
static const struct hw_field console_fields[] = {
	{ "height", HW_UINT32, PROCESS(console_height), .flags = HW_ALWAYS },
	{ "width", HW_UINT32, PROCESS(console_width), .flags = HW_ALWAYS },
	{ 0 },
};

const struct hw_field spec_process_fields[] = {
	{ "terminal", HW_BOOL, PROCESS(terminal) },
	{ "consoleSize", HW_OBJECT, 0, .sub = console_fields,
	  .has = HW_HAS(struct oci_process, has_console) },
	{ "user", HW_OBJECT, PROCESS(user), .sub = user_fields },
	{ "args", HW_STRINGS, PROCESS(args) },
	{ "env", HW_STRINGS, PROCESS(env) },
	{ "cwd", HW_STRING, PROCESS(cwd), .flags = HW_ALWAYS },
	{ "capabilities", HW_OBJECT, PROCESS(capabilities), .sub = capabilities_fields },
	{ "rlimits", HW_LIST, PROCESS(rlimits), .sub = rlimit_fields,
	  .size = sizeof(struct oci_rlimit) },
	{ "noNewPrivileges", HW_BOOL, PROCESS(no_new_privileges) },
	{ "apparmorProfile", HW_STRING, PROCESS(apparmor_profile) },
	{ "selinuxLabel", HW_STRING, PROCESS(selinux_label) },
	{ "oomScoreAdj", HW_INT, PROCESS(oom_score_adj),
	  .has = HW_HAS(struct oci_process, has_oom_score_adj) },
	{ 0 },
};

/* ---- mounts, namespaces, devices --------------------------------------------------------------- */

#define MAPPING(member) HW_AT(struct oci_mapping, member)
static const struct hw_field mapping_fields[] = {
	{ "containerID", HW_UINT32, MAPPING(container_id), .flags = HW_ALWAYS },
	{ "hostID", HW_UINT32, MAPPING(host_id), .flags = HW_ALWAYS },
	{ "size", HW_UINT32, MAPPING(size), .flags = HW_ALWAYS },
	{ 0 },
};
#define MAPPINGS .sub = mapping_fields, .size = sizeof(struct oci_mapping)

#define MOUNT(member) HW_AT(struct oci_mount, member)
static const struct hw_field mount_fields[] = {
	{ "destination", HW_STRING, MOUNT(destination), .flags = HW_ALWAYS },
	{ "type", HW_STRING, MOUNT(type) },
	{ "source", HW_STRING, MOUNT(source) },
	{ "options", HW_STRINGS, MOUNT(options) },
	{ "uidMappings", HW_LIST, MOUNT(uid_mappings), MAPPINGS },
	{ "gidMappings", HW_LIST, MOUNT(gid_mappings), MAPPINGS },
	{ 0 },
};

static const struct hw_field namespace_fields[] = {
	{ "type", HW_STRING, HW_AT(struct oci_namespace, type), .flags = HW_ALWAYS },
	{ "path", HW_STRING, HW_AT(struct oci_namespace, path) },
	{ 0 },
};

#define DEVICE(member) HW_AT(struct oci_device, member)
static const struct hw_field device_fields[] = {
	{ "type", HW_STRING, DEVICE(type), .flags = HW_ALWAYS },
	{ "path", HW_STRING, DEVICE(path), .flags = HW_ALWAYS },
	{ "major", HW_INT64, DEVICE(major), .flags = HW_ALWAYS },
	{ "minor", HW_INT64, DEVICE(minor), .flags = HW_ALWAYS },
	{ "fileMode", HW_UINT32, DEVICE(mode), .flags = HW_ALWAYS },
	{ "uid", HW_UINT32, DEVICE(uid), .flags = HW_ALWAYS },
	{ "gid", HW_UINT32, DEVICE(gid), .flags = HW_ALWAYS },
	{ 0 },
};

/* ---- limits ------------------------------------------------------------------------------------ */

#define RULE(member) HW_AT(struct oci_device_rule, member)
static const struct hw_field rule_fields[] = {
	{ "allow", HW_BOOL, RULE(allow), .flags = HW_ALWAYS },
	{ "type", HW_STRING, RULE(type) },
	{ "major", HW_INT64, RULE(major), .has = HW_HAS(struct oci_device_rule, has_major) },
	{ "minor", HW_INT64, RULE(minor), .has = HW_HAS(struct oci_device_rule, has_minor) },
	{ "access", HW_STRING, RULE(access) },
	{ 0 },
};

#define LIMITS(member) HW_AT(struct oci_limits, member)
static const struct hw_field memory_fields[] = {
	{ "limit", HW_INT64, LIMITS(memory) },
	{ "swap", HW_INT64, LIMITS(swap) },
	{ 0 },
};

static const struct hw_field cpu_fields[] = {
	{ "shares", HW_INT64, LIMITS(cpu_shares) }, { "quota", HW_INT64, LIMITS(cpu_quota) },
	{ "period", HW_INT64, LIMITS(cpu_period) }, { "cpus", HW_STRING, LIMITS(cpus) },
	{ "mems", HW_STRING, LIMITS(mems) },	    { 0 },
};

static const struct hw_field pids_fields[] = {
	{ "limit", HW_INT64, LIMITS(pids) },
	{ 0 },
};

static const struct hw_field hugepage_fields[] = {
	{ "pageSize", HW_STRING, HW_AT(struct oci_hugepage_limit, page_size) },
	{ "limit", HW_INT64, HW_AT(struct oci_hugepage_limit, limit), .flags = HW_ALWAYS },
	{ 0 },
};

const struct hw_field spec_limits_fields[] = {
	{ "devices", HW_LIST, LIMITS(device_rules), .sub = rule_fields,
	  .size = sizeof(struct oci_device_rule) },
	{ "memory", HW_OBJECT, 0, .sub = memory_fields },
	{ "cpu", HW_OBJECT, 0, .sub = cpu_fields },
	{ "pids", HW_OBJECT, 0, .sub = pids_fields },
	{ "hugepageLimits", HW_LIST, LIMITS(hugepages), .sub = hugepage_fields,
	  .size = sizeof(struct oci_hugepage_limit) },
	{ "unified", HW_MAP, LIMITS(unified) },
	{ 0 },
};

/* ---- hooks ------------------------------------------------------------------------------------- */

#define HOOK(member) HW_AT(struct oci_hook, member)
static const struct hw_field hook_fields[] = {
	{ "path", HW_STRING, HOOK(path), .flags = HW_ALWAYS },
	{ "args", HW_STRINGS, HOOK(args) },
	{ "env", HW_STRINGS, HOOK(env) },
	{ "timeout", HW_INT64, HOOK(timeout) },
	{ 0 },
};
#define HOOKS(member)                                                                              \
	HW_LIST, HW_AT(struct oci_hooks, member), .sub = hook_fields,                              \
						  .size = sizeof(struct oci_hook)

const struct hw_field spec_hooks_fields[] = {
	{ "prestart", HOOKS(prestart) },
	{ "createRuntime", HOOKS(create_runtime) },
	{ "createContainer", HOOKS(create_container) },
	{ "startContainer", HOOKS(start_container) },
	{ "poststart", HOOKS(poststart) },
	{ "poststop", HOOKS(poststop) },
	{ 0 },
};

/* ---- the configuration ------------------------------------------------------------------------- */

#define SPEC(member) HW_AT(struct oci_spec, member)
static const struct hw_field root_fields[] = {
	{ "path", HW_STRING, SPEC(root), .flags = HW_ALWAYS },
	{ "readonly", HW_BOOL, SPEC(readonly_root) },
	{ 0 },
};

static const struct hw_field linux_fields[] = {
	{ "namespaces", HW_LIST, SPEC(namespaces), .sub = namespace_fields,
	  .size = sizeof(struct oci_namespace) },
	{ "uidMappings", HW_LIST, SPEC(uid_mappings), MAPPINGS },
	{ "gidMappings", HW_LIST, SPEC(gid_mappings), MAPPINGS },
	{ "devices", HW_LIST, SPEC(devices), .sub = device_fields,
	  .size = sizeof(struct oci_device) },
	{ "cgroupsPath", HW_STRING, SPEC(cgroups_path) },
	{ "resources", HW_OBJECT, SPEC(limits), .sub = spec_limits_fields },
	{ "seccomp", HW_JSON, SPEC(seccomp) },
	{ "rootfsPropagation", HW_STRING, SPEC(rootfs_propagation) },
	{ "maskedPaths", HW_STRINGS, SPEC(masked_paths) },
	{ "readonlyPaths", HW_STRINGS, SPEC(readonly_paths) },
	{ "mountLabel", HW_STRING, SPEC(mount_label) },
	{ 0 },
};

static const struct hw_field spec_fields[] = {
	{ "ociVersion", HW_STRING, SPEC(version) },
	{ "process", HW_OBJECT, SPEC(process), .sub = spec_process_fields },
	{ "root", HW_OBJECT, 0, .sub = root_fields },
	{ "mounts", HW_LIST, SPEC(mounts), .sub = mount_fields, .size = sizeof(struct oci_mount),
	  .flags = HW_ALWAYS },
	{ "hooks", HW_OBJECT, SPEC(hooks), .sub = spec_hooks_fields },
	{ "annotations", HW_MAP, SPEC(annotations) },
	{ "linux", HW_OBJECT, 0, .sub = linux_fields },
	{ 0 },
};

int spec_encode(const struct oci_spec *s, char **ret_json, struct hw_err *e)
{
	AUTO(spec_done) struct oci_spec again = { 0 };
	autofree char *text = NULL;
	char version[] = SPEC_VERSION;
	struct oci_spec copy = *s;

	if (!copy.version)
		copy.version = version;
	text = hw_field_encode(spec_fields, &copy, 0);
	if (spec_decode(text, strlen(text), &again, e) < 0)
		return err_replace(e, -EFBIG, -E2BIG);
	*ret_json = take_ptr(text);
	return 0;
}

int spec_decode(const char *json, size_t len, struct oci_spec *ret, struct hw_err *e)
{
	int r;

	r = hw_field_decode(spec_fields, json, len, ret, e);
	if (r < 0) {
		err_replace(e, -EINVAL, -EBADMSG);
		return err_ctx(e, "OCI configuration");
	}
	return 0;
}

void spec_done(struct oci_spec *s)
{
	hw_field_clear(spec_fields, s);
}

void *spec_append(struct hw_list *list, size_t size)
{
	char *new;

	list->v = mem_resize(list->v, list->n + 1, size);
	new = (char *)list->v + list->n++ *size;
	memset(new, 0, size);
	return new;
}

const char *spec_find_annotation(const struct oci_spec *s, const char *key)
{
	for (size_t i = 0; i < s->annotations.n; i++)
		if (str_equal(s->annotations.keys[i], key))
			return s->annotations.values[i];
	return "";
}

void spec_annotate(struct oci_spec *s, const char *key, const char *value)
{
	struct hw_map *m = &s->annotations;

	for (size_t i = 0; i < m->n; i++)
		if (str_equal(m->keys[i], key)) {
			free(m->values[i]);
			m->values[i] = str_copy(value);
			return;
		}
	m->keys = mem_resize(m->keys, m->n + 1, sizeof(*m->keys));
	m->values = mem_resize(m->values, m->n + 1, sizeof(*m->values));
	m->keys[m->n] = str_copy(key);
	m->values[m->n++] = str_copy(value);
}
