/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pod/network-gc.h - check the attachments of pods, and delete those that no pod has any more
 */
#ifndef POD_NETWORK_GC_H
#define POD_NETWORK_GC_H

#include "base/err.h"
#include "pod/pods.h"

/* Runs CHECK for a pod. The names of the networks that it has checked are added to @ret_checked: not those
 * that disable CHECK. @cancel_fd: ends it; -1: none. Return: 0 if its attachments are unchanged; -ENODATA: no such pod; -EBUSY: it is not
 * ready; or a negative errno with the plugins' errors */
int pods_check(struct pods *p, const char *id, int cancel_fd, int64_t deadline,
	       struct hw_strings *ret_checked, struct hw_err *e);

/* Runs GC of the network @name, which is looked up in the CNI directory. Attachments of pods in any
 * state are kept, and so are those of other runtimes. @cancel_fd: ends the DELs; -1: none. Return: 0;
 * -ENODATA: no such network; or another negative errno */
int pods_gc(struct pods *p, const char *name, int cancel_fd, struct hw_err *e);

#endif
