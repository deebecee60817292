/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cri/service/hawser.c - hawser.v1: the Daemon service, and the table of the Images service
 */
#include <sys/utsname.h>
#include <unistd.h>

#include "api/call.h"
#include "api/hawser-v1.pb-c.h"
#include "cri/daemon.h"
#include "cri/service/services.h"

static int serve_info(struct daemon *d, struct rpc_call *call, const ProtobufCMessage *request,
		      struct hw_err *e)
{
	AUTO(store_snapshot_put) const struct store_snapshot *images = store_snapshot_get(d->store);
	AUTO(config_unref) struct config *c = daemon_config(d);
	struct rpc_stats stats = rpc_server_stats(d->server);
	Hawser__V1__InfoResponse answer = HAWSER__V1__INFO_RESPONSE__INIT;
	char version[] = HAWSER_VERSION;
	struct store_usage usage;
	struct utsname kernel;

	(void)request;
	uname(&kernel);
	store_usage(d->store, &usage);
	answer.version = version;
	answer.started_at = d->started_at;
	answer.pid = (uint32_t)getpid();
	answer.root = c->root;
	answer.state = c->state;
	answer.config = c->file;
	answer.images = images->n;
	answer.layers = usage.layers;
	answer.layer_bytes = (uint64_t)usage.bytes;
	answer.long_calls = stats.long_calls;
	answer.long_calls_max = (uint32_t)c->long_calls;
	answer.kernel = kernel.release;
	return api_send(call, &answer.base, e);
}

const struct service_method hawser_daemon_methods[] = {
	{ "Info", serve_info, RPC_INSTANT },
	{ 0 },
};

const struct service_method hawser_images_methods[] = {
	{ "Load", serve_load, RPC_LONG | RPC_STREAM_IN },
	{ "Pull", serve_pull, RPC_LONG | RPC_STREAM_OUT },
	{ "Save", serve_save, RPC_LONG | RPC_STREAM_OUT },
	{ "Verify", serve_verify, RPC_LONG | RPC_STREAM_OUT },
	{ 0 },
};
