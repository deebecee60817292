/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cri/host.h - mounts of the host that pods and crun need
 */
#ifndef CRI_HOST_H
#define CRI_HOST_H

#include "base/err.h"
#include "cri/config/config.h"

/*
 * Makes the directory of network namespaces a shared mount, as ip-netns(8) does: programs in other
 * mount namespaces find the namespaces of pods there.
 *
 * crun refuses to run containers if cgroup2 is mounted at /sys/fs/cgroup/unified beside v1 and has
 * controllers. There the daemon enters a mount namespace without this mount. All other mounts still
 * propagate in both directions: a volume that is mounted on the host later, and mounts of the daemon
 * below the directories root, state and netns-dir, which become shared mounts for this purpose.
 *
 * To be called once, while there is no other thread. Nothing is undone when the daemon ends: the next
 * one finds the mounts of pods in their places.
 */
int host_prepare(const struct config *c, struct hw_err *e);

#endif
