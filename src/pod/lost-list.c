/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pod/lost-list.c - the containers that are lost, with what their bundles say about them
 *
 * How:   the view has only what is needed to end and remove them. The rest is read from config.json when
 *        a client asks, which is seldom.
 */
#include "pod/lost-list.h"

#include <poll.h>
#include <stdlib.h>

#include "base/str.h"
#include "oci/spec/spec.h"
#include "pod/container.h"

static char *copy_annotation(const struct oci_spec *s, const char *key)
{
	return str_copy(spec_find_annotation(s, key));
}

/* Nothing watches a lost container: it may have ended. */
static int find_pid(struct container *c)
{
	AUTO(shared_unref) struct process *process = NULL;

	process = container_process(c);
	if (!process || poll(&(struct pollfd){ .fd = process->pidfd, .events = POLLIN }, 1, 0) != 0)
		return 0;
	return process->pid;
}

static void add_container(struct pods *p, const struct container_view *view, struct lost_list *list)
{
	AUTO(shared_unref) struct container *c = NULL;
	AUTO(spec_done) struct oci_spec spec = { 0 };
	struct hw_err ignored;

	c = object_get(&p->containers, view->o.id);
	if (!c) /* it was removed meanwhile */
		return;
	container_read_config(c, &spec, &ignored);
	list->v[list->n++] = (struct lost_container){
		.id = str_copy(view->o.id),
		.name = copy_annotation(&spec, "io.kubernetes.cri.container-name"),
		.pod_id = str_copy(view->pod),
		.pod = copy_annotation(&spec, "io.kubernetes.cri.sandbox-name"),
		.namespace = copy_annotation(&spec, "io.kubernetes.cri.sandbox-namespace"),
		.image = copy_annotation(&spec, "io.kubernetes.cri.image-name"),
		.pid = find_pid(c),
	};
}

void containers_list_lost(struct pods *p, struct lost_list *ret)
{
	AUTO(shared_unref) const struct containers_view *view = containers_view(p);

	*ret = (struct lost_list){ .v = mem_new((view->n + 1) * sizeof(*ret->v)) };
	for (size_t i = 0; i < view->n; i++)
		if (view->containers[i]->status.state == CONTAINER_LOST)
			add_container(p, view->containers[i], ret);
}

void lost_list_done(struct lost_list *list)
{
	for (size_t i = 0; i < list->n; i++) {
		free(list->v[i].id);
		free(list->v[i].name);
		free(list->v[i].pod_id);
		free(list->v[i].pod);
		free(list->v[i].namespace);
		free(list->v[i].image);
	}
	free(list->v);
}
