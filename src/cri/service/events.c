/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cri/service/events.c - GetContainerEvents of runtime.v1.RuntimeService
 *
 * Rules: the stream has no end. A client that reads too slowly gets RESOURCE_EXHAUSTED with the
 *        number of events that it has missed.
 */
#include <errno.h>
#include <poll.h>

#include "api/call.h"
#include "api/cri-v1.pb-c.h"
#include "base/arena.h"
#include "cri/service/convert.h"
#include "cri/service/messages.h"
#include "cri/service/services.h"
#include "pod/events.h"
#include "rpc/grpc/status.h"

static int send_event(struct rpc_call *call, const struct event *event, struct hw_err *e)
{
	Runtime__V1__ContainerEventResponse m = RUNTIME__V1__CONTAINER_EVENT_RESPONSE__INIT;
	AUTO(arena_done) struct arena arena = { 0 };

	m.container_id = no_const(event->id);
	m.container_event_type = (Runtime__V1__ContainerEventType)event->type;
	m.created_at = event->time;
	m.pod_sandbox_status = message_pod_status(&arena, event->pod);
	m.containers_statuses =
		arena_new(&arena, event->n_containers * sizeof(Runtime__V1__ContainerStatus *));
	for (size_t i = 0; i < event->n_containers; i++)
		if (message_container_is_listed(event->containers[i]))
			m.containers_statuses[m.n_containers_statuses++] =
				message_container_status(&arena, event->containers[i]);
	return api_send(call, &m.base, e);
}

/* Return: 0 when there may be an event; -ECANCELED */
static int wait_for_event(struct rpc_call *call, const struct event_reader *reader,
			  struct hw_err *e)
{
	struct pollfd fds[] = {
		{ .fd = event_reader_fd(reader), .events = POLLIN },
		{ .fd = rpc_cancel_fd(call), .events = POLLIN },
	};

	if (fds[1].fd < 0) /* the stream would never end */
		return err_text(e, -EMFILE, "wait for events: no descriptor is available");
	while (poll(fds, ARRAY_SIZE(fds), -1) < 0)
		if (errno != EINTR)
			return err_set(e, -errno, "wait for events");
	return fds[1].revents ? err_text(e, -ECANCELED, "cancelled") : 0;
}

int serve_get_container_events(const void *ctx, struct rpc_call *call,
			       const ProtobufCMessage *message, struct hw_err *e)
{
	const struct runtime_service *s = ctx;
	AUTO(event_reader_free) struct event_reader *reader = NULL;
	int r;

	(void)message;
	r = event_reader_new(pods_events(s->pods), &reader, e);
	while (r >= 0) {
		AUTO(shared_unref) const struct event *event = NULL;

		r = event_reader_next(reader, &event, e);
		if (r == -EOVERFLOW)
			return status_set(e, STATUS_RESOURCE_EXHAUSTED, "%s", e->msg);
		if (r == 1)
			r = send_event(call, event, e);
		else if (r == 0)
			r = wait_for_event(call, reader, e);
	}
	return r;
}
