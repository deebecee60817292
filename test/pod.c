/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test/pod.c - command line of src/pod, for test/faults
 *
 *	pod [--exec] DIR create NAME [pause] [host] [PORT]
 *	                        create a pod with this host port; pause: its containers share a PID
 *	                        namespace; host: it uses the host's network
 *	pod DIR stop NAME
 *	pod DIR remove NAME
 *	pod DIR check NAME      run CHECK; fails if the pod is not ready
 *	pod DIR recover         wait until nothing is left of interrupted operations
 *	pod DIR list            print a line for each pod: name, state, addresses
 *
 * Each command does what the daemon does when it starts, runs one operation and ends; the pods stay.
 * DIR has the network in net.d; root, state, netns and cache are created there. Plugins are those of
 * $HAWSER_BUILD; `hawser-plugin serve` runs them, or they are executed, with --exec.
 *
 * Prints "done" when the operation is complete. Errors go to standard error, with exit status 1.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <hawser/cni.h>
#include <uv.h>

#include "base/log.h"
#include "base/os/file.h"
#include "base/shared.h"
#include "base/str.h"
#include "base/time.h"
#include "oci/cgroup.h"
#include "oci/handler.h"
#include "oci/pause.h"
#include "pod/network-gc.h"
#include "pod/network-watch.h"
#include "pod/plugin-server.h"
#include "pod/pod-cidr.h"
#include "pod/pods.h"

#define TIMEOUT_MS 20000
#define POLL_MS	   5

struct node {
	char *root, *state, *netns, *conf, *cache, *plugins, *program, *pause_program;
	uv_loop_t loop;
	struct pod_cidr pod_cidr;
	struct cgroup_fs *cgroups;
	struct pause_host *pause;
	struct plugin_server *server;
	struct hw_cni *cni;
	struct network_watch *network;
	struct pods *pods;
};

/* ---- start and end, as in cri/daemon.c ---------------------------------------------------- */

static int open_cni(struct node *n, struct hw_err *e)
{
	const char *const dirs[] = { n->plugins, NULL };
	const struct hw_cni_options options = {
		.size = sizeof(options),
		.plugin_dirs = dirs,
		.cache_dir = n->cache,
		.state_dir = n->state,
		.exec = plugin_server_exec(n->server),
		.stderr_mode = HW_STDERR_DROP,
	};

	return hw_cni_new(&options, &n->cni, e);
}

static int open_pods(struct node *n, struct hw_err *e)
{
	static char name[] = "";
	static struct oci_handler handler = { .name = name };
	static const struct oci_handlers handlers = { .v = &handler, .n = 1 };
	const struct pods_options options = {
		.root = n->root,
		.state = n->state,
		.netns_dir = n->netns,
		.conf_dir = n->conf,
		.pause = n->pause,
		.cni = n->cni,
		.network = n->network,
		.pod_cidr = &n->pod_cidr,
		.cgroups = n->cgroups,
		.cgroup_driver = CGROUP_CGROUPFS,
		.handlers = &handlers,
		.network_timeout_ms = TIMEOUT_MS,
	};

	return pods_open(&options, &n->pods, e);
}

static int node_open(struct node *n, struct hw_err *e)
{
	const char *const dirs[] = { n->root, n->state, n->netns };
	const struct network_watch_options watch = { .conf_dir = n->conf, .bin_dirs = n->plugins };
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(dirs); i++)
		r = file_mkdirs(AT_FDCWD, dirs[i], 0755, e);
	if (r == 0)
		r = cgroup_fs_new("", &n->cgroups, e);
	if (r == 0)
		r = pause_host_new(n->pause_program, &n->pause, e);
	if (r < 0)
		return r;
	n->server = plugin_server_new(&(struct plugin_server_options){
		.plugin_dirs = n->plugins, .program = n->program, .state_dir = n->state });
	r = open_cni(n, e);
	if (r < 0)
		return r;
	n->network = network_watch_new(&n->loop, &watch);
	r = open_pods(n, e);
	if (r == 0)
		r = plugin_server_wait(n->server, time_deadline(TIMEOUT_MS), e);
	return r < 0 ? r : pods_recover(n->pods, e);
}

static void node_init(struct node *n, const char *dir, bool exec)
{
	const char *build = str_or(getenv("HAWSER_BUILD"), "build");

	*n = (struct node){
		.root = str_printf("%s/root", dir),
		.state = str_printf("%s/state", dir),
		.netns = str_printf("%s/netns", dir),
		.conf = str_printf("%s/net.d", dir),
		.cache = str_printf("%s/cache", dir),
		.plugins = str_printf("%s/cni", build),
		.program = exec ? str_copy("") : str_printf("%s/bin/hawser-plugin", build),
		.pause_program = str_printf("%s/bin/hawser-pause", build),
	};
	pod_cidr_init(&n->pod_cidr, n->state, n->conf);
	uv_loop_init(&n->loop);
}

static void node_done(struct node *n)
{
	char *const strings[] = { n->root,  n->state,	n->netns,   n->conf,
				  n->cache, n->plugins, n->program, n->pause_program };

	pods_close(n->pods);
	network_watch_close(n->network);
	uv_run(&n->loop, UV_RUN_DEFAULT);
	uv_loop_close(&n->loop);
	hw_cni_free(n->cni);
	plugin_server_free(n->server);
	pause_host_free(n->pause);
	cgroup_fs_free(n->cgroups);
	pod_cidr_done(&n->pod_cidr);
	for (size_t i = 0; i < ARRAY_SIZE(strings); i++)
		free(strings[i]);
}

/* ---- commands ----------------------------------------------------------------------------- */

/* Return: whether the pod exists */
static bool find_pod(struct node *n, const char *name, char ret_id[POD_ID])
{
	AUTO(shared_unref) const struct pods_view *view = pods_view(n->pods);

	for (size_t i = 0; i < view->n; i++) {
		if (!view->pods[i]->spec || !str_equal(view->pods[i]->spec->name, name))
			continue;
		memcpy(ret_id, view->pods[i]->o.id, POD_ID);
		return true;
	}
	return false;
}

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
	return r < 0 ? r : pods_create(n->pods, spec, time_deadline(TIMEOUT_MS), id, e);
}

static int stop_pod(struct node *n, char **args, struct hw_err *e)
{
	char id[POD_ID];

	return find_pod(n, args[0], id) ? pods_stop(n->pods, id, time_deadline(TIMEOUT_MS), e) : 0;
}

static int remove_pod(struct node *n, char **args, struct hw_err *e)
{
	char id[POD_ID];

	return find_pod(n, args[0], id) ? pods_remove(n->pods, id, 0, time_deadline(TIMEOUT_MS), e)
					: 0;
}

static int check_pod(struct node *n, char **args, struct hw_err *e)
{
	AUTO(hw_strings_free) struct hw_strings checked = { 0 };
	char id[POD_ID];

	if (!find_pod(n, args[0], id))
		return err_text(e, -ENODATA, "no pod %s", args[0]);
	return pods_check(n->pods, id, time_deadline(TIMEOUT_MS), &checked, e);
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
	int64_t deadline = time_deadline(TIMEOUT_MS);

	(void)args;
	while (!is_settled(n)) {
		if (time_has_passed(deadline))
			return err_text(e, -ETIMEDOUT, "not recovered in time");
		time_sleep(POLL_MS);
	}
	return 0;
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

static const struct command {
	const char *name;
	int args;
	int (*run)(struct node *n, char **args, struct hw_err *e);
} commands[] = {
	{ "create", 1, create_pod }, { "stop", 1, stop_pod },	     { "remove", 1, remove_pod },
	{ "check", 1, check_pod },   { "recover", 0, recover_pods }, { "list", 0, list_pods },
};

static const struct command *find_command(int argc, char **argv)
{
	for (size_t i = 0; argc > 2 && i < ARRAY_SIZE(commands); i++)
		if (str_equal(commands[i].name, argv[2]) && argc - 3 >= commands[i].args)
			return &commands[i];
	return NULL;
}

int main(int argc, char **argv)
{
	bool exec = argc > 1 && str_equal(argv[1], "--exec");
	const struct command *command;
	struct node n;
	struct hw_err e;
	int r;

	argv += exec;
	argc -= exec;
	command = find_command(argc, argv);
	if (!command) {
		fprintf(stderr,
			"usage: pod [--exec] DIR create NAME [pause] [host] [PORT] | stop NAME | "
			"remove NAME | check NAME | recover | list\n");
		return 2;
	}
	log_set_level(LOG_WARN);
	node_init(&n, argv[1], exec);
	r = node_open(&n, &e);
	if (r == 0)
		r = command->run(&n, argv + 3, &e);
	if (r >= 0 && (puts("done") < 0 || fflush(stdout) != 0))
		r = err_set(&e, -EIO, "write to standard output");
	node_done(&n);
	if (r < 0)
		fprintf(stderr, "pod: %s\n", e.msg);
	return r < 0;
}
