/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test/node.h - what the command lines of pods and containers share: start and end, as in cri/daemon.c
 *
 * What:  a program is a table of commands. It does what the daemon does when it starts, runs one command
 *        and ends; pods and containers stay.
 *
 *		PROGRAM DIR COMMAND [ARGUMENT...]
 *
 *        DIR has the network in net.d; root, state, netns and cache are created there. Plugins are those of
 *        $HAWSER_BUILD.
 *        Prints "done" when the command is complete. Errors go to standard error, with exit status 1.
 */
#ifndef TEST_NODE_H
#define TEST_NODE_H

#include <stdbool.h>

#include <hawser/cni.h>
#include <uv.h>

#include "oci/cgroup.h"
#include "oci/pause.h"
#include "oci/spec/limits.h"
#include "pod/network/plugin-server.h"
#include "pod/network/pod-cidr.h"
#include "pod/network/watch.h"
#include "pod/pods.h"

#define NODE_TIMEOUT_MS 20000

struct node {
	char *root, *state, *netns, *conf, *cache, *logs, *plugins, *program, *pause_program,
		*seccomp_program, *seccomp_dir;
	uv_loop_t loop;
	struct pod_cidr pod_cidr;
	struct cgroup_fs *cgroups;
	struct spec_host host;
	struct pause_host *pause;
	struct filters *filters;
	struct plugin_server *server;
	struct hw_cni *cni;
	struct network_watch *network;
	struct store *store; /* NULL: no containers */
	struct pods *pods;
};

struct node_command {
	const char *name;
	int args; /* at least */
	int (*run)(struct node *n, char **args, struct hw_err *e);
};

struct node_program {
	const char *name, *usage;
	const struct node_command *commands;
	size_t n_commands;
	bool containers; /* open the image store, too */
};

int node_main(int argc, char **argv, const struct node_program *program);

/* Return: whether a pod with this name exists */
bool node_find_pod(struct node *n, const char *name, char ret_id[POD_ID]);
void node_set_user_namespace(struct pod_spec *spec);
/* Waits until @is_settled. */
int node_wait(struct node *n, bool (*is_settled)(struct node *n), struct hw_err *e);

#endif
