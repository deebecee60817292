/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cri/service/subjects.h - pods and their containers, whose statistics and metrics are read together
 */
#ifndef CRI_SERVICE_SUBJECTS_H
#define CRI_SERVICE_SUBJECTS_H

#include "base/mem.h"
#include "pod/stats.h"

/* Pods, each followed by those of its containers that run. They point into the views. */
struct subjects {
	const struct pods_view *pods;
	const struct containers_view *containers;
	struct stats_subject *v;
	size_t n;
};

/* @wanted: which pods; @ctx: its first argument */
void subjects_init(struct pods *pods, bool (*wanted)(const void *ctx, const struct pod_view *pod),
		   const void *ctx, struct subjects *ret);
void subjects_done(struct subjects *list);
AUTO_VALUE_DEFINE(subjects_done, struct subjects);

/* Return: the number of containers that follow the pod at @i */
size_t subjects_count_containers(const struct stats_subject *v, size_t n, size_t i);
/* Return: the end of a message that begins with the pod at @first: before another pod, after at most @max
 * pods and containers, but at least one pod */
size_t subjects_end_of_message(const struct subjects *list, size_t first, size_t max);

/* Return: true for a container that runs and is listed */
bool subjects_container_runs(const struct container_view *c);

#endif
