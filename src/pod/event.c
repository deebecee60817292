/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pod/event.c - the events of a change
 *
 * Which change of state is which event:
 *
 *	pod        making -> ready                  created, started
 *	           -> stopped                       stopped
 *	           removed from the table           deleted, if there was an event before
 *	container  making -> created                created
 *	           created -> running               started
 *	           running -> exited                stopped
 *	           created -> exited                stopped; before that started, if it has ended before its start
 *	                                            returned
 *	           removed from the table           deleted, if there was an event before
 */
#include <string.h>

#include "base/str.h"
#include "base/time.h"
#include "pod/container.h"
#include "pod/events.h"

static void event_free(void *object)
{
	struct event *event = object;

	shared_unref(event->pod);
	for (size_t i = 0; i < event->n_containers; i++)
		shared_unref(event->containers[i]);
	free(event);
}

static size_t count_containers(const struct containers_view *view, const char *pod)
{
	size_t n = 0;

	for (size_t i = 0; i < view->n; i++)
		n += str_equal(view->containers[i]->pod, pod);
	return n;
}

static void add_event(struct pod *pod, enum event_type type, const char *id)
{
	AUTO(shared_unref) const struct containers_view *view = NULL;
	struct event *event;

	if (!events_wanted(pod->pods->events))
		return;
	view = containers_view(pod->pods);
	event = mem_new(sizeof(*event) +
			count_containers(view, pod->o.id) * sizeof(const struct container_view *));
	shared_init(&event->shared, event_free);
	event->type = type;
	memcpy(event->id, id, sizeof(event->id));
	event->time = time_real();
	pthread_mutex_lock(&pod->o.table->lock);
	event->pod = shared_ref(pod->o.view);
	pthread_mutex_unlock(&pod->o.table->lock);
	for (size_t i = 0; i < view->n; i++)
		if (str_equal(view->containers[i]->pod, pod->o.id))
			event->containers[event->n_containers++] = shared_ref(view->containers[i]);
	events_add(pod->pods->events, event);
}

void event_pod_changed(struct pod *pod, enum pod_state before)
{
	if (!pod->spec || pod->state == before)
		return;
	if (pod->state == POD_READY) {
		pod->announced = true;
		add_event(pod, EVENT_CREATED, pod->o.id);
		add_event(pod, EVENT_STARTED, pod->o.id);
	} else if (pod->state == POD_STOPPED) {
		add_event(pod, EVENT_STOPPED, pod->o.id);
	}
}

void event_pod_deleted(struct pod *pod)
{
	if (pod->announced)
		add_event(pod, EVENT_DELETED, pod->o.id);
}

void event_container_changed(struct container *c, enum container_state before)
{
	enum container_state after = c->status.state;

	if (!c->spec || after == before)
		return;
	if (after == CONTAINER_CREATED) {
		c->announced = true;
		add_event(c->pod, EVENT_CREATED, c->o.id);
	}
	if (after == CONTAINER_RUNNING ||
	    (after == CONTAINER_EXITED && before == CONTAINER_CREATED && c->status.started_at))
		add_event(c->pod, EVENT_STARTED, c->o.id);
	if (after == CONTAINER_EXITED)
		add_event(c->pod, EVENT_STOPPED, c->o.id);
}

void event_container_deleted(struct container *c)
{
	if (c->announced)
		add_event(c->pod, EVENT_DELETED, c->o.id);
}
