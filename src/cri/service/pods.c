/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cri/service/pods.c - hawser.v1.Pods and hawser.v1.Containers: what CRI lacks
 *
 * What:  pods with their exact state, also those that are lost, and removal with force.
 */
#include <errno.h>

#include "api/call.h"
#include "api/hawser-v1.pb-c.h"
#include "base/arena.h"
#include "cri/service/convert.h"
#include "cri/service/services.h"
#include "pod/containers.h"
#include "pod/lost-list.h"

static int check_id(const char *id, struct hw_err *e)
{
	return *id ? 0 : err_text(e, -EINVAL, "id is missing");
}

/* ---- pods --------------------------------------------------------------------------- */

static Hawser__V1__PodDetails *make_details(struct arena *a, const struct pod_view *pod)
{
	static const Hawser__V1__PodDetails__State states[] = {
		[POD_MAKING] = HAWSER__V1__POD_DETAILS__STATE__MAKING,
		[POD_READY] = HAWSER__V1__POD_DETAILS__STATE__READY,
		[POD_STOPPING] = HAWSER__V1__POD_DETAILS__STATE__STOPPING,
		[POD_STOPPED] = HAWSER__V1__POD_DETAILS__STATE__STOPPED,
		[POD_REMOVING] = HAWSER__V1__POD_DETAILS__STATE__REMOVING,
		[POD_LOST] = HAWSER__V1__POD_DETAILS__STATE__LOST,
	};
	Hawser__V1__PodDetails *m = arena_new(a, sizeof(*m));

	hawser__v1__pod_details__init(m);
	m->id = no_const(pod->o.id);
	m->state = states[pod->state];
	m->message = pod->message;
	return m;
}

static int list_pods(const void *ctx, struct rpc_call *call, const ProtobufCMessage *message,
		     struct hw_err *e)
{
	Hawser__V1__ListPodsResponse response = HAWSER__V1__LIST_PODS_RESPONSE__INIT;
	const struct pod_service *s = ctx;
	AUTO(shared_unref) const struct pods_view *view = pods_view(s->pods);
	AUTO(arena_done) struct arena arena = { 0 };

	(void)message;
	response.pods = arena_new(&arena, view->n * sizeof(Hawser__V1__PodDetails *));
	for (; response.n_pods < view->n; response.n_pods++)
		response.pods[response.n_pods] = make_details(&arena, view->pods[response.n_pods]);
	return api_send(call, &response.base, e);
}

static int remove_pod(const void *ctx, struct rpc_call *call, const ProtobufCMessage *message,
		      struct hw_err *e)
{
	const Hawser__V1__RemovePodRequest *request = (const void *)message;
	Hawser__V1__RemovePodResponse response = HAWSER__V1__REMOVE_POD_RESPONSE__INIT;
	const struct pod_service *s = ctx;
	int r;

	r = check_id(request->id, e);
	if (r == 0)
		r = pods_remove(s->pods, request->id, request->force ? PODS_FORCE : 0,
				rpc_deadline(call), e);
	return r < 0 ? r : api_send(call, &response.base, e);
}

const struct service_method hawser_pods_methods[] = {
	{ "List", list_pods, 0 },
	{ "Remove", remove_pod, RPC_LONG },
	{ 0 },
};

/* ---- containers --------------------------------------------------------------------- */

static Hawser__V1__LostContainer *make_lost(struct arena *a, const struct lost_container *c)
{
	Hawser__V1__LostContainer *m = arena_new(a, sizeof(*m));

	hawser__v1__lost_container__init(m);
	m->id = c->id;
	m->name = c->name;
	m->pod_id = c->pod_id;
	m->pod = c->pod;
	m->namespace_ = c->namespace;
	m->image = c->image;
	m->pid = (uint32_t)c->pid;
	return m;
}

static int list_lost(const void *ctx, struct rpc_call *call, const ProtobufCMessage *message,
		     struct hw_err *e)
{
	Hawser__V1__ListLostContainersResponse response =
		HAWSER__V1__LIST_LOST_CONTAINERS_RESPONSE__INIT;
	const struct pod_service *s = ctx;
	AUTO(lost_list_done) struct lost_list list = { 0 };
	AUTO(arena_done) struct arena arena = { 0 };

	(void)message;
	containers_list_lost(s->pods, &list);
	response.containers = arena_new(&arena, list.n * sizeof(Hawser__V1__LostContainer *));
	for (; response.n_containers < list.n; response.n_containers++)
		response.containers[response.n_containers] =
			make_lost(&arena, &list.v[response.n_containers]);
	return api_send(call, &response.base, e);
}

static int remove_container(const void *ctx, struct rpc_call *call, const ProtobufCMessage *message,
			    struct hw_err *e)
{
	const Hawser__V1__RemoveContainerRequest *request = (const void *)message;
	Hawser__V1__RemoveContainerResponse response = HAWSER__V1__REMOVE_CONTAINER_RESPONSE__INIT;
	const struct pod_service *s = ctx;
	int r;

	r = check_id(request->id, e);
	if (r == 0)
		r = containers_remove(s->pods, request->id, request->force ? PODS_FORCE : 0,
				      rpc_deadline(call), e);
	return r < 0 ? r : api_send(call, &response.base, e);
}

const struct service_method hawser_containers_methods[] = {
	{ "ListLost", list_lost, RPC_LONG },
	{ "Remove", remove_container, RPC_LONG },
	{ 0 },
};
