/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pod/network-list.h - the networks of this node, and whether pods can be attached to them
 */
#ifndef POD_NETWORK_LIST_H
#define POD_NETWORK_LIST_H

#include <stdbool.h>
#include <stddef.h>

#include <hawser/field.h>

#include "base/err.h"
#include "base/mem.h"
#include "pod/pods.h"

/* A network, or a file in the CNI directory that cannot be used. */
struct network_entry {
	char *name;    /* "": the file is invalid */
	char *file;    /* NETWORK_BUILT_IN; "": the file was deleted, and pods are still attached */
	char *version; /* of CNI; "": not known */
	struct hw_strings plugins; /* types, in their order; none: not known */
	bool in_use;		   /* new pods are attached to it */
	char *message;		   /* why pods cannot be attached; "": they can */
	size_t pods;		   /* that are attached */
};

struct network_list {
	struct network_entry *v;
	size_t n;
};

/* Lists the network in use, then the files of the CNI directory, in byte order of their names, then networks
 * without a file. Runs no plugin: the result of STATUS is known for the network in use only. */
int pods_networks(struct pods *p, struct network_list *ret, struct hw_err *e);
void network_list_done(struct network_list *list);

AUTO_VALUE_DEFINE(network_list_done, struct network_list);

#endif
