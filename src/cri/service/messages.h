/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cri/service/messages.h - pods and containers as messages of CRI, for several methods
 *
 * The messages point into the views, and into the arena.
 */
#ifndef CRI_SERVICE_MESSAGES_H
#define CRI_SERVICE_MESSAGES_H

#include "base/arena.h"
#include "pod/containers.h"
#include "pod/pods.h"

struct Runtime__V1__ContainerStatus; /* api/cri-v1.pb-c.h */
struct Runtime__V1__ContainerMetadata;
struct Runtime__V1__PodSandboxStatus;
struct Runtime__V1__PodSandboxMetadata;

/* sandbox.c; the pod must not be lost */
struct Runtime__V1__PodSandboxStatus *message_pod_status(struct arena *a,
							 const struct pod_view *pod);
struct Runtime__V1__PodSandboxMetadata *message_pod_metadata(struct arena *a,
							     const struct pod_spec *spec);
/* container.c; the container must be listed */
struct Runtime__V1__ContainerStatus *message_container_status(struct arena *a,
							      const struct container_view *c);
struct Runtime__V1__ContainerMetadata *message_container_metadata(
	struct arena *a, const struct container_spec *spec);
/* Return: false for a container that is lost, or is being created */
bool message_container_is_listed(const struct container_view *c);

#endif
