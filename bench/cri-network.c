/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench/cri-network.c - lower bounds of a pod: its network by serve, and the kernel's share of it
 *
 *	run	creates the network namespace, which is not timed, and attaches it: by hw_add()
 *		with the plugins that `hawser-plugin serve` runs, or by the program bench-probe
 *	stop	detaches it
 *	remove	deletes the namespace, not timed
 *
 * How:   the plugins run in the network namespace of this process, which stands for the host.
 * Rules: for bench-probe, `bench-probe setup` must have run there.
 */
#include "cri.h"

#include <stdlib.h>
#include <string.h>

#include <hawser/cni.h>

#include "base/mem.h"
#include "base/os/proc.h"
#include "base/str.h"
#include "base/time.h"
#include "pod/network/plugin-server.h"

#define QUEUES "1" /* as in src/plugins/pod/link.c */

struct network {
	struct plugin_server *server;
	struct hw_conf *conf;
	struct hw_cni *cni;
};

/* ---- programs ----------------------------------------------------------------------- */

/* Returns the number that the program prints; 0 if it prints nothing. */
static int64_t run_program(const char *const *argv)
{
	AUTO(proc_result_done) struct proc_result result = { 0 };
	struct hw_err e;

	if (proc_run(&(struct proc){ .path = argv[0],
				     .argv = argv,
				     .cancel_fd = -1,
				     .deadline = TIME_NEVER },
		     &result, &e) < 0)
		cri_die(argv[0], e.msg);
	if (result.status != 0)
		cri_die(argv[0], str_or(result.errors.data, ""));
	return strtoll(str_or(result.output.data, "0"), NULL, 10);
}

static char *netns_name(const struct side *side, const struct op *op)
{
	return str_printf("bench-%s-%d", side->kind->name, op->number);
}

static char *change_netns(const struct side *side, const struct op *op, const char *verb)
{
	autofree char *name = netns_name(side, op);

	run_program((const char *const[]){ "/usr/sbin/ip", "netns", verb, name, NULL });
	return str_printf("/run/netns/%s", name);
}

static int64_t remove_netns(const struct side *side, struct rpc_client *client, struct op *op)
{
	(void)client;
	free(change_netns(side, op, "delete"));
	return 0;
}

/* ---- serve -------------------------------------------------------------------------- */

static void open_network(struct side *side)
{
	struct network *n = mem_new(sizeof(*n));
	autofree char *plugins = str_printf("%s/cni", side->target);
	autofree char *program = str_printf("%s/bin/hawser-plugin", side->target);
	autofree char *cache = str_printf("%s/cache", side->dir);
	autofree char *conf_dir = str_printf("%s/net.d", side->dir);
	const char *const dirs[] = { plugins, NULL };
	struct hw_cni_options options = { .size = sizeof(options),
					  .plugin_dirs = dirs,
					  .cache_dir = cache,
					  .state_dir = side->dir };
	struct hw_err e;

	n->server = plugin_server_new(&(struct plugin_server_options){
		.plugin_dirs = plugins, .program = program, .state_dir = side->dir });
	options.exec = plugin_server_exec(n->server);
	if (hw_conf_load(conf_dir, "pods", &n->conf, &e) < 0 ||
	    hw_cni_new(&options, &n->cni, &e) < 0)
		cri_die(side->dir, e.msg);
	side->state = n;
}

static void close_network(struct side *side)
{
	struct network *n = side->state;

	hw_conf_free(n->conf);
	hw_cni_free(n->cni);
	plugin_server_free(n->server);
	free(n);
}

static int64_t attach(const struct side *side, struct rpc_client *client, struct op *op)
{
	autofree char *netns = change_netns(side, op, "add"), *id = str_printf("pod%d", op->number);
	const struct hw_attach at = {
		.size = sizeof(at), .container_id = id, .netns = netns, .ifname = "eth0"
	};
	const struct network *n = side->state;
	struct hw_result *result = NULL;
	int64_t started = time_now(), ns;
	struct hw_err e;

	(void)client;
	if (hw_add(n->cni, n->conf, &at, 0, &result, &e) < 0)
		cri_die(netns, e.msg);
	ns = time_now() - started;
	hw_result_free(result);
	return ns;
}

static int64_t detach(const struct side *side, struct rpc_client *client, struct op *op)
{
	autofree char *name = netns_name(side, op), *netns = str_printf("/run/netns/%s", name);
	autofree char *id = str_printf("pod%d", op->number);
	const struct hw_attach at = {
		.size = sizeof(at), .container_id = id, .netns = netns, .ifname = "eth0"
	};
	const struct network *n = side->state;
	int64_t started = time_now();
	struct hw_err e;

	(void)client;
	if (hw_del(n->cni, n->conf, &at, &e) < 0)
		cri_die(netns, e.msg);
	return time_now() - started;
}

static const struct step serve_steps[] = {
	{ "run", attach },	    { "run-pause", attach }, { "stop", detach },
	{ "remove", remove_netns }, { NULL, NULL },
};

const struct side_kind kind_serve = {
	.name = "serve", .steps = serve_steps, .open = open_network, .close = close_network
};

/* ---- probe -------------------------------------------------------------------------- */

static int64_t probe(const struct side *side, const char *operation, const struct op *op,
		     const char *netns)
{
	autofree char *number = str_printf("%d", op->number);

	return run_program(
		(const char *const[]){ side->target, operation, number, netns, QUEUES, NULL });
}

static int64_t probe_add(const struct side *side, struct rpc_client *client, struct op *op)
{
	autofree char *netns = change_netns(side, op, "add");

	(void)client;
	return probe(side, "bridge", op, netns);
}

static int64_t probe_del(const struct side *side, struct rpc_client *client, struct op *op)
{
	autofree char *name = netns_name(side, op), *netns = str_printf("/run/netns/%s", name);

	(void)client;
	return probe(side, "del", op, netns);
}

static const struct step probe_steps[] = {
	{ "run", probe_add },  { "run-pause", probe_add },
	{ "stop", probe_del }, { "remove", remove_netns },
	{ NULL, NULL },
};

const struct side_kind kind_probe = { .name = "probe", .steps = probe_steps };
