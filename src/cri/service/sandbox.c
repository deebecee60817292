/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cri/service/sandbox.c - pods in runtime.v1.RuntimeService, where they are called pod sandboxes
 *
 * What:  RunPodSandbox, StopPodSandbox, RemovePodSandbox, PodSandboxStatus, ListPodSandbox,
 *        StreamPodSandboxes and UpdatePodSandboxResources.
 * How:   requests become a struct pod_spec. Lists are built from the view of all pods; the messages
 *        point into it.
 * Rules: stop and remove succeed if the pod does not exist. Lost pods are not part of CRI: they have
 *        no metadata.
 *        The sandbox has no process of an image, so the fields of its security context that describe
 *        such a process (user, groups, seccomp, AppArmor, read-only root) have nothing to apply to.
 *        Requests that differ in them are different, nevertheless.
 */
#include <errno.h>
#include <string.h>

#include "api/call.h"
#include "api/cri-v1.pb-c.h"
#include "base/arena.h"
#include "base/base64.h"
#include "base/hash.h"
#include "base/json/value.h"
#include "base/str.h"
#include "base/time.h"
#include "cri/service/convert.h"
#include "cri/service/messages.h"
#include "cri/service/services.h"
#include "pod/pods.h"

#define PODS_PER_MESSAGE 200 /* in responses of StreamPodSandboxes */
#define SECURITY_DIGITS	 64  /* of the hash of a security context */

/* ---- request to spec ---------------------------------------------------------------- */

static int read_metadata(const Runtime__V1__PodSandboxMetadata *m, struct pod_spec *spec,
			 struct hw_err *e)
{
	if (!m)
		return err_text(e, -EINVAL, "config.metadata is missing");
	spec->name = str_copy(m->name);
	spec->namespace = str_copy(m->namespace_);
	spec->uid = str_copy(m->uid);
	spec->attempt = m->attempt;
	return 0;
}

static void read_dns(const Runtime__V1__DNSConfig *m, struct pod_spec *spec)
{
	spec->has_dns = m != NULL;
	if (!m)
		return;
	convert_strings(m->servers, m->n_servers, &spec->dns.servers);
	convert_strings(m->searches, m->n_searches, &spec->dns.searches);
	convert_strings(m->options, m->n_options, &spec->dns.options);
}

static int read_ports(const Runtime__V1__PodSandboxConfig *m, struct pod_spec *spec,
		      struct hw_err *e)
{
	static const char *const protocols[] = { "tcp", "udp", "sctp" };
	struct pod_port *ports = mem_new((m->n_port_mappings + 1) * sizeof(*ports));

	spec->ports.v = ports;
	for (size_t i = 0; i < m->n_port_mappings; i++) {
		const Runtime__V1__PortMapping *port = m->port_mappings[i];

		if ((size_t)port->protocol >= ARRAY_SIZE(protocols))
			return err_text(e, -EINVAL, "port_mappings[%zu].protocol: unknown value %d",
					i, (int)port->protocol);
		ports[spec->ports.n++] = (struct pod_port){
			.protocol = str_copy(protocols[port->protocol]),
			.container_port = port->container_port,
			.host_port = port->host_port,
			.host_ip = str_copy(port->host_ip),
		};
	}
	return 0;
}

/* The message has no map, so equal messages have equal bytes. Return: allocated */
static char *hash_security(const Runtime__V1__LinuxSandboxSecurityContext *m)
{
	size_t size = protobuf_c_message_get_packed_size(&m->base);
	autofree uint8_t *bytes = mem_new(size + 1);
	char hex[SECURITY_DIGITS + 1];
	autofree char *text = NULL;

	protobuf_c_message_pack(&m->base, bytes);
	text = base64_encode(bytes, size);
	hash_hex(text, SECURITY_DIGITS, hex);
	return str_copy(hex);
}

static int read_linux(const Runtime__V1__LinuxPodSandboxConfig *m, struct pod_spec *spec,
		      struct hw_err *e)
{
	int r = 0;

	if (!m)
		return 0;
	spec->cgroup_parent = str_copy(m->cgroup_parent);
	convert_map(CONVERT_MAP(m, sysctls), &spec->sysctls);
	if (m->security_context) {
		convert_namespaces(m->security_context->namespace_options, &spec->namespaces);
		spec->privileged = m->security_context->privileged;
		spec->security = hash_security(m->security_context);
		convert_selinux(m->security_context->selinux_options, &spec->selinux);
	}
	spec->has_resources = m->resources != NULL;
	if (m->resources)
		r = convert_resources(m->resources, "linux.resources", &spec->resources, e);
	spec->has_overhead = m->overhead != NULL;
	if (r == 0 && m->overhead)
		r = convert_resources(m->overhead, "linux.overhead", &spec->overhead, e);
	return r;
}

static int read_spec(const Runtime__V1__PodSandboxConfig *m, const char *handler,
		     struct pod_spec **ret_spec, struct hw_err *e)
{
	AUTO(shared_unref) struct pod_spec *spec = pod_spec_new();
	int r;

	if (!m)
		return err_text(e, -EINVAL, "config is missing");
	if (m->windows)
		return err_text(e, -EINVAL, "config.windows: this node runs Linux");
	spec->handler = str_copy(handler);
	spec->hostname = str_copy(m->hostname);
	spec->log_directory = str_copy(m->log_directory);
	convert_map(CONVERT_MAP(m, labels), &spec->labels);
	convert_map(CONVERT_MAP(m, annotations), &spec->annotations);
	read_dns(m->dns_config, spec);
	r = read_metadata(m->metadata, spec, e);
	if (r == 0)
		r = read_ports(m, spec, e);
	if (r == 0)
		r = read_linux(m->linux, spec, e);
	if (r == 0)
		r = pod_spec_seal(spec, e);
	if (r == 0)
		*ret_spec = take_ptr(spec);
	return r;
}

/* ---- operations --------------------------------------------------------------------- */

int serve_run_pod_sandbox(const void *ctx, struct rpc_call *call, const ProtobufCMessage *message,
			  struct hw_err *e)
{
	const Runtime__V1__RunPodSandboxRequest *request = (const void *)message;
	Runtime__V1__RunPodSandboxResponse response = RUNTIME__V1__RUN_POD_SANDBOX_RESPONSE__INIT;
	const struct runtime_service *s = ctx;
	AUTO(shared_unref) struct pod_spec *spec = NULL;
	char id[POD_ID];
	int r;

	r = read_spec(request->config, request->runtime_handler, &spec, e);
	if (r < 0)
		return r;
	r = pods_create(s->pods, spec, rpc_deadline(call), id, e);
	if (r < 0)
		return r;
	response.pod_sandbox_id = id;
	return api_send(call, &response.base, e);
}

static int check_id(const char *id, struct hw_err *e)
{
	return *id ? 0 : err_text(e, -EINVAL, "pod_sandbox_id is missing");
}

int serve_stop_pod_sandbox(const void *ctx, struct rpc_call *call, const ProtobufCMessage *message,
			   struct hw_err *e)
{
	Runtime__V1__StopPodSandboxResponse response = RUNTIME__V1__STOP_POD_SANDBOX_RESPONSE__INIT;
	const char *id = ((const Runtime__V1__StopPodSandboxRequest *)message)->pod_sandbox_id;
	const struct runtime_service *s = ctx;
	int r;

	r = check_id(id, e);
	if (r == 0)
		r = pods_stop(s->pods, id, rpc_deadline(call), e);
	return r < 0 ? r : api_send(call, &response.base, e);
}

int serve_remove_pod_sandbox(const void *ctx, struct rpc_call *call,
			     const ProtobufCMessage *message, struct hw_err *e)
{
	Runtime__V1__RemovePodSandboxResponse response =
		RUNTIME__V1__REMOVE_POD_SANDBOX_RESPONSE__INIT;
	const char *id = ((const Runtime__V1__RemovePodSandboxRequest *)message)->pod_sandbox_id;
	const struct runtime_service *s = ctx;
	int r;

	r = check_id(id, e);
	if (r == 0)
		r = pods_remove(s->pods, id, 0, rpc_deadline(call), e);
	return r < 0 ? r : api_send(call, &response.base, e);
}

int serve_update_pod_sandbox_resources(const void *ctx, struct rpc_call *call,
				       const ProtobufCMessage *message, struct hw_err *e)
{
	const Runtime__V1__UpdatePodSandboxResourcesRequest *request = (const void *)message;
	Runtime__V1__UpdatePodSandboxResourcesResponse response =
		RUNTIME__V1__UPDATE_POD_SANDBOX_RESOURCES_RESPONSE__INIT;
	AUTO(resources_done) struct oci_resources resources = { 0 }, overhead = { 0 };
	const struct runtime_service *s = ctx;
	int r;

	r = check_id(request->pod_sandbox_id, e);
	if (r == 0 && request->resources)
		r = convert_resources(request->resources, "resources", &resources, e);
	if (r == 0 && request->overhead)
		r = convert_resources(request->overhead, "overhead", &overhead, e);
	if (r == 0)
		r = pods_update(s->pods, request->pod_sandbox_id, &resources, &overhead,
				rpc_deadline(call), e);
	return r < 0 ? r : api_send(call, &response.base, e);
}

/* ---- pods as messages --------------------------------------------------------------- */

static Runtime__V1__PodSandboxState state_of(const struct pod_view *pod)
{
	return pod->state == POD_READY ? RUNTIME__V1__POD_SANDBOX_STATE__SANDBOX_READY
				       : RUNTIME__V1__POD_SANDBOX_STATE__SANDBOX_NOTREADY;
}

Runtime__V1__PodSandboxMetadata *message_pod_metadata(struct arena *a, const struct pod_spec *spec)
{
	Runtime__V1__PodSandboxMetadata *m = arena_new(a, sizeof(*m));

	runtime__v1__pod_sandbox_metadata__init(m);
	m->name = spec->name;
	m->namespace_ = spec->namespace;
	m->uid = spec->uid;
	m->attempt = spec->attempt;
	return m;
}

static Runtime__V1__PodSandbox *make_sandbox(struct arena *a, const struct pod_view *pod)
{
	Runtime__V1__PodSandbox *m = arena_new(a, sizeof(*m));

	runtime__v1__pod_sandbox__init(m);
	m->id = no_const(pod->o.id);
	m->metadata = message_pod_metadata(a, pod->spec);
	m->state = state_of(pod);
	m->created_at = pod->created_at;
	m->n_labels = pod->spec->labels.n;
	m->labels = convert_entries(a, &runtime__v1__pod_sandbox__labels_entry__descriptor,
				    &pod->spec->labels);
	m->n_annotations = pod->spec->annotations.n;
	m->annotations =
		convert_entries(a, &runtime__v1__pod_sandbox__annotations_entry__descriptor,
				&pod->spec->annotations);
	m->runtime_handler = pod->spec->handler;
	return m;
}

static Runtime__V1__PodSandboxNetworkStatus *make_network(struct arena *a,
							  const struct pod_view *pod)
{
	Runtime__V1__PodSandboxNetworkStatus *m = arena_new(a, sizeof(*m));
	const struct hw_strings *ips = &pod->network->ips;

	runtime__v1__pod_sandbox_network_status__init(m);
	if (ips->n == 0)
		return m;
	m->ip = ips->v[0];
	m->additional_ips = arena_new(a, ips->n * sizeof(Runtime__V1__PodIP *));
	for (size_t i = 1; i < ips->n; i++) {
		Runtime__V1__PodIP *ip = arena_new(a, sizeof(*ip));

		runtime__v1__pod_ip__init(ip);
		ip->ip = ips->v[i];
		m->additional_ips[m->n_additional_ips++] = ip;
	}
	return m;
}

static Runtime__V1__LinuxPodSandboxStatus *make_linux(struct arena *a, const struct pod_spec *spec)
{
	Runtime__V1__LinuxPodSandboxStatus *m = arena_new(a, sizeof(*m));
	Runtime__V1__NamespaceOption *options = arena_new(a, sizeof(*options));
	const struct pod_namespaces *n = &spec->namespaces;

	runtime__v1__linux_pod_sandbox_status__init(m);
	runtime__v1__namespace_option__init(options);
	options->network = (Runtime__V1__NamespaceMode)n->network;
	options->pid = (Runtime__V1__NamespaceMode)n->pid;
	options->ipc = (Runtime__V1__NamespaceMode)n->ipc;
	if (!str_empty(n->target))
		options->target_id = n->target;
	if (n->has_user) {
		options->userns_options = arena_new(a, sizeof(*options->userns_options));
		runtime__v1__user_namespace__init(options->userns_options);
		options->userns_options->mode = (Runtime__V1__NamespaceMode)n->user;
		options->userns_options->n_uids =
			convert_make_mappings(a, &n->uids, &options->userns_options->uids);
		options->userns_options->n_gids =
			convert_make_mappings(a, &n->gids, &options->userns_options->gids);
	}
	m->namespaces = arena_new(a, sizeof(*m->namespaces));
	runtime__v1__namespace__init(m->namespaces);
	m->namespaces->options = options;
	return m;
}

Runtime__V1__PodSandboxStatus *message_pod_status(struct arena *a, const struct pod_view *pod)
{
	Runtime__V1__PodSandboxStatus *m = arena_new(a, sizeof(*m));

	runtime__v1__pod_sandbox_status__init(m);
	m->id = no_const(pod->o.id);
	m->metadata = message_pod_metadata(a, pod->spec);
	m->state = state_of(pod);
	m->created_at = pod->created_at;
	m->network = make_network(a, pod);
	m->linux = make_linux(a, pod->spec);
	m->n_labels = pod->spec->labels.n;
	m->labels = convert_entries(a, &runtime__v1__pod_sandbox_status__labels_entry__descriptor,
				    &pod->spec->labels);
	m->n_annotations = pod->spec->annotations.n;
	m->annotations =
		convert_entries(a, &runtime__v1__pod_sandbox_status__annotations_entry__descriptor,
				&pod->spec->annotations);
	m->runtime_handler = pod->spec->handler;
	return m;
}

/* ---- PodSandboxStatus --------------------------------------------------------------- */

static void add_namespace(struct value *list, const char *type, const char *path)
{
	struct value *entry = value_new_object();

	value_set(entry, "type", value_new_string(type));
	if (path)
		value_set(entry, "path", value_new_string(path));
	value_append(list, entry);
}

/* The namespaces in the form of an OCI runtime specification, where tools look for them. */
static struct value *make_runtime_spec(struct pods *pods, const struct pod_view *pod)
{
	static const struct {
		enum pod_namespace kind;
		const char *type;
	} types[] = {
		{ POD_NETWORK, "network" }, { POD_IPC, "ipc" },	  { POD_UTS, "uts" },
		{ POD_PID, "pid" },	    { POD_USER, "user" },
	};
	struct value *spec = value_new_object(), *linux_part = value_new_object();
	struct value *list = value_new_array();

	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		autofree char *path = pods_namespace(pods, pod, types[i].kind);

		if (path)
			add_namespace(list, types[i].type, path);
	}
	value_set(linux_part, "namespaces", list);
	value_set(linux_part, "cgroupsPath", value_new_string(pod->cgroup));
	value_set(spec, "hostname", value_new_string(str_or(pod->spec->hostname, "")));
	value_set(spec, "linux", linux_part);
	return spec;
}

static struct value *make_cni_results(const struct pod_view *pod)
{
	const struct pod_attachment *a = pod->network->attachments.v;
	struct value *results = value_new_object();

	for (size_t i = 0; i < pod->network->attachments.n; i++)
		if (!str_empty(a[i].result))
			value_set(results, a[i].ifname, value_literal(a[i].result));
	return results;
}

static char *format_info(struct pods *pods, const struct pod_view *pod)
{
	AUTO(value_free) struct value *info = value_new_object();
	autofree char *netns = pods_namespace(pods, pod, POD_NETWORK);

	value_set(info, "pid", value_new_int(pod->pid));
	value_set(info, "state", value_new_string(pod_state_name(pod->state)));
	value_set(info, "message", value_new_string(pod->message));
	value_set(info, "netns", value_new_string(str_or(netns, "")));
	value_set(info, "runtimeHandler", value_new_string(str_or(pod->spec->handler, "")));
	value_set(info, "runtimeSpec", make_runtime_spec(pods, pod));
	value_set(info, "cniResult", make_cni_results(pod));
	value_set(info, "config", value_literal(pod->spec->text));
	value_set(info, "resources", value_literal(pod->resources->text));
	value_set(info, "overhead", value_literal(pod->overhead->text));
	return value_format(info, 0);
}

static void set_containers(struct arena *a, const struct containers_view *view, const char *pod,
			   Runtime__V1__PodSandboxStatusResponse *response)
{
	response->containers_statuses =
		arena_new(a, view->n * sizeof(Runtime__V1__ContainerStatus *));
	for (size_t i = 0; i < view->n; i++)
		if (str_equal(view->containers[i]->pod, pod) &&
		    message_container_is_listed(view->containers[i]))
			response->containers_statuses[response->n_containers_statuses++] =
				message_container_status(a, view->containers[i]);
}

int serve_pod_sandbox_status(const void *ctx, struct rpc_call *call,
			     const ProtobufCMessage *message, struct hw_err *e)
{
	const Runtime__V1__PodSandboxStatusRequest *request = (const void *)message;
	Runtime__V1__PodSandboxStatusResponse response =
		RUNTIME__V1__POD_SANDBOX_STATUS_RESPONSE__INIT;
	Runtime__V1__PodSandboxStatusResponse__InfoEntry info =
		RUNTIME__V1__POD_SANDBOX_STATUS_RESPONSE__INFO_ENTRY__INIT;
	Runtime__V1__PodSandboxStatusResponse__InfoEntry *info_list[] = { &info };
	const struct runtime_service *s = ctx;
	AUTO(shared_unref) const struct containers_view *containers = containers_view(s->pods);
	AUTO(shared_unref) const struct pods_view *view = pods_view(s->pods);
	AUTO(arena_done) struct arena arena = { 0 };
	autofree char *text = NULL;
	const struct pod_view *pod;
	int r;

	r = check_id(request->pod_sandbox_id, e);
	if (r < 0)
		return r;
	pod = pods_view_find(view, request->pod_sandbox_id);
	if (!pod || !pod->spec)
		return err_text(e, -ENODATA, "no pod sandbox %.80s", request->pod_sandbox_id);
	if (request->verbose) {
		text = format_info(s->pods, pod);
		info.key = no_const("info");
		info.value = text;
		response.n_info = ARRAY_SIZE(info_list);
		response.info = info_list;
	}
	response.status = message_pod_status(&arena, pod);
	set_containers(&arena, containers, pod->o.id, &response);
	response.timestamp = time_real();
	return api_send(call, &response.base, e);
}

/* ---- lists -------------------------------------------------------------------------- */

static bool matches(const struct pod_view *pod, const Runtime__V1__PodSandboxFilter *filter)
{
	if (!pod->spec)
		return false;
	if (!filter)
		return true;
	return (!filter->state || filter->state->state == state_of(pod)) &&
	       convert_map_contains(&pod->spec->labels, CONVERT_MAP(filter, label_selector));
}

/* Return: the number of items */
static size_t make_items(struct arena *a, const struct pods_view *view,
			 const Runtime__V1__PodSandboxFilter *filter,
			 Runtime__V1__PodSandbox ***ret_items)
{
	bool by_id = filter && *filter->id;
	const struct pod_view *one = by_id ? pods_view_find(view, filter->id) : NULL;
	const struct pod_view *const *all = by_id ? &one : view->pods;
	size_t total = by_id ? one != NULL : view->n, n = 0;

	*ret_items = arena_new(a, total * sizeof(Runtime__V1__PodSandbox *));
	for (size_t i = 0; i < total; i++)
		if (matches(all[i], filter))
			(*ret_items)[n++] = make_sandbox(a, all[i]);
	return n;
}

int serve_list_pod_sandbox(const void *ctx, struct rpc_call *call, const ProtobufCMessage *message,
			   struct hw_err *e)
{
	const Runtime__V1__ListPodSandboxRequest *request = (const void *)message;
	Runtime__V1__ListPodSandboxResponse response = RUNTIME__V1__LIST_POD_SANDBOX_RESPONSE__INIT;
	const struct runtime_service *s = ctx;
	AUTO(shared_unref) const struct pods_view *view = pods_view(s->pods);
	AUTO(arena_done) struct arena arena = { 0 };

	response.n_items = make_items(&arena, view, request->filter, &response.items);
	return api_send(call, &response.base, e);
}

int serve_stream_pod_sandboxes(const void *ctx, struct rpc_call *call,
			       const ProtobufCMessage *message, struct hw_err *e)
{
	const Runtime__V1__StreamPodSandboxesRequest *request = (const void *)message;
	const struct runtime_service *s = ctx;
	AUTO(shared_unref) const struct pods_view *view = pods_view(s->pods);
	AUTO(arena_done) struct arena arena = { 0 };
	Runtime__V1__PodSandbox **items;
	size_t n;
	int r = 0;

	n = make_items(&arena, view, request->filter, &items);
	for (size_t i = 0; r == 0 && i < n; i += PODS_PER_MESSAGE) {
		Runtime__V1__StreamPodSandboxesResponse response =
			RUNTIME__V1__STREAM_POD_SANDBOXES_RESPONSE__INIT;

		response.n_pod_sandboxes = n - i < PODS_PER_MESSAGE ? n - i : PODS_PER_MESSAGE;
		response.pod_sandboxes = items + i;
		r = api_send(call, &response.base, e);
	}
	return r;
}
