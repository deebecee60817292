/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cri/service/network.c - hawser.v1.Networks: list networks, CHECK and GC on demand
 */
#include "api/call.h"
#include "api/hawser-v1.pb-c.h"
#include "base/arena.h"
#include "base/str.h"
#include "cri/service/services.h"
#include "pod/network-gc.h"
#include "pod/network-list.h"
#include "pod/network/pod-cidr.h"

/* ---- List --------------------------------------------------------------------------- */

static Hawser__V1__Network *make_network(struct arena *a, const struct network_entry *entry)
{
	Hawser__V1__Network *m = arena_new(a, sizeof(*m));

	hawser__v1__network__init(m);
	m->name = entry->name;
	m->file = entry->file;
	m->cni_version = entry->version;
	m->n_plugins = entry->plugins.n;
	m->plugins = entry->plugins.v;
	m->in_use = entry->in_use;
	m->ready = !*entry->message;
	m->message = entry->message;
	m->pods = entry->pods;
	return m;
}

static int serve_list(const void *ctx, struct rpc_call *call, const ProtobufCMessage *message,
		      struct hw_err *e)
{
	Hawser__V1__ListNetworksResponse response = HAWSER__V1__LIST_NETWORKS_RESPONSE__INIT;
	const struct network_service *s = ctx;
	AUTO(network_list_done) struct network_list list = { 0 };
	AUTO(arena_done) struct arena arena = { 0 };
	int r;

	(void)message;
	r = pods_networks(s->pods, &list, e);
	if (r < 0)
		return r;
	response.networks = arena_new(&arena, list.n * sizeof(Hawser__V1__Network *));
	for (; response.n_networks < list.n; response.n_networks++)
		response.networks[response.n_networks] =
			make_network(&arena, &list.v[response.n_networks]);
	return api_send(call, &response.base, e);
}

/* ---- Check -------------------------------------------------------------------------- */

static int serve_check(const void *ctx, struct rpc_call *call, const ProtobufCMessage *message,
		       struct hw_err *e)
{
	const Hawser__V1__CheckPodRequest *request = (const void *)message;
	Hawser__V1__CheckPodResponse response = HAWSER__V1__CHECK_POD_RESPONSE__INIT;
	AUTO(hw_strings_free) struct hw_strings checked = { 0 };
	const struct network_service *s = ctx;
	int r;

	r = pods_check(s->pods, request->id, rpc_cancel_fd(call), rpc_deadline(call), &checked, e);
	if (r < 0)
		return r;
	response.n_networks = checked.n;
	response.networks = checked.v;
	return api_send(call, &response.base, e);
}

/* ---- Gc ----------------------------------------------------------------------------- */

void network_names_to_collect(const struct config *c, struct network_watch *network,
			      struct hw_strings *ret_names)
{
	AUTO(shared_unref) const struct network_view *view = network_watch_view(network);

	for (size_t i = 0; i < c->gc_networks.n; i++)
		strings_add(ret_names, c->gc_networks.v[i]);
	if (view->name && !strings_has(ret_names, view->name) &&
	    (str_ends(view->file, "/" POD_CIDR_CONFLIST) ||
	     str_equal(view->file, NETWORK_BUILT_IN)))
		strings_add(ret_names, view->name);
}

static int serve_gc(const void *ctx, struct rpc_call *call, const ProtobufCMessage *message,
		    struct hw_err *e)
{
	const Hawser__V1__GcRequest *request = (const void *)message;
	Hawser__V1__GcResponse response = HAWSER__V1__GC_RESPONSE__INIT;
	const struct network_service *s = ctx;
	AUTO(shared_unref) const struct config *c = slot_get(s->config);
	AUTO(hw_strings_free) struct hw_strings names = { 0 };
	struct errors errors = { 0 };
	int r;

	if (*request->network)
		strings_add(&names, request->network);
	else
		network_names_to_collect(c, s->network, &names);
	for (size_t i = 0; i < names.n; i++)
		if (pods_gc(s->pods, names.v[i], rpc_cancel_fd(call), e) < 0)
			errors_add(&errors, e);
	r = errors_result(&errors, e);
	if (r < 0)
		return r;
	response.n_networks = names.n;
	response.networks = names.v;
	return api_send(call, &response.base, e);
}

const struct service_method hawser_networks_methods[] = {
	{ "List", serve_list, RPC_LONG },
	{ "Check", serve_check, RPC_LONG },
	{ "Gc", serve_gc, RPC_LONG },
	{ 0 },
};
