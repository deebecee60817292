/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci/run/grace.h - wait early for the grace period that the first move between cgroups costs
 *
 * What:  after a quiet second, the first process that is moved to another cgroup waits for an RCU grace
 *        period (7 to 15 ms); moves within the next milliseconds do not wait. crun moves each container.
 *        With grace_start() a thread waits, while this one does other work.
 */
#ifndef OCI_RUN_GRACE_H
#define OCI_RUN_GRACE_H

#include <pthread.h>
#include <stdbool.h>

#include "oci/cgroup.h"

struct grace {
	bool started;
	pthread_t thread;
	char *file;
};

/* Returns at once. If it cannot be done, crun will wait instead. */
void grace_start(struct grace *g, const struct cgroup_fs *fs);
void grace_end(struct grace *g); /* waits for the thread; for a zeroed struct nothing is done */
AUTO_VALUE_DEFINE(grace_end, struct grace);

#endif
