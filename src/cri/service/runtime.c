/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cri/service/runtime.c - runtime.v1.RuntimeService
 *
 * What:  Version, Status, RuntimeConfig and UpdateRuntimeConfig. sandbox.c has the methods for pods,
 *        container.c those for containers, stats.c and container-metrics.c those for what they use.
 */
#include "api/call.h"
#include "api/cri-v1.pb-c.h"
#include "base/str.h"
#include "cri/service/convert.h"
#include "cri/service/executables.h"
#include "cri/service/services.h"
#include "pod/network/pod-cidr.h"
#include "rpc/grpc/status.h"

#define KUBELET_API "0.1.0" /* all runtimes return this version */

static int serve_version(const void *ctx, struct rpc_call *call, const ProtobufCMessage *request,
			 struct hw_err *e)
{
	Runtime__V1__VersionResponse response = RUNTIME__V1__VERSION_RESPONSE__INIT;

	(void)ctx;
	(void)request;
	response.version = no_const(KUBELET_API);
	response.runtime_name = no_const("hawser");
	response.runtime_version = no_const(HAWSER_VERSION);
	response.runtime_api_version = no_const("v1");
	return api_send(call, &response.base, e);
}

/* ---- Status ------------------------------------------------------------------------- */

/* critest reads stateDir and rootDir. */
static char *format_config_info(const struct config *c)
{
	AUTO(value_free) struct value *object = value_new_object();
	autofree char *keys = hw_field_encode(config_fields, c, 0);

	value_set(object, "stateDir", value_new_string(c->state));
	value_set(object, "rootDir", value_new_string(c->root));
	value_set(object, "file", value_new_string(c->file));
	value_set(object, "keys", value_literal(keys));
	return value_format(object, 0);
}

static char *format_network_info(const struct network_view *view)
{
	AUTO(value_free) struct value *object = value_new_object();

	value_set(object, "ready", value_new_bool(view->ready));
	value_set(object, "name", value_new_string(str_or(view->name, "")));
	value_set(object, "file", value_new_string(str_or(view->file, "")));
	value_set(object, "message", value_new_string(view->message));
	value_set(object, "warning", value_new_string(view->warning));
	return value_format(object, 0);
}

static void set_info_entry(Runtime__V1__StatusResponse__InfoEntry *entry, const char *key,
			   char *value)
{
	runtime__v1__status_response__info_entry__init(entry);
	entry->key = no_const(key);
	entry->value = value;
}

/* @message: why the condition is false; or, with @status, what an administrator should know; or NULL */
static void set_condition(Runtime__V1__RuntimeCondition *condition, const char *type, bool status,
			  const char *reason, char *message)
{
	runtime__v1__runtime_condition__init(condition);
	condition->type = no_const(type);
	condition->status = status;
	if (!message)
		return;
	condition->reason = no_const(reason);
	condition->message = message;
}

/* Return: NULL if there is nothing to say */
static char *describe_network(const struct network_view *view)
{
	if (!view->ready)
		return str_printf("Network plugin returns error: %s%s%s", view->message,
				  *view->warning ? "; invalid configuration: " : "", view->warning);
	if (*view->warning)
		return str_printf("invalid configuration: %s; using network \"%s\" of %s",
				  view->warning, view->name, view->file);
	return NULL;
}

/* The handlers that can be used. Return: their number */
static size_t make_handlers(struct arena *a, const struct oci_handlers *handlers, bool userns,
			    Runtime__V1__RuntimeHandler ***ret_list)
{
	Runtime__V1__RuntimeHandler **list =
		arena_new(a, handlers->n * sizeof(Runtime__V1__RuntimeHandler *));
	size_t n = 0;

	for (size_t i = 0; i < handlers->n; i++) {
		if (handlers->v[i].message)
			continue;
		list[n] = arena_new(a, sizeof(**list));
		runtime__v1__runtime_handler__init(list[n]);
		list[n]->name = handlers->v[i].name;
		list[n]->features = arena_new(a, sizeof(*list[n]->features));
		runtime__v1__runtime_handler_features__init(list[n]->features);
		list[n]->features->recursive_read_only_mounts = handlers->v[i].rro;
		list[n]->features->user_namespaces =
			userns && handlers->v[i].idmap != OCI_IDMAP_NONE;
		n++;
	}
	*ret_list = list;
	return n;
}

static int serve_status(const void *ctx, struct rpc_call *call, const ProtobufCMessage *request,
			struct hw_err *e)
{
	const struct runtime_service *s = ctx;
	AUTO(shared_unref) const struct network_view *view = network_watch_view(s->network);
	AUTO(shared_unref) const struct config *c = slot_get(s->config);
	Runtime__V1__StatusResponse response = RUNTIME__V1__STATUS_RESPONSE__INIT;
	Runtime__V1__StatusResponse__InfoEntry info[2];
	Runtime__V1__StatusResponse__InfoEntry *info_list[] = { &info[0], &info[1] };
	Runtime__V1__RuntimeFeatures features = RUNTIME__V1__RUNTIME_FEATURES__INIT;
	bool userns = !pods_no_userns(s->pods);
	Runtime__V1__RuntimeStatus status = RUNTIME__V1__RUNTIME_STATUS__INIT;
	Runtime__V1__RuntimeCondition conditions[2];
	Runtime__V1__RuntimeCondition *condition_list[] = { &conditions[0], &conditions[1] };
	autofree char *config_info = NULL, *network_info = NULL;
	autofree char *missing = NULL, *network = NULL;
	AUTO(arena_done) struct arena arena = { 0 };

	if (((const Runtime__V1__StatusRequest *)request)->verbose) {
		config_info = format_config_info(c);
		network_info = format_network_info(view);
		set_info_entry(&info[0], "config", config_info);
		set_info_entry(&info[1], "network", network_info);
		response.n_info = ARRAY_SIZE(info_list);
		response.info = info_list;
	}
	/* This runs on the loop. If a directory of PATH does not answer, no program can be started, either. */
	missing = executables_missing();
	if (!missing && s->handlers->v[0].message)
		missing = str_copy(s->handlers->v[0].message);
	network = describe_network(view);
	set_condition(&conditions[0], "RuntimeReady", !missing, "RuntimeNotReady", missing);
	set_condition(&conditions[1], "NetworkReady", view->ready,
		      view->ready ? "NetworkConfigInvalid" : "NetworkPluginNotReady", network);
	status.n_conditions = ARRAY_SIZE(condition_list);
	status.conditions = condition_list;
	response.status = &status;
	response.n_runtime_handlers =
		make_handlers(&arena, s->handlers, userns, &response.runtime_handlers);
	features.supplemental_groups_policy = true;
	features.user_namespaces_host_network = userns;
	features.mount_options = true;
	response.features = &features;
	return api_send(call, &response.base, e);
}

/* ---- checkpoints -------------------------------------------------------------------- */

static int serve_checkpoint_container(const void *ctx, struct rpc_call *call,
				      const ProtobufCMessage *request, struct hw_err *e)
{
	const struct oci_handler *crun = &((const struct runtime_service *)ctx)->handlers->v[0];
	autofree char *why = NULL;

	(void)call;
	(void)request;
	if (!crun->message && !crun->criu)
		why = str_printf(": %s (%s) was built without CRIU", crun->program, crun->version);
	return status_set(e, STATUS_UNIMPLEMENTED,
			  "CheckpointContainer is not implemented by hawser-cri %s%s",
			  HAWSER_VERSION, str_or(why, ""));
}

/* ---- configuration ------------------------------------------------------------------ */

static int serve_runtime_config(const void *ctx, struct rpc_call *call,
				const ProtobufCMessage *request, struct hw_err *e)
{
	const struct runtime_service *s = ctx;
	AUTO(shared_unref) const struct config *c = slot_get(s->config);
	Runtime__V1__RuntimeConfigResponse response = RUNTIME__V1__RUNTIME_CONFIG_RESPONSE__INIT;
	Runtime__V1__LinuxRuntimeConfiguration linux_config =
		RUNTIME__V1__LINUX_RUNTIME_CONFIGURATION__INIT;

	(void)request;
	linux_config.cgroup_driver = config_cgroup_driver(c) == CGROUP_SYSTEMD
					     ? RUNTIME__V1__CGROUP_DRIVER__SYSTEMD
					     : RUNTIME__V1__CGROUP_DRIVER__CGROUPFS;
	response.linux = &linux_config;
	return api_send(call, &response.base, e);
}

static int serve_update_runtime_config(const void *ctx, struct rpc_call *call,
				       const ProtobufCMessage *request, struct hw_err *e)
{
	const struct runtime_service *s = ctx;
	Runtime__V1__UpdateRuntimeConfigResponse response =
		RUNTIME__V1__UPDATE_RUNTIME_CONFIG_RESPONSE__INIT;
	const Runtime__V1__RuntimeConfig *config =
		((const Runtime__V1__UpdateRuntimeConfigRequest *)request)->runtime_config;
	const char *cidr = config && config->network_config ? config->network_config->pod_cidr : "";
	AUTO(shared_unref) const struct network_view *view = network_watch_view(s->network);
	AUTO(shared_unref) const struct config *c = slot_get(s->config);
	int r;

	if (*cidr) {
		r = pod_cidr_set(s->pod_cidr, cidr, c->cni_conf_template, view, e);
		if (r < 0)
			return r;
	}
	return api_send(call, &response.base, e);
}

const struct service_method runtime_methods[] = {
	{ "Version", serve_version, RPC_INSTANT },
	{ "Status", serve_status, RPC_INSTANT },
	{ "RuntimeConfig", serve_runtime_config, RPC_INSTANT },
	{ "UpdateRuntimeConfig", serve_update_runtime_config, RPC_LONG },
	{ "RunPodSandbox", serve_run_pod_sandbox, RPC_LONG },
	{ "StopPodSandbox", serve_stop_pod_sandbox, RPC_LONG },
	{ "RemovePodSandbox", serve_remove_pod_sandbox, RPC_LONG },
	{ "PodSandboxStatus", serve_pod_sandbox_status, RPC_INSTANT },
	{ "ListPodSandbox", serve_list_pod_sandbox, 0 },
	{ "StreamPodSandboxes", serve_stream_pod_sandboxes, RPC_LONG | RPC_STREAM_OUT },
	{ "UpdatePodSandboxResources", serve_update_pod_sandbox_resources, RPC_LONG },
	{ "CreateContainer", serve_create_container, RPC_LONG },
	{ "StartContainer", serve_start_container, RPC_LONG },
	{ "StopContainer", serve_stop_container, RPC_LONG },
	{ "RemoveContainer", serve_remove_container, RPC_LONG },
	{ "ListContainers", serve_list_containers, 0 },
	{ "StreamContainers", serve_stream_containers, RPC_LONG | RPC_STREAM_OUT },
	{ "ContainerStatus", serve_container_status, RPC_INSTANT },
	{ "UpdateContainerResources", serve_update_container_resources, RPC_LONG },
	{ "ReopenContainerLog", serve_reopen_container_log, RPC_LONG },
	{ "ExecSync", serve_exec_sync, RPC_LONG },
	{ "CheckpointContainer", serve_checkpoint_container, RPC_INSTANT },
	{ "GetContainerEvents", serve_get_container_events,
	  RPC_LONG | RPC_STREAM_OUT | RPC_ENDLESS },
	{ "ContainerStats", serve_container_stats, RPC_LONG },
	{ "ListContainerStats", serve_list_container_stats, RPC_LONG },
	{ "StreamContainerStats", serve_stream_container_stats, RPC_LONG | RPC_STREAM_OUT },
	{ "PodSandboxStats", serve_pod_sandbox_stats, RPC_LONG },
	{ "ListPodSandboxStats", serve_list_pod_sandbox_stats, RPC_LONG },
	{ "StreamPodSandboxStats", serve_stream_pod_sandbox_stats, RPC_LONG | RPC_STREAM_OUT },
	{ "ListMetricDescriptors", serve_list_metric_descriptors, 0 },
	{ "ListPodSandboxMetrics", serve_list_pod_sandbox_metrics, RPC_LONG },
	{ "StreamPodSandboxMetrics", serve_stream_pod_sandbox_metrics, RPC_LONG | RPC_STREAM_OUT },
	{ 0 },
};
