/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pod/spec/spec.c - what a client asks for when it creates a pod
 */
#include "pod/spec/spec.h"

#include <ctype.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/utsname.h>

#include "base/ip.h"
#include "base/json/field.h"
#include "base/json/value.h"
#include "base/mem.h"
#include "base/str.h"

#define AT(member)    HW_AT(struct pod_spec, member)
#define HAS(member)   HW_HAS(struct pod_spec, member)
#define NS_AT(member) HW_AT(struct pod_namespaces, member)

#define HOST_NAME_LEN (sizeof(((struct utsname *)NULL)->nodename) - 1)

static const struct hw_field dns_fields[] = {
	{ "servers", HW_STRINGS, HW_AT(struct pod_dns, servers) },
	{ "searches", HW_STRINGS, HW_AT(struct pod_dns, searches) },
	{ "options", HW_STRINGS, HW_AT(struct pod_dns, options) },
	{ 0 },
};

static const struct hw_field port_fields[] = {
	{ "protocol", HW_STRING, HW_AT(struct pod_port, protocol), .flags = HW_REQUIRED },
	{ "container_port", HW_INT, HW_AT(struct pod_port, container_port) },
	{ "host_port", HW_INT, HW_AT(struct pod_port, host_port) },
	{ "host_ip", HW_STRING, HW_AT(struct pod_port, host_ip) },
	{ 0 },
};

const struct hw_field pod_mapping_fields[] = {
	{ "host_id", HW_UINT32, HW_AT(struct oci_mapping, host_id) },
	{ "container_id", HW_UINT32, HW_AT(struct oci_mapping, container_id) },
	{ "length", HW_UINT32, HW_AT(struct oci_mapping, size) },
	{ 0 },
};

const struct hw_field pod_namespace_fields[] = {
	{ "network", HW_INT, NS_AT(network) },
	{ "pid", HW_INT, NS_AT(pid) },
	{ "ipc", HW_INT, NS_AT(ipc) },
	{ "target_id", HW_STRING, NS_AT(target) },
	{ "userns_options", HW_INT, NS_AT(user), .has = HW_HAS(struct pod_namespaces, has_user) },
	{ "uids", HW_LIST, NS_AT(uids), .sub = pod_mapping_fields,
	  .size = sizeof(struct oci_mapping) },
	{ "gids", HW_LIST, NS_AT(gids), .sub = pod_mapping_fields,
	  .size = sizeof(struct oci_mapping) },
	{ 0 },
};

static const struct hw_field spec_fields[] = {
	{ "name", HW_STRING, AT(name), .flags = HW_REQUIRED },
	{ "namespace", HW_STRING, AT(namespace), .flags = HW_REQUIRED },
	{ "uid", HW_STRING, AT(uid), .flags = HW_REQUIRED },
	{ "attempt", HW_UINT32, AT(attempt) },
	{ "runtime_handler", HW_STRING, AT(handler) },
	{ "hostname", HW_STRING, AT(hostname) },
	{ "log_directory", HW_STRING, AT(log_directory) },
	{ "dns_config", HW_OBJECT, AT(dns), .has = HAS(has_dns), .sub = dns_fields },
	{ "port_mappings", HW_LIST, AT(ports), .sub = port_fields,
	  .size = sizeof(struct pod_port) },
	{ "labels", HW_MAP, AT(labels) },
	{ "annotations", HW_MAP, AT(annotations) },
	{ "cgroup_parent", HW_STRING, AT(cgroup_parent) },
	{ "sysctls", HW_MAP, AT(sysctls) },
	{ "namespace_options", HW_OBJECT, AT(namespaces), .sub = pod_namespace_fields },
	{ "selinux_user", HW_STRING, AT(selinux.user) },
	{ "selinux_role", HW_STRING, AT(selinux.role) },
	{ "selinux_type", HW_STRING, AT(selinux.type) },
	{ "selinux_level", HW_STRING, AT(selinux.level) },
	{ "privileged", HW_BOOL, AT(privileged) },
	{ "security_context", HW_STRING, AT(security) },
	{ "resources", HW_OBJECT, AT(resources), .has = HAS(has_resources),
	  .sub = oci_resources_fields },
	{ "overhead", HW_OBJECT, AT(overhead), .has = HAS(has_overhead),
	  .sub = oci_resources_fields },
	{ 0 },
};

/* ---- checks ------------------------------------------------------------------------- */

static int check_metadata(const struct pod_spec *spec, struct hw_err *e)
{
	const struct {
		const char *field, *value;
	} required[] = {
		{ "metadata.name", spec->name },
		{ "metadata.namespace", spec->namespace },
		{ "metadata.uid", spec->uid },
	};

	for (size_t i = 0; i < ARRAY_SIZE(required); i++)
		if (str_empty(required[i].value))
			return err_text(e, -EINVAL, "%s is missing", required[i].field);
	return 0;
}

static int check_hostname(const struct pod_spec *spec, struct hw_err *e)
{
	const char *name = str_or(spec->hostname, "");

	if (strlen(name) > HOST_NAME_LEN)
		return err_text(e, -EINVAL, "hostname: longer than %zu bytes", HOST_NAME_LEN);
	for (const char *c = name; *c; c++)
		if (!isgraph((unsigned char)*c) || *c == '/')
			return err_text(e, -EINVAL, "hostname: invalid character in \"%s\"", name);
	return 0;
}

const char *pod_mode_name(int mode)
{
	static const char *const names[] = { "POD", "CONTAINER", "NODE", "TARGET" };

	return mode >= 0 && (size_t)mode < ARRAY_SIZE(names) ? names[mode] : "unknown";
}

static int refuse_mode(const char *field, int mode, const char *expected, struct hw_err *e)
{
	return err_text(e, -EINVAL,
			"linux.security_context.namespace_options.%s: mode %s (%d); expected %s",
			field, pod_mode_name(mode), mode, expected);
}

const struct oci_mapping *pod_user_mapping(const struct pod_namespaces *n)
{
	return n->has_user && n->user == POD_MODE_POD ? n->uids.v : NULL;
}

static int refuse_user(const char *what, struct hw_err *e)
{
	return err_text(e, -EINVAL, "linux.security_context.namespace_options.userns_options%s",
			what);
}

int pod_check_user(const struct pod_namespaces *n, struct hw_err *e)
{
	const struct oci_mapping *m = n->uids.v;

	if (!n->has_user)
		return 0;
	if (n->user == POD_MODE_NODE)
		return n->uids.n || n->gids.n
			       ? refuse_user(": the user namespace of the node has no mappings", e)
			       : 0;
	if (n->user != POD_MODE_POD)
		return refuse_mode("userns_options", n->user, "POD or NODE", e);
	if (n->uids.n != 1)
		return refuse_user(".uids: expected exactly one mapping", e);
	if (n->gids.n != 1)
		return refuse_user(".gids: expected exactly one mapping", e);
	if (memcmp(n->uids.v, n->gids.v, sizeof(*m)) != 0)
		return refuse_user(": uids and gids differ", e);
	if (m->container_id != 0)
		return refuse_user(".uids: the mapping does not start at container_id 0", e);
	if (m->host_id == 0)
		return refuse_user(".uids: host_id 0 is root of the node", e);
	if (m->size == 0 || (uint64_t)m->host_id + m->size > UINT32_MAX)
		return refuse_user(".uids: invalid length", e);
	return 0;
}

static int check_modes(const struct pod_namespaces *n, struct hw_err *e)
{
	if (n->network != POD_MODE_POD && n->network != POD_MODE_NODE)
		return refuse_mode("network", n->network, "POD or NODE", e);
	if (n->ipc != POD_MODE_POD && n->ipc != POD_MODE_NODE)
		return refuse_mode("ipc", n->ipc, "POD or NODE", e);
	if (n->pid != POD_MODE_POD && n->pid != POD_MODE_CONTAINER && n->pid != POD_MODE_NODE)
		return refuse_mode("pid", n->pid, "POD, CONTAINER or NODE", e);
	if (!str_empty(n->target))
		return err_text(e, -EINVAL,
				"linux.security_context.namespace_options.target_id: only a "
				"container can have a target");
	/* mounts of /proc and /dev/mqueue need rights in the user namespaces that own these two */
	if (n->has_user && n->user == POD_MODE_POD &&
	    (n->pid == POD_MODE_NODE || n->ipc == POD_MODE_NODE))
		return refuse_user(": the pod uses the PID or IPC namespace of the node", e);
	return pod_check_user(n, e);
}

static int check_port(const struct pod_port *port, size_t i, struct hw_err *e)
{
	struct hw_ip ip;

	if (port->host_port < 0 || port->host_port > 65535)
		return err_text(e, -EINVAL, "port_mappings[%zu].host_port: %d is not a port", i,
				port->host_port);
	if (port->container_port < 0 || port->container_port > 65535)
		return err_text(e, -EINVAL, "port_mappings[%zu].container_port: %d is not a port",
				i, port->container_port);
	if (port->host_port && !port->container_port)
		return err_text(e, -EINVAL, "port_mappings[%zu].container_port is missing", i);
	if (!str_empty(port->host_ip) && hw_ip_parse(port->host_ip, &ip, e) < 0)
		return err_ctx(e, "port_mappings[%zu].host_ip", i);
	return 0;
}

static int check_ports(const struct pod_spec *spec, struct hw_err *e)
{
	const struct pod_port *ports = spec->ports.v;
	int r = 0;

	for (size_t i = 0; r == 0 && i < spec->ports.n; i++)
		r = check_port(&ports[i], i, e);
	return r;
}

/* Each word becomes a word of resolv.conf. */
static int check_words(const struct hw_strings *list, const char *field, struct hw_err *e)
{
	for (size_t i = 0; i < list->n; i++) {
		if (!list->v[i][0])
			return err_text(e, -EINVAL, "dns_config.%s[%zu] is empty", field, i);
		for (const char *c = list->v[i]; *c; c++)
			if (!isgraph((unsigned char)*c))
				return err_text(e, -EINVAL, "dns_config.%s[%zu]: invalid character",
						field, i);
	}
	return 0;
}

static int check_dns(const struct pod_dns *dns, struct hw_err *e)
{
	int r;

	r = check_words(&dns->servers, "servers", e);
	if (r == 0)
		r = check_words(&dns->searches, "searches", e);
	if (r == 0)
		r = check_words(&dns->options, "options", e);
	return r;
}

static size_t map_size(const struct hw_map *map)
{
	size_t size = 0;

	for (size_t i = 0; i < map->n; i++)
		size += strlen(map->keys[i]) + strlen(map->values[i]);
	return size;
}

int pod_check_labels(const struct hw_map *labels, const struct hw_map *annotations,
		     struct hw_err *e)
{
	if (map_size(labels) + map_size(annotations) > POD_LABELS_MAX)
		return err_text(e, -EINVAL, "labels and annotations: more than %d bytes in all",
				POD_LABELS_MAX);
	return 0;
}

int pod_check_selinux(const struct pod_selinux *label, struct hw_err *e)
{
	if (str_empty(label->user) && str_empty(label->role) && str_empty(label->type) &&
	    str_empty(label->level))
		return 0;
	return err_text(e, -EINVAL, "linux.security_context.selinux_options is not supported yet");
}

enum pod_sysctl pod_sysctl_kind(const char *name)
{
	static const struct {
		const char *prefix;
		enum pod_sysctl kind;
	} prefixes[] = {
		{ "net.", POD_SYSCTL_NETWORK },		 { "kernel.shm", POD_SYSCTL_IPC },
		{ "kernel.msg", POD_SYSCTL_IPC },	 { "kernel.sem", POD_SYSCTL_IPC },
		{ "fs.mqueue.", POD_SYSCTL_IPC },	 { "kernel.hostname", POD_SYSCTL_UTS },
		{ "kernel.domainname", POD_SYSCTL_UTS },
	};
	autofree char *dotted = str_copy(name);

	if (dotted[strcspn(dotted, "./")] == '/')
		for (char *c = dotted; *c; c++)
			*c = *c == '/' ? '.' : *c;
	for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++)
		if (str_starts(dotted, prefixes[i].prefix))
			return prefixes[i].kind;
	return POD_SYSCTL_HOST;
}

static int check_sysctl(const struct pod_spec *spec, const char *name, struct hw_err *e)
{
	const struct pod_namespaces *n = &spec->namespaces;
	const char *where = NULL;

	switch (pod_sysctl_kind(name)) {
	case POD_SYSCTL_HOST:
		return err_text(e, -EINVAL, "linux.sysctls: %.200s: not a sysctl of a namespace",
				name);
	case POD_SYSCTL_NETWORK:
	case POD_SYSCTL_UTS: /* a pod has a UTS namespace if it has a network namespace */
		where = n->network == POD_MODE_NODE ? "network" : NULL;
		break;
	case POD_SYSCTL_IPC:
		where = n->ipc == POD_MODE_NODE ? "IPC" : NULL;
		break;
	}
	if (where)
		return err_text(e, -EINVAL,
				"linux.sysctls: %.200s: the pod uses the %s namespace of the host",
				name, where);
	return 0;
}

static int check_spec(const struct pod_spec *spec, struct hw_err *e)
{
	int r;

	r = check_metadata(spec, e);
	if (r == 0)
		r = check_hostname(spec, e);
	if (r == 0)
		r = check_modes(&spec->namespaces, e);
	if (r == 0)
		r = pod_check_selinux(&spec->selinux, e);
	if (r == 0)
		r = check_ports(spec, e);
	if (r == 0)
		r = check_dns(&spec->dns, e);
	for (size_t i = 0; r == 0 && i < spec->sysctls.n; i++)
		r = check_sysctl(spec, spec->sysctls.keys[i], e);
	if (r < 0)
		return r;
	if (!str_empty(spec->log_directory) && spec->log_directory[0] != '/')
		return err_text(e, -EINVAL, "log_directory: path must be absolute");
	return pod_check_labels(&spec->labels, &spec->annotations, e);
}

/* ---- lifetime ----------------------------------------------------------------------- */

static void spec_free(void *object)
{
	struct pod_spec *spec = object;

	hw_field_clear(spec_fields, spec);
	free(spec->text);
	free(spec);
}

struct pod_spec *pod_spec_new(void)
{
	struct pod_spec *spec = mem_new(sizeof(*spec));

	shared_init(&spec->shared, spec_free);
	return spec;
}

int pod_spec_seal(struct pod_spec *spec, struct hw_err *e)
{
	int r;

	r = check_spec(spec, e);
	if (r < 0)
		return r;
	spec->text = hw_field_encode(spec_fields, spec, 0);
	if (strlen(spec->text) > VALUE_SIZE_MAX)
		return err_text(e, -EINVAL, "the configuration of the pod has more than %d bytes",
				VALUE_SIZE_MAX);
	return 0;
}

int pod_spec_decode(const char *text, struct pod_spec **ret_spec, struct hw_err *e)
{
	AUTO(shared_unref) struct pod_spec *spec = pod_spec_new();
	int r;

	r = hw_field_decode(spec_fields, text, strlen(text), spec, e);
	if (r < 0)
		return r;
	spec->text = str_copy(text);
	*ret_spec = take_ptr(spec);
	return 0;
}

const char *pod_spec_annotation(const struct pod_spec *spec, const char *key)
{
	for (size_t i = 0; i < spec->annotations.n; i++)
		if (str_equal(spec->annotations.keys[i], key))
			return spec->annotations.values[i];
	return NULL;
}
