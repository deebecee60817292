/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test/node.c - what the command lines of pods and containers share: start and end, as in cri/daemon.c
 */
#include "node.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/os/file.h"
#include "base/shared.h"
#include "base/str.h"
#include "base/time.h"
#include "image/store/store.h"
#include "oci/handler.h"
#include "oci/seccomp/filter.h"

#define CONMON	"/usr/bin/conmon"
#define POLL_MS 5

/* ---- start and end ------------------------------------------------------------------ */

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
	static char name[] = "", crun[] = "/usr/bin/crun";
	static struct oci_handler handler = { .name = name,
					      .program = crun,
					      .seccomp = OCI_SECCOMP_FILTER,
					      .idmap = OCI_IDMAP_SAME };
	static char *names[] = { (char *)"CHOWN", (char *)"DAC_OVERRIDE", (char *)"KILL" };
	static const struct hw_strings capabilities = { names, ARRAY_SIZE(names) };
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
		.network_timeout_ms = NODE_TIMEOUT_MS,
		.store = n->store,
		.host = &n->host,
		.conmon = CONMON,
		.filters = n->filters,
		.capabilities = &capabilities,
	};

	return pods_open(&options, &n->pods, e);
}

static int open_kernel_objects(struct node *n, struct hw_err *e)
{
	const char *const dirs[] = { n->root, n->state, n->netns };
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(dirs); i++)
		r = file_mkdirs(AT_FDCWD, dirs[i], 0755, e);
	if (r == 0)
		r = cgroup_fs_new("", &n->cgroups, e);
	if (r == 0)
		r = pause_host_new(n->pause_program, &n->pause, e);
	return r;
}

/* The daemon sweeps in the background. */
static int recover(struct node *n, struct hw_err *e)
{
	int r;

	pods_recover(n->pods);
	if (!n->store)
		return 0;
	r = pods_sweep(n->pods, e);
	return r < 0 ? r : store_sweep(n->store, e);
}

static int node_open(struct node *n, bool containers, struct hw_err *e)
{
	const struct network_watch_options watch = { .conf_dir = n->conf, .bin_dirs = n->plugins };
	int r;

	r = open_kernel_objects(n, e);
	if (r == 0 && containers)
		r = spec_host_init(&n->host, n->cgroups, "", e);
	if (r == 0 && containers)
		r = store_open(n->root, &n->store, e);
	if (r == 0 && containers)
		r = filters_new(&(struct filters_options){ n->seccomp_program, n->seccomp_dir, 0 },
				&n->filters, e);
	if (r < 0)
		return r;
	n->server = plugin_server_new(&(struct plugin_server_options){
		.plugin_dirs = n->plugins, .program = n->program, .state_dir = n->state });
	r = open_cni(n, e);
	if (r < 0)
		return r;
	r = network_watch_new(&n->loop, &watch, &n->network, e);
	if (r == 0)
		r = open_pods(n, e);
	if (r == 0)
		r = plugin_server_wait(n->server, time_deadline(NODE_TIMEOUT_MS), e);
	return r < 0 ? r : recover(n, e);
}

static void node_init(struct node *n, const char *dir)
{
	const char *build = str_or(getenv("HAWSER_BUILD"), "build");

	*n = (struct node){
		.root = str_printf("%s/root", dir),
		.state = str_printf("%s/state", dir),
		.netns = str_printf("%s/netns", dir),
		.conf = str_printf("%s/net.d", dir),
		.cache = str_printf("%s/cache", dir),
		.logs = str_printf("%s/logs", dir),
		.plugins = str_printf("%s/cni", build),
		.program = str_printf("%s/bin/hawser-plugin", build),
		.pause_program = str_printf("%s/bin/hawser-pause", build),
		.seccomp_program = str_printf("%s/bin/hawser-seccomp", build),
		.seccomp_dir = str_printf("%s/state/seccomp", dir),
	};
	pod_cidr_init(&n->pod_cidr, n->state, n->conf);
	uv_loop_init(&n->loop);
}

static void node_done(struct node *n)
{
	char *const strings[] = {
		n->root,       n->state,   n->netns,   n->conf,		 n->cache,
		n->logs,       n->plugins, n->program, n->pause_program, n->seccomp_program,
		n->seccomp_dir
	};

	pods_close(n->pods);
	network_watch_close(n->network);
	uv_run(&n->loop, UV_RUN_DEFAULT);
	uv_loop_close(&n->loop);
	hw_cni_free(n->cni);
	plugin_server_free(n->server);
	store_close(n->store);
	pause_host_free(n->pause);
	filters_free(n->filters);
	spec_host_done(&n->host);
	cgroup_fs_free(n->cgroups);
	pod_cidr_done(&n->pod_cidr);
	for (size_t i = 0; i < ARRAY_SIZE(strings); i++)
		free(strings[i]);
}

/* ---- what several commands need ----------------------------------------------------- */

void node_set_user_namespace(struct pod_spec *spec)
{
	const struct oci_mapping mapping = { .host_id = 100000, .size = 65536 };
	struct pod_namespaces *n = &spec->namespaces;

	n->has_user = true;
	n->user = POD_MODE_POD;
	n->uids = (struct hw_list){ mem_copy(&mapping, sizeof(mapping)), 1 };
	n->gids = (struct hw_list){ mem_copy(&mapping, sizeof(mapping)), 1 };
}

bool node_find_pod(struct node *n, const char *name, char ret_id[POD_ID])
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

int node_wait(struct node *n, bool (*is_settled)(struct node *n), struct hw_err *e)
{
	int64_t deadline = time_deadline(NODE_TIMEOUT_MS);

	while (!is_settled(n)) {
		if (time_has_passed(deadline))
			return err_text(e, -ETIMEDOUT, "not recovered in time");
		time_sleep(POLL_MS); /* the interval of the polls */
	}
	return 0;
}

/* ---- command line ------------------------------------------------------------------- */

static const struct node_command *find_command(const struct node_program *p, int argc, char **argv)
{
	for (size_t i = 0; argc > 2 && i < p->n_commands; i++)
		if (str_equal(p->commands[i].name, argv[2]) && argc - 3 >= p->commands[i].args)
			return &p->commands[i];
	return NULL;
}

int node_main(int argc, char **argv, const struct node_program *program)
{
	const struct node_command *command;
	struct node n;
	struct hw_err e;
	int r;

	command = find_command(program, argc, argv);
	if (!command) {
		fprintf(stderr, "usage: %s DIR %s\n", program->name, program->usage);
		return 2;
	}
	log_set_level(LOG_WARN);
	node_init(&n, argv[1]);
	r = node_open(&n, program->containers, &e);
	if (r == 0)
		r = command->run(&n, argv + 3, &e);
	if (r >= 0 && (puts("done") < 0 || fflush(stdout) != 0))
		r = err_set(&e, -EIO, "write to standard output");
	node_done(&n);
	if (r < 0)
		fprintf(stderr, "%s: %s\n", program->name, e.msg);
	return r < 0;
}
