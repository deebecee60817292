/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test/pod.c - command line of src/pod, for test/faults
 *
 *	pod DIR create NAME [pause] [userns] [host] [PORT]
 *	                        create a pod with this host port; pause: its containers share a PID
 *	                        namespace; host: it uses the host's network;
 *	                        userns: it has a user namespace
 *	pod DIR stop NAME
 *	pod DIR remove NAME
 *	pod DIR check NAME      run CHECK; fails if the pod is not ready
 *	pod DIR recover         wait until nothing is left of interrupted operations
 *	pod DIR list            print a line for each pod: name, state, addresses
 *
 * See node.h for what all commands do.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "base/time.h"
#include "node.h"
#include "pod/network-gc.h"

static void add_port(struct pod_spec *spec, int host_port)
{
	struct pod_port *port = mem_new(sizeof(*port));

	*port = (struct pod_port){ str_copy("tcp"), 80, host_port, str_copy("") };
	spec->ports = (struct hw_list){ .v = port, .n = 1 };
}

static int create_pod(struct node *n, char **args, struct hw_err *e)
{
	AUTO(shared_unref) struct pod_spec *spec = pod_spec_new();
	char id[POD_ID];
	long long port;
	int r;

	spec->name = str_copy(args[0]);
	spec->namespace = str_copy("default");
	spec->uid = str_printf("uid-%s", args[0]);
	spec->namespaces.pid = POD_MODE_CONTAINER;
	for (size_t i = 1; args[i]; i++) {
		if (str_equal(args[i], "pause"))
			spec->namespaces.pid = POD_MODE_POD;
		else if (str_equal(args[i], "userns"))
			node_set_user_namespace(spec);
		else if (str_equal(args[i], "host"))
			spec->namespaces.network = POD_MODE_NODE;
		else if (!spec->ports.v && str_to_int64(args[i], 1, 65535, &port))
			add_port(spec, (int)port);
		else
			return err_text(e, -EINVAL, "unknown word \"%s\"", args[i]);
	}
	if (spec->namespaces.network == POD_MODE_POD)
		spec->hostname = str_copy(args[0]);
	r = pod_spec_seal(spec, e);
	return r < 0 ? r : pods_create(n->pods, spec, time_deadline(NODE_TIMEOUT_MS), id, e);
}

static int stop_pod(struct node *n, char **args, struct hw_err *e)
{
	char id[POD_ID];

	return node_find_pod(n, args[0], id)
		       ? pods_stop(n->pods, id, time_deadline(NODE_TIMEOUT_MS), e)
		       : 0;
}

static int remove_pod(struct node *n, char **args, struct hw_err *e)
{
	char id[POD_ID];

	return node_find_pod(n, args[0], id)
		       ? pods_remove(n->pods, id, 0, time_deadline(NODE_TIMEOUT_MS), e)
		       : 0;
}

static int check_pod(struct node *n, char **args, struct hw_err *e)
{
	AUTO(hw_strings_free) struct hw_strings checked = { 0 };
	char id[POD_ID];

	if (!node_find_pod(n, args[0], id))
		return err_text(e, -ENODATA, "no pod %s", args[0]);
	return pods_check(n->pods, id, -1, time_deadline(NODE_TIMEOUT_MS), &checked, e);
}

static bool is_settled(struct node *n)
{
	AUTO(shared_unref) const struct pods_view *view = pods_view(n->pods);

	for (size_t i = 0; i < view->n; i++)
		if (view->pods[i]->state != POD_READY && view->pods[i]->state != POD_STOPPED)
			return false;
	return true;
}

static int recover_pods(struct node *n, char **args, struct hw_err *e)
{
	(void)args;
	return node_wait(n, is_settled, e);
}

static int list_pods(struct node *n, char **args, struct hw_err *e)
{
	AUTO(shared_unref) const struct pods_view *view = pods_view(n->pods);

	(void)args;
	(void)e;
	for (size_t i = 0; i < view->n; i++) {
		const struct pod_view *pod = view->pods[i];

		printf("%s %s", pod->spec ? pod->spec->name : pod->o.id,
		       pod_state_name(pod->state));
		for (size_t k = 0; pod->network && k < pod->network->ips.n; k++)
			printf(" %s", pod->network->ips.v[k]);
		putchar('\n');
	}
	return 0;
}

static const struct node_command commands[] = {
	{ "create", 1, create_pod }, { "stop", 1, stop_pod },	     { "remove", 1, remove_pod },
	{ "check", 1, check_pod },   { "recover", 0, recover_pods }, { "list", 0, list_pods },
};

int main(int argc, char **argv)
{
	static const struct node_program program = {
		.name = "pod",
		.usage = "create NAME [pause] [userns] [host] [PORT] | stop NAME | remove NAME | "
			 "check NAME "
			 "| "
			 "recover | list",
		.commands = commands,
		.n_commands = ARRAY_SIZE(commands),
	};

	return node_main(argc, argv, &program);
}
