/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cri/service/container.c - containers in runtime.v1.RuntimeService
 *
 * What:  CreateContainer, StartContainer, StopContainer, RemoveContainer, ListContainers,
 *        StreamContainers, ContainerStatus, UpdateContainerResources, ReopenContainerLog, ExecSync.
 * Rules: stop and remove succeed if the container does not exist. A container that is being created
 *        is not listed.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "api/call.h"
#include "api/cri-v1.pb-c.h"
#include "base/arena.h"
#include "base/json/value.h"
#include "base/str.h"
#include "base/time.h"
#include "cri/service/convert.h"
#include "cri/service/messages.h"
#include "cri/service/services.h"
#include "cri/service/signal.h"
#include "oci/spec/process.h"
#include "pod/containers.h"

#define CONTAINERS_PER_MESSAGE 200		   /* in responses of StreamContainers */
#define EXEC_RESPONSE_MAX      ((16 << 20) - 4096) /* what a kubelet receives */
#define SECURITY	       "linux.security_context."

/* ---- request to spec ---------------------------------------------------------------- */

static int read_env(const Runtime__V1__ContainerConfig *m, struct container_spec *spec,
		    struct hw_err *e)
{
	spec->env = (struct hw_map){ mem_new((m->n_envs + 1) * sizeof(char *)),
				     mem_new((m->n_envs + 1) * sizeof(char *)), 0 };
	for (size_t i = 0; i < m->n_envs; i++) {
		const ProtobufCBinaryData *value = &m->envs[i]->value;
		int r;

		r = spec_check_env(m->envs[i]->key, value->data, value->len, e);
		if (r < 0)
			return err_ctx(e, "envs[%zu]", i);
		spec->env.keys[spec->env.n] = str_copy(m->envs[i]->key);
		spec->env.values[spec->env.n++] = str_ncopy((const char *)value->data, value->len);
	}
	return 0;
}

static void read_mounts(const Runtime__V1__ContainerConfig *m, struct container_spec *spec)
{
	struct container_mount *mounts = mem_new((m->n_mounts + 1) * sizeof(*mounts));

	spec->mounts = (struct hw_list){ mounts, m->n_mounts };
	for (size_t i = 0; i < m->n_mounts; i++) {
		const Runtime__V1__Mount *from = m->mounts[i];

		mounts[i] = (struct container_mount){
			.container_path = str_copy(from->container_path),
			.host_path = str_copy(from->host_path),
			.readonly = from->readonly,
			.recursive_read_only = from->recursive_read_only,
			.selinux_relabel = from->selinux_relabel,
			.propagation = (int)from->propagation,
			.uid_mappings = convert_mappings(from->uidmappings, from->n_uidmappings),
			.gid_mappings = convert_mappings(from->gidmappings, from->n_gidmappings),
			.image = str_copy(from->image ? from->image->image : ""),
			.user_image =
				str_copy(from->image ? from->image->user_specified_image : ""),
			.image_sub_path = str_copy(from->image_sub_path),
		};
		convert_strings(from->mount_options, from->n_mount_options, &mounts[i].options);
	}
}

static void read_devices(const Runtime__V1__ContainerConfig *m, struct container_spec *spec)
{
	struct container_device *devices = mem_new((m->n_devices + 1) * sizeof(*devices));

	spec->devices = (struct hw_list){ devices, m->n_devices };
	for (size_t i = 0; i < m->n_devices; i++)
		devices[i] = (struct container_device){
			.container_path = str_copy(m->devices[i]->container_path),
			.host_path = str_copy(m->devices[i]->host_path),
			.permissions = str_copy(m->devices[i]->permissions),
		};
	for (size_t i = 0; i < m->n_cdi_devices; i++)
		strings_add(&spec->cdi_devices, m->cdi_devices[i]->name);
}

static void read_capabilities(const Runtime__V1__Capability *m, struct container_security *s)
{
	if (!m)
		return;
	convert_strings(m->add_capabilities, m->n_add_capabilities, &s->add_capabilities);
	convert_strings(m->drop_capabilities, m->n_drop_capabilities, &s->drop_capabilities);
	convert_strings(m->add_ambient_capabilities, m->n_add_ambient_capabilities,
			&s->ambient_capabilities);
}

static int read_groups(const Runtime__V1__LinuxContainerSecurityContext *m,
		       struct container_security *s, struct hw_err *e)
{
	uint32_t *groups = mem_new((m->n_supplemental_groups + 1) * sizeof(*groups));

	s->groups = (struct hw_list){ groups, m->n_supplemental_groups };
	for (size_t i = 0; i < s->groups.n; i++) {
		if (m->supplemental_groups[i] < 0 || m->supplemental_groups[i] >= UINT32_MAX)
			return err_text(e, -EINVAL,
					SECURITY "supplemental_groups[%zu]: %" PRId64
						 " is not a valid ID",
					i, m->supplemental_groups[i]);
		groups[i] = (uint32_t)m->supplemental_groups[i];
	}
	return 0;
}

/* The new field, or the deprecated one: "", "unconfined", "runtime/default" or "localhost/REF". */
static int read_profile(const Runtime__V1__SecurityProfile *m, const char *deprecated,
			const char *field, bool *ret_has, struct container_profile *ret,
			struct hw_err *e)
{
	*ret_has = m || *deprecated;
	if (m) {
		ret->type = (int)m->profile_type;
		ret->ref = str_copy(m->localhost_ref);
	} else if (str_equal(deprecated, "runtime/default") ||
		   str_equal(deprecated, "docker/default")) {
		ret->type = PROFILE_RUNTIME_DEFAULT;
	} else if (str_starts(deprecated, "localhost/")) {
		ret->type = PROFILE_LOCALHOST;
		ret->ref = str_copy(deprecated + strlen("localhost/"));
	} else if (!*deprecated || str_equal(deprecated, "unconfined")) {
		ret->type = PROFILE_UNCONFINED;
	} else {
		return err_text(e, -EINVAL, "%s: unknown profile \"%.200s\"", field, deprecated);
	}
	return 0;
}

static int read_security(const Runtime__V1__LinuxContainerSecurityContext *m,
			 struct container_security *s, struct hw_err *e)
{
	int r;

	read_capabilities(m->capabilities, s);
	s->privileged = m->privileged;
	convert_namespaces(m->namespace_options, &s->namespaces);
	convert_selinux(m->selinux_options, &s->selinux);
	s->has_user = m->run_as_user != NULL;
	s->user = s->has_user ? m->run_as_user->value : 0;
	s->has_group = m->run_as_group != NULL;
	s->group = s->has_group ? m->run_as_group->value : 0;
	s->username = str_copy(m->run_as_username);
	s->readonly_rootfs = m->readonly_rootfs;
	s->groups_policy = (int)m->supplemental_groups_policy;
	s->no_new_privs = m->no_new_privs;
	convert_strings(m->masked_paths, m->n_masked_paths, &s->masked_paths);
	convert_strings(m->readonly_paths, m->n_readonly_paths, &s->readonly_paths);
	r = read_groups(m, s, e);
	if (r == 0)
		r = read_profile(m->seccomp, convert_deprecated(&m->base, "seccomp_profile_path"),
				 SECURITY "seccomp_profile_path", &s->has_seccomp, &s->seccomp, e);
	if (r == 0)
		r = read_profile(m->apparmor, convert_deprecated(&m->base, "apparmor_profile"),
				 SECURITY "apparmor_profile", &s->has_apparmor, &s->apparmor, e);
	return r;
}

static int read_linux(const Runtime__V1__LinuxContainerConfig *m, struct container_spec *spec,
		      struct hw_err *e)
{
	int r = 0;

	if (!m)
		return 0;
	spec->has_resources = m->resources != NULL;
	if (m->resources)
		r = convert_resources(m->resources, "linux.resources", &spec->resources, e);
	if (r == 0 && m->security_context)
		r = read_security(m->security_context, &spec->security, e);
	return r;
}

static int read_spec(const Runtime__V1__ContainerConfig *m, struct container_spec **ret_spec,
		     struct hw_err *e)
{
	AUTO(shared_unref) struct container_spec *spec = container_spec_new();
	int r;

	if (!m)
		return err_text(e, -EINVAL, "config is missing");
	if (!m->metadata)
		return err_text(e, -EINVAL, "config.metadata is missing");
	if (!m->image)
		return err_text(e, -EINVAL, "config.image is missing");
	if (m->windows)
		return err_text(e, -EINVAL, "config.windows: this node runs Linux");
	spec->name = str_copy(m->metadata->name);
	spec->attempt = m->metadata->attempt;
	spec->image = str_copy(m->image->image);
	spec->user_image = str_copy(m->image->user_specified_image);
	convert_strings(m->command, m->n_command, &spec->command);
	convert_strings(m->args, m->n_args, &spec->args);
	spec->working_dir = str_copy(m->working_dir);
	read_mounts(m, spec);
	read_devices(m, spec);
	convert_map(CONVERT_MAP(m, labels), &spec->labels);
	convert_map(CONVERT_MAP(m, annotations), &spec->annotations);
	spec->log_path = str_copy(m->log_path);
	spec->stdin = m->stdin;
	spec->stdin_once = m->stdin_once;
	spec->tty = m->tty;
	spec->stop_signal = signal_from_cri((int)m->stop_signal);
	if (spec->stop_signal < 0)
		return err_text(e, -EINVAL, "stop_signal: unknown value %d", (int)m->stop_signal);
	r = read_env(m, spec, e);
	if (r == 0)
		r = read_linux(m->linux, spec, e);
	if (r == 0)
		r = container_spec_seal(spec, e);
	if (r == 0)
		*ret_spec = take_ptr(spec);
	return r;
}

/* ---- operations --------------------------------------------------------------------- */

static int check_id(const char *id, struct hw_err *e)
{
	return *id ? 0 : err_text(e, -EINVAL, "container_id is missing");
}

int serve_create_container(const void *ctx, struct rpc_call *call, const ProtobufCMessage *message,
			   struct hw_err *e)
{
	const Runtime__V1__CreateContainerRequest *request = (const void *)message;
	Runtime__V1__CreateContainerResponse response =
		RUNTIME__V1__CREATE_CONTAINER_RESPONSE__INIT;
	const struct runtime_service *s = ctx;
	AUTO(shared_unref) struct container_spec *spec = NULL;
	char id[OBJECT_ID];
	int r;

	if (!*request->pod_sandbox_id)
		return err_text(e, -EINVAL, "pod_sandbox_id is missing");
	r = read_spec(request->config, &spec, e);
	if (r < 0)
		return r;
	r = containers_create(s->pods, request->pod_sandbox_id, spec, rpc_deadline(call), id, e);
	if (r < 0)
		return r;
	response.container_id = id;
	return api_send(call, &response.base, e);
}

int serve_start_container(const void *ctx, struct rpc_call *call, const ProtobufCMessage *message,
			  struct hw_err *e)
{
	Runtime__V1__StartContainerResponse response = RUNTIME__V1__START_CONTAINER_RESPONSE__INIT;
	const char *id = ((const Runtime__V1__StartContainerRequest *)message)->container_id;
	const struct runtime_service *s = ctx;
	int r;

	r = check_id(id, e);
	if (r == 0)
		r = containers_start(s->pods, id, rpc_deadline(call), e);
	return r < 0 ? r : api_send(call, &response.base, e);
}

int serve_stop_container(const void *ctx, struct rpc_call *call, const ProtobufCMessage *message,
			 struct hw_err *e)
{
	const Runtime__V1__StopContainerRequest *request = (const void *)message;
	Runtime__V1__StopContainerResponse response = RUNTIME__V1__STOP_CONTAINER_RESPONSE__INIT;
	const struct runtime_service *s = ctx;
	int r;

	r = check_id(request->container_id, e);
	if (r == 0)
		r = containers_stop(s->pods, request->container_id, request->timeout,
				    rpc_deadline(call), e);
	return r < 0 ? r : api_send(call, &response.base, e);
}

int serve_remove_container(const void *ctx, struct rpc_call *call, const ProtobufCMessage *message,
			   struct hw_err *e)
{
	Runtime__V1__RemoveContainerResponse response =
		RUNTIME__V1__REMOVE_CONTAINER_RESPONSE__INIT;
	const char *id = ((const Runtime__V1__RemoveContainerRequest *)message)->container_id;
	const struct runtime_service *s = ctx;
	int r;

	r = check_id(id, e);
	if (r == 0)
		r = containers_remove(s->pods, id, 0, rpc_deadline(call), e);
	return r < 0 ? r : api_send(call, &response.base, e);
}

int serve_update_container_resources(const void *ctx, struct rpc_call *call,
				     const ProtobufCMessage *message, struct hw_err *e)
{
	const Runtime__V1__UpdateContainerResourcesRequest *request = (const void *)message;
	Runtime__V1__UpdateContainerResourcesResponse response =
		RUNTIME__V1__UPDATE_CONTAINER_RESOURCES_RESPONSE__INIT;
	AUTO(resources_done) struct oci_resources update = { 0 };
	const struct runtime_service *s = ctx;
	int r;

	r = check_id(request->container_id, e);
	if (r == 0 && request->windows)
		r = err_text(e, -EINVAL, "windows: this node runs Linux");
	if (r == 0 && request->linux)
		r = convert_resources(request->linux, "linux", &update, e);
	if (r == 0)
		r = containers_update(s->pods, request->container_id, &update, rpc_deadline(call),
				      e);
	return r < 0 ? r : api_send(call, &response.base, e);
}

int serve_reopen_container_log(const void *ctx, struct rpc_call *call,
			       const ProtobufCMessage *message, struct hw_err *e)
{
	Runtime__V1__ReopenContainerLogResponse response =
		RUNTIME__V1__REOPEN_CONTAINER_LOG_RESPONSE__INIT;
	const char *id = ((const Runtime__V1__ReopenContainerLogRequest *)message)->container_id;
	const struct runtime_service *s = ctx;
	int r;

	r = check_id(id, e);
	if (r == 0)
		r = containers_reopen_log(s->pods, id, rpc_deadline(call), e);
	return r < 0 ? r : api_send(call, &response.base, e);
}

/* Both outputs together must fit into a message. */
static void set_output(Runtime__V1__ExecSyncResponse *response, const struct exec_result *result)
{
	size_t room = EXEC_RESPONSE_MAX, out = result->output.len, err = result->errors.len;

	if (out + err > room) {
		out = out < room / 2 ? out : room - (err < room / 2 ? err : room / 2);
		err = room - out;
	}
	response->stdout = (ProtobufCBinaryData){ out, (uint8_t *)result->output.data };
	response->stderr = (ProtobufCBinaryData){ err, (uint8_t *)result->errors.data };
	response->exit_code = result->code;
}

int serve_exec_sync(const void *ctx, struct rpc_call *call, const ProtobufCMessage *message,
		    struct hw_err *e)
{
	const Runtime__V1__ExecSyncRequest *request = (const void *)message;
	Runtime__V1__ExecSyncResponse response = RUNTIME__V1__EXEC_SYNC_RESPONSE__INIT;
	AUTO(exec_result_done) struct exec_result result = { 0 };
	const struct runtime_service *s = ctx;
	struct hw_strings args = { request->cmd, request->n_cmd };
	int64_t deadline = rpc_deadline(call);
	int r;

	r = check_id(request->container_id, e);
	if (r < 0)
		return r;
	if (request->timeout > 0 && request->timeout < INT32_MAX / 1000)
		deadline = time_earlier(deadline, time_deadline((int)request->timeout * 1000));
	r = containers_exec(s->pods, request->container_id, &args, rpc_cancel_fd(call), deadline,
			    &result, e);
	if (r == -ETIMEDOUT)
		return err_text(e, r, "command timed out: timeout %" PRId64 "s exceeded",
				request->timeout);
	if (r < 0)
		return r;
	set_output(&response, &result);
	return api_send(call, &response.base, e);
}

/* ---- containers as messages ----------------------------------------------------------- */

static Runtime__V1__ContainerState state_of(const struct container_view *c)
{
	switch (c->status.state) {
	case CONTAINER_CREATED:
		return RUNTIME__V1__CONTAINER_STATE__CONTAINER_CREATED;
	case CONTAINER_RUNNING:
		return RUNTIME__V1__CONTAINER_STATE__CONTAINER_RUNNING;
	case CONTAINER_EXITED:
		return RUNTIME__V1__CONTAINER_STATE__CONTAINER_EXITED;
	default:
		return c->status.finished_at ? RUNTIME__V1__CONTAINER_STATE__CONTAINER_EXITED
					     : RUNTIME__V1__CONTAINER_STATE__CONTAINER_UNKNOWN;
	}
}

bool message_container_is_listed(const struct container_view *c)
{
	return c->spec && c->status.state != CONTAINER_MAKING;
}

Runtime__V1__ContainerMetadata *message_container_metadata(struct arena *a,
							   const struct container_spec *spec)
{
	Runtime__V1__ContainerMetadata *m = arena_new(a, sizeof(*m));

	runtime__v1__container_metadata__init(m);
	m->name = spec->name;
	m->attempt = spec->attempt;
	return m;
}

/* The name that the user has given, where it is known: kubelet passes the ID. */
static Runtime__V1__ImageSpec *make_image(struct arena *a, const struct container_spec *spec)
{
	Runtime__V1__ImageSpec *m = arena_new(a, sizeof(*m));

	runtime__v1__image_spec__init(m);
	m->image = str_empty(spec->user_image) ? spec->image : spec->user_image;
	m->user_specified_image = no_const(str_or(spec->user_image, ""));
	return m;
}

static Runtime__V1__Container *make_container(struct arena *a, const struct container_view *c)
{
	Runtime__V1__Container *m = arena_new(a, sizeof(*m));

	runtime__v1__container__init(m);
	m->id = no_const(c->o.id);
	m->pod_sandbox_id = no_const(c->pod);
	m->metadata = message_container_metadata(a, c->spec);
	m->image = make_image(a, c->spec);
	m->image_ref = c->image_ref;
	m->image_id = c->image_id;
	m->state = state_of(c);
	m->created_at = c->created_at;
	m->n_labels = c->spec->labels.n;
	m->labels = convert_entries(a, &runtime__v1__container__labels_entry__descriptor,
				    &c->spec->labels);
	m->n_annotations = c->spec->annotations.n;
	m->annotations = convert_entries(a, &runtime__v1__container__annotations_entry__descriptor,
					 &c->spec->annotations);
	return m;
}

static Runtime__V1__ImageSpec *make_mount_image(struct arena *a, const struct container_mount *from,
						const char *ref)
{
	Runtime__V1__ImageSpec *m = arena_new(a, sizeof(*m));

	runtime__v1__image_spec__init(m);
	m->image = from->image;
	m->user_specified_image = no_const(str_or(from->user_image, ""));
	m->image_ref = no_const(ref);
	return m;
}

/* The mounts of the request, as they were, with the digests of their images. */
static void set_mounts(struct arena *a, const struct container_view *c,
		       Runtime__V1__ContainerStatus *status)
{
	const struct container_spec *spec = c->spec;
	const struct container_mount *from = spec->mounts.v;
	size_t images = 0;

	status->n_mounts = spec->mounts.n;
	status->mounts = arena_new(a, spec->mounts.n * sizeof(Runtime__V1__Mount *));
	for (size_t i = 0; i < spec->mounts.n; i++) {
		Runtime__V1__Mount *m = arena_new(a, sizeof(*m));

		runtime__v1__mount__init(m);
		m->container_path = from[i].container_path;
		m->host_path = no_const(str_or(from[i].host_path, ""));
		m->readonly = from[i].readonly;
		m->recursive_read_only = from[i].recursive_read_only;
		m->selinux_relabel = from[i].selinux_relabel;
		m->propagation = (Runtime__V1__MountPropagation)from[i].propagation;
		m->n_uidmappings = convert_make_mappings(a, &from[i].uid_mappings, &m->uidmappings);
		m->n_gidmappings = convert_make_mappings(a, &from[i].gid_mappings, &m->gidmappings);
		if (!str_empty(from[i].image) && images < c->mount_refs.n)
			m->image = make_mount_image(a, &from[i], c->mount_refs.v[images++]);
		m->image_sub_path = no_const(str_or(from[i].image_sub_path, ""));
		m->n_mount_options = from[i].options.n;
		m->mount_options = from[i].options.v;
		status->mounts[i] = m;
	}
}

static Runtime__V1__ContainerUser *make_user(struct arena *a, const struct container_view *c)
{
	Runtime__V1__ContainerUser *m = arena_new(a, sizeof(*m));
	const uint32_t *groups = c->groups.v;

	runtime__v1__container_user__init(m);
	m->linux = arena_new(a, sizeof(*m->linux));
	runtime__v1__linux_container_user__init(m->linux);
	m->linux->uid = c->uid;
	m->linux->gid = c->gid;
	m->linux->n_supplemental_groups = c->groups.n;
	m->linux->supplemental_groups = arena_new(a, c->groups.n * sizeof(int64_t));
	for (size_t i = 0; i < c->groups.n; i++)
		m->linux->supplemental_groups[i] = groups[i];
	return m;
}

static Runtime__V1__ContainerResources *make_resources(struct arena *a,
						       const struct container_view *c)
{
	Runtime__V1__ContainerResources *m = arena_new(a, sizeof(*m));

	runtime__v1__container_resources__init(m);
	m->linux = convert_make_resources(a, &c->limits->resources);
	return m;
}

Runtime__V1__ContainerStatus *message_container_status(struct arena *a,
						       const struct container_view *c)
{
	Runtime__V1__ContainerStatus *m = arena_new(a, sizeof(*m));

	runtime__v1__container_status__init(m);
	m->id = no_const(c->o.id);
	m->metadata = message_container_metadata(a, c->spec);
	m->state = state_of(c);
	m->created_at = c->created_at;
	m->started_at = c->status.started_at;
	m->finished_at = c->status.finished_at;
	m->exit_code = c->status.exit_code;
	m->reason = no_const(c->status.reason);
	m->message = c->status.message;
	m->image = make_image(a, c->spec);
	m->image_ref = c->image_ref;
	m->image_id = c->image_id;
	m->n_labels = c->spec->labels.n;
	m->labels = convert_entries(a, &runtime__v1__container_status__labels_entry__descriptor,
				    &c->spec->labels);
	m->n_annotations = c->spec->annotations.n;
	m->annotations =
		convert_entries(a, &runtime__v1__container_status__annotations_entry__descriptor,
				&c->spec->annotations);
	set_mounts(a, c, m);
	m->log_path = c->log;
	m->resources = make_resources(a, c);
	m->user = make_user(a, c);
	m->stop_signal = (Runtime__V1__Signal)signal_to_cri(c->stop_signal);
	return m;
}

/* ---- ContainerStatus ---------------------------------------------------------------- */

static char *format_info(const struct container_view *c)
{
	AUTO(value_free) struct value *info = value_new_object();

	value_set(info, "sandboxID", value_new_string(c->pod));
	value_set(info, "pid", value_new_int(c->pid));
	value_set(info, "state", value_new_string(container_state_name(c->status.state)));
	value_set(info, "config", value_literal(c->spec->text));
	return value_format(info, 0);
}

int serve_container_status(const void *ctx, struct rpc_call *call, const ProtobufCMessage *message,
			   struct hw_err *e)
{
	const Runtime__V1__ContainerStatusRequest *request = (const void *)message;
	Runtime__V1__ContainerStatusResponse response =
		RUNTIME__V1__CONTAINER_STATUS_RESPONSE__INIT;
	Runtime__V1__ContainerStatusResponse__InfoEntry info =
		RUNTIME__V1__CONTAINER_STATUS_RESPONSE__INFO_ENTRY__INIT;
	Runtime__V1__ContainerStatusResponse__InfoEntry *info_list[] = { &info };
	const struct runtime_service *s = ctx;
	AUTO(shared_unref) const struct containers_view *view = containers_view(s->pods);
	AUTO(arena_done) struct arena arena = { 0 };
	autofree char *text = NULL;
	const struct container_view *c;
	int r;

	r = check_id(request->container_id, e);
	if (r < 0)
		return r;
	c = containers_view_find(view, request->container_id);
	if (!c || !message_container_is_listed(c))
		return err_text(e, -ENODATA, "no container %.80s", request->container_id);
	if (request->verbose) {
		text = format_info(c);
		info.key = no_const("info");
		info.value = text;
		response.n_info = ARRAY_SIZE(info_list);
		response.info = info_list;
	}
	response.status = message_container_status(&arena, c);
	return api_send(call, &response.base, e);
}

/* ---- lists -------------------------------------------------------------------------- */

static bool matches(const struct container_view *c, const Runtime__V1__ContainerFilter *filter)
{
	if (!message_container_is_listed(c))
		return false;
	if (!filter)
		return true;
	return (!filter->state || filter->state->state == state_of(c)) &&
	       str_starts(c->pod, filter->pod_sandbox_id) &&
	       convert_map_contains(&c->spec->labels, CONVERT_MAP(filter, label_selector));
}

/* Return: the number of items */
static size_t make_items(struct arena *a, const struct containers_view *view,
			 const Runtime__V1__ContainerFilter *filter,
			 Runtime__V1__Container ***ret_items)
{
	bool by_id = filter && *filter->id;
	const struct container_view *one = by_id ? containers_view_find(view, filter->id) : NULL;
	const struct container_view *const *all = by_id ? &one : view->containers;
	size_t total = by_id ? one != NULL : view->n, n = 0;

	*ret_items = arena_new(a, total * sizeof(Runtime__V1__Container *));
	for (size_t i = 0; i < total; i++)
		if (matches(all[i], filter))
			(*ret_items)[n++] = make_container(a, all[i]);
	return n;
}

int serve_list_containers(const void *ctx, struct rpc_call *call, const ProtobufCMessage *message,
			  struct hw_err *e)
{
	const Runtime__V1__ListContainersRequest *request = (const void *)message;
	Runtime__V1__ListContainersResponse response = RUNTIME__V1__LIST_CONTAINERS_RESPONSE__INIT;
	const struct runtime_service *s = ctx;
	AUTO(shared_unref) const struct containers_view *view = containers_view(s->pods);
	AUTO(arena_done) struct arena arena = { 0 };

	response.n_containers = make_items(&arena, view, request->filter, &response.containers);
	return api_send(call, &response.base, e);
}

int serve_stream_containers(const void *ctx, struct rpc_call *call, const ProtobufCMessage *message,
			    struct hw_err *e)
{
	const Runtime__V1__StreamContainersRequest *request = (const void *)message;
	const struct runtime_service *s = ctx;
	AUTO(shared_unref) const struct containers_view *view = containers_view(s->pods);
	AUTO(arena_done) struct arena arena = { 0 };
	Runtime__V1__Container **items;
	size_t n;
	int r = 0;

	n = make_items(&arena, view, request->filter, &items);
	for (size_t i = 0; r == 0 && i < n; i += CONTAINERS_PER_MESSAGE) {
		Runtime__V1__StreamContainersResponse response =
			RUNTIME__V1__STREAM_CONTAINERS_RESPONSE__INIT;

		response.n_containers =
			n - i < CONTAINERS_PER_MESSAGE ? n - i : CONTAINERS_PER_MESSAGE;
		response.containers = items + i;
		r = api_send(call, &response.base, e);
	}
	return r;
}
