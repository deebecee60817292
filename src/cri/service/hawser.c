/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cri/service/hawser.c - hawser.v1.Daemon, and the table of methods of hawser.v1.Images
 */
#include <sys/utsname.h>
#include <unistd.h>

#include "api/call.h"
#include "api/hawser-v1.pb-c.h"
#include "cri/service/services.h"

static int serve_info(const void *ctx, struct rpc_call *call, const ProtobufCMessage *request,
		      struct hw_err *e)
{
	const struct daemon_service *s = ctx;
	AUTO(store_snapshot_put) const struct store_snapshot *images = store_snapshot_get(s->store);
	AUTO(shared_unref) const struct config *c = slot_get(s->config);
	struct rpc_stats stats = rpc_server_stats(s->server);
	Hawser__V1__InfoResponse response = HAWSER__V1__INFO_RESPONSE__INIT;
	char version[] = HAWSER_VERSION, empty[] = "";
	autofree char *loss = store_loss(s->store);
	struct store_usage usage;
	struct utsname kernel;

	(void)request;
	uname(&kernel);
	store_usage(s->store, &usage);
	response.version = version;
	response.started_at = s->started_at;
	response.pid = (uint32_t)getpid();
	response.root = c->root;
	response.state = c->state;
	response.config = c->file;
	response.images = images->n;
	response.layers = usage.layers;
	response.layer_bytes = (uint64_t)usage.bytes;
	response.long_calls = stats.long_calls;
	response.long_calls_max = (uint32_t)c->long_calls;
	response.kernel = kernel.release;
	response.store_loss = loss ? loss : empty;
	return api_send(call, &response.base, e);
}

const struct service_method hawser_daemon_methods[] = {
	{ "Info", serve_info, RPC_INSTANT },
	{ 0 },
};

const struct service_method hawser_images_methods[] = {
	{ "Load", serve_load, RPC_LONG | RPC_STREAM_IN },
	{ "Pull", serve_pull, RPC_LONG | RPC_STREAM_OUT },
	{ "Recover", serve_recover, RPC_LONG },
	{ "Save", serve_save, RPC_LONG | RPC_STREAM_OUT },
	{ "Verify", serve_verify, RPC_LONG | RPC_STREAM_OUT },
	{ 0 },
};
