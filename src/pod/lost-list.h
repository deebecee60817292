/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pod/lost-list.h - the containers that are lost, with what their bundles say about them
 */
#ifndef POD_LOST_LIST_H
#define POD_LOST_LIST_H

#include <stddef.h>

#include "base/mem.h"
#include "pod/pods.h"

/* Each string is "" if the bundle does not say it. */
struct lost_container {
	char *id;
	char *name;
	char *pod_id, *pod, *namespace; /* of the pod: ID, name, namespace */
	char *image;			/* as it was asked for */
	int pid;			/* first process; 0: it does not run */
};

struct lost_list {
	struct lost_container *v;
	size_t n;
};

/* Reads the bundles. A bundle that cannot be read tells nothing: its container is listed with the ID, which is
 * enough to remove it. */
void containers_list_lost(struct pods *p, struct lost_list *ret);
void lost_list_done(struct lost_list *list);

AUTO_VALUE_DEFINE(lost_list_done, struct lost_list);

#endif
