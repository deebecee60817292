/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cri/service/runtime.c - runtime.v1.RuntimeService
 *
 * What:  Version, Status, RuntimeConfig and UpdateRuntimeConfig. The methods for pods
 *        and containers are not implemented yet.
 */
#include <unistd.h>

#include "api/call.h"
#include "api/cri-v1.pb-c.h"
#include "base/str.h"
#include "cri/service/executables.h"
#include "cri/service/services.h"
#include "pod/pod-cidr.h"

#define KUBELET_API "0.1.0" /* all runtimes return this version */

/* protobuf-c declares strings without const, but does not write to them. */
static char *no_const(const char *s)
{
	return (char *)s;
}

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
	return value_format(object, 0);
}

static void set_info_entry(Runtime__V1__StatusResponse__InfoEntry *entry, const char *key,
			   char *value)
{
	runtime__v1__status_response__info_entry__init(entry);
	entry->key = no_const(key);
	entry->value = value;
}

/* @message: why the condition is false; NULL if it is true */
static void set_condition(Runtime__V1__RuntimeCondition *condition, const char *type,
			  const char *reason, char *message)
{
	runtime__v1__runtime_condition__init(condition);
	condition->type = no_const(type);
	condition->status = !message;
	if (!message)
		return;
	condition->reason = no_const(reason);
	condition->message = message;
}

/* Reports one runtime handler, the default one, without optional features. */
static int serve_status(const void *ctx, struct rpc_call *call, const ProtobufCMessage *request,
			struct hw_err *e)
{
	const struct runtime_service *s = ctx;
	AUTO(shared_unref) const struct network_view *view = network_watch_view(s->network);
	AUTO(shared_unref) const struct config *c = slot_get(s->config);
	Runtime__V1__StatusResponse response = RUNTIME__V1__STATUS_RESPONSE__INIT;
	Runtime__V1__StatusResponse__InfoEntry info[2];
	Runtime__V1__StatusResponse__InfoEntry *info_list[] = { &info[0], &info[1] };
	Runtime__V1__RuntimeHandlerFeatures handler_features =
		RUNTIME__V1__RUNTIME_HANDLER_FEATURES__INIT;
	Runtime__V1__RuntimeHandler handler = RUNTIME__V1__RUNTIME_HANDLER__INIT;
	Runtime__V1__RuntimeHandler *handler_list[] = { &handler };
	Runtime__V1__RuntimeFeatures features = RUNTIME__V1__RUNTIME_FEATURES__INIT;
	Runtime__V1__RuntimeStatus status = RUNTIME__V1__RUNTIME_STATUS__INIT;
	Runtime__V1__RuntimeCondition conditions[2];
	Runtime__V1__RuntimeCondition *condition_list[] = { &conditions[0], &conditions[1] };
	autofree char *config_info = NULL, *network_info = NULL;
	autofree char *missing = NULL, *not_ready = NULL;

	if (((const Runtime__V1__StatusRequest *)request)->verbose) {
		config_info = format_config_info(c);
		network_info = format_network_info(view);
		set_info_entry(&info[0], "config", config_info);
		set_info_entry(&info[1], "network", network_info);
		response.n_info = ARRAY_SIZE(info_list);
		response.info = info_list;
	}
	missing = executables_missing();
	if (!view->ready)
		not_ready = str_printf("Network plugin returns error: %s", view->message);
	set_condition(&conditions[0], "RuntimeReady", "RuntimeNotReady", missing);
	set_condition(&conditions[1], "NetworkReady", "NetworkPluginNotReady", not_ready);
	status.n_conditions = ARRAY_SIZE(condition_list);
	status.conditions = condition_list;
	handler.features = &handler_features;
	response.status = &status;
	response.n_runtime_handlers = ARRAY_SIZE(handler_list);
	response.runtime_handlers = handler_list;
	response.features = &features;
	return api_send(call, &response.base, e);
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
	linux_config.cgroup_driver = RUNTIME__V1__CGROUP_DRIVER__CGROUPFS;
	if (str_equal(c->cgroup_driver, "systemd") ||
	    (str_equal(c->cgroup_driver, "auto") && access("/run/systemd/system", F_OK) == 0))
		linux_config.cgroup_driver = RUNTIME__V1__CGROUP_DRIVER__SYSTEMD;
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
	{ "UpdateRuntimeConfig", serve_update_runtime_config, 0 },
	{ 0 },
};
