/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/os/userns.h - create a user namespace, and namespaces that belong to it
 *
 *	AUTO(userns_done) struct userns ns = USERNS_NONE;
 *
 *	r = userns_create(100000, 65536, CLONE_NEWNET | CLONE_NEWIPC, &ns, e);
 *
 * A thread cannot create a user namespace if its process has others. So a process is cloned that does
 * nothing, and that has ended when the function returns: descriptors keep its namespaces.
 */
#ifndef BASE_OS_USERNS_H
#define BASE_OS_USERNS_H

#include <stdint.h>

#include "base/err.h"
#include "base/mem.h"

struct userns {
	int user, net, uts, ipc; /* descriptors; -1: was not created */
};

#define USERNS_NONE                                                                                \
	{                                                                                          \
		-1, -1, -1, -1                                                                     \
	}

/* Users and groups 0 to @size - 1 are @host_id and the following ones of the namespace of this process.
 * @others: CLONE_NEWNET, CLONE_NEWUTS, CLONE_NEWIPC. */
int userns_create(uint32_t host_id, uint32_t size, int others, struct userns *ret_ns,
		  struct hw_err *e);
void userns_done(struct userns *ns);
AUTO_VALUE_DEFINE(userns_done, struct userns);

#endif
