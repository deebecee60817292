/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cri/service/subjects.c - pods and their containers, whose statistics and metrics are read together
 */
#include "cri/service/subjects.h"

#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "cri/service/messages.h"

bool subjects_container_runs(const struct container_view *c)
{
	return message_container_is_listed(c) && c->status.state == CONTAINER_RUNNING;
}

static int compare_pod(const void *a, const void *b)
{
	const struct container_view *const *one = a, *const *other = b;

	return strcmp((*one)->pod, (*other)->pod);
}

/* Return: the containers that run, ordered by their pods, to be freed by the caller */
static const struct container_view **sort_containers(const struct containers_view *view,
						     size_t *ret_n)
{
	const struct container_view **list =
		mem_new((view->n + 1) * sizeof(struct container_view *));
	size_t n = 0;

	for (size_t i = 0; i < view->n; i++)
		if (subjects_container_runs(view->containers[i]))
			list[n++] = view->containers[i];
	qsort(list, n, sizeof(struct container_view *), compare_pod);
	*ret_n = n;
	return list;
}

void subjects_init(struct pods *pods, bool (*wanted)(const void *ctx, const struct pod_view *pod),
		   const void *ctx, struct subjects *ret)
{
	autofree const struct container_view **list = NULL;
	size_t n, at = 0;

	*ret = (struct subjects){ .pods = pods_view(pods), .containers = containers_view(pods) };
	list = sort_containers(ret->containers, &n);
	ret->v = mem_new((ret->pods->n + n) * sizeof(*ret->v));
	for (size_t i = 0; i < ret->pods->n; i++) {
		const struct pod_view *pod = ret->pods->pods[i];

		if (!pod->spec || !wanted(ctx, pod))
			continue;
		ret->v[ret->n++].pod = pod;
		/* both lists are ordered by the ID of the pod */
		while (at < n && strcmp(list[at]->pod, pod->o.id) < 0)
			at++;
		for (; at < n && str_equal(list[at]->pod, pod->o.id); at++)
			ret->v[ret->n++] = (struct stats_subject){ pod, list[at] };
	}
}

void subjects_done(struct subjects *list)
{
	shared_unref(list->pods);
	shared_unref(list->containers);
	free(list->v);
}

size_t subjects_count_containers(const struct stats_subject *v, size_t n, size_t i)
{
	size_t end = i + 1;

	while (end < n && v[end].container)
		end++;
	return end - i - 1;
}

size_t subjects_end_of_message(const struct subjects *list, size_t first, size_t max)
{
	size_t end = first;

	do {
		size_t next = end + 1 + subjects_count_containers(list->v, list->n, end);

		if (end > first && next - first > max)
			break;
		end = next;
	} while (end < list->n);
	return end;
}
