/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench/serve.c - time a chain of plugins that `hawser-plugin serve` runs
 *
 * What:  serve add|del SAMPLES NAME DIR PROGRAM OURS PEER PROBE
 *        prints a line for each sample, in nanoseconds, like bench/spawn.c: the time of
 *        hw_add() or hw_del() with the plugins in the directory OURS, run by serve of
 *        PROGRAM; with those in PEER, which are executed; and the time that PROBE prints
 *        (bench/probe.c). DIR has the networks in net.d; state and caches are kept there.
 * How:   the networks, hosts and pods are those of bench/lib/chain.py: NAME-SIDE is a
 *        network, NAME-SIDE-host the namespace of its host, and NAME-SIDE-N that of a pod.
 *        The sides alternate, and each sample starts with another one. A tenth of the
 *        samples is run first and not printed.
 *        After a DEL a pause that is not counted lets background processes and the kernel
 *        finish.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <hawser/cni.h>

#include "base/mem.h"
#include "base/os/proc.h"
#include "base/str.h"
#include "base/time.h"
#include "pod/network/plugin-server.h"

#define SIDES	  3
#define SETTLE_MS 40
#define PORTS	  30000
#define QUEUES	  "1" /* as in src/plugins/pod/link.c */

struct side {
	const char *name;
	int host; /* namespace */
	struct hw_conf *conf;
	struct hw_cni *cni;
	const char *probe; /* program; NULL: cni is used */
};

struct bench {
	const char *name, *dir;
	bool del;
	struct plugin_server *server;
	struct side sides[SIDES];
	int n_sides;
};

static void __attribute__((noreturn)) die(const char *what, const char *why)
{
	fprintf(stderr, "serve: %s: %s\n", what, why);
	exit(1);
}

static void enter_host(const struct side *side)
{
	if (setns(side->host, CLONE_NEWNET) < 0)
		die(side->name, strerror(errno));
}

static int64_t run_plugins(const struct bench *b, const struct side *side, int pod)
{
	autofree char *netns = str_printf("/run/netns/%s-%s-%d", b->name, side->name, pod);
	autofree char *id = str_printf("pod%d", pod);
	autofree char *ports = str_printf("{\"portMappings\":[{\"hostPort\":%d,"
					  "\"containerPort\":7777,\"protocol\":\"udp\"}]}",
					  PORTS + pod);
	const struct hw_attach at = { .size = sizeof(at),
				      .container_id = id,
				      .netns = netns,
				      .ifname = "eth0",
				      .capability_args = ports };
	struct hw_result *result = NULL;
	int64_t start = time_now(), ns;
	struct hw_err e;
	int r;

	r = b->del ? hw_del(side->cni, side->conf, &at, &e)
		   : hw_add(side->cni, side->conf, &at, 0, &result, &e);
	ns = time_now() - start;
	if (r < 0)
		die(side->name, e.msg);
	hw_result_free(result);
	return ns;
}

static int64_t run_probe(const struct bench *b, const struct side *side, int pod)
{
	autofree char *netns = str_printf("/run/netns/%s-%s-%d", b->name, side->name, pod);
	autofree char *number = str_printf("%d", pod);
	const char *const argv[] = { side->probe, b->del ? "chain-del" : "chain",
				     number,	  netns,
				     QUEUES,	  NULL };
	AUTO(proc_result_done) struct proc_result result = { 0 };
	struct hw_err e;

	if (proc_run(&(struct proc){ .path = side->probe,
				     .argv = argv,
				     .cancel_fd = -1,
				     .deadline = TIME_NEVER },
		     &result, &e) < 0)
		die(side->probe, e.msg);
	if (result.status != 0)
		die(side->probe, str_or(result.errors.data, ""));
	return strtoll(result.output.data, NULL, 10);
}

static void add_side(struct bench *b, const char *name, const char *plugins,
		     const struct hw_exec *exec, const char *probe)
{
	struct side *side = &b->sides[b->n_sides++];
	autofree char *host = str_printf("/run/netns/%s-%s-host", b->name, name);
	autofree char *network = str_printf("%s-%s", b->name, name);
	autofree char *cache = str_printf("%s/cache-%s", b->dir, name);
	autofree char *conf_dir = str_printf("%s/net.d", b->dir);
	const char *const dirs[] = { plugins, NULL };
	const struct hw_cni_options options = { .size = sizeof(options),
						.plugin_dirs = dirs,
						.cache_dir = cache,
						.state_dir = b->dir,
						.exec = exec };
	struct hw_err e;

	side->name = name;
	side->probe = probe;
	side->host = open(host, O_RDONLY | O_CLOEXEC);
	if (side->host < 0)
		die(host, strerror(errno));
	if (!probe && (hw_conf_load(conf_dir, network, &side->conf, &e) < 0 ||
		       hw_cni_new(&options, &side->cni, &e) < 0))
		die(network, e.msg);
}

static void run_sample(const struct bench *b, int pod, int64_t ns[SIDES])
{
	for (int i = 0; i < SIDES; i++) {
		int n = (pod + i) % SIDES;
		const struct side *side = &b->sides[n];

		enter_host(side);
		ns[n] = side->probe ? run_probe(b, side, pod) : run_plugins(b, side, pod);
		if (b->del)
			(void)poll(NULL, 0, SETTLE_MS);
	}
}

int main(int argc, char **argv)
{
	long samples = argc == 9 ? strtol(argv[2], NULL, 10) : 0;
	struct bench b = { 0 };

	if (samples <= 0 || (strcmp(argv[1], "add") != 0 && strcmp(argv[1], "del") != 0))
		die("usage", "serve add|del SAMPLES NAME DIR PROGRAM OURS PEER PROBE");
	b.del = strcmp(argv[1], "del") == 0;
	b.name = argv[3];
	b.dir = argv[4];
	b.server = plugin_server_new(&(struct plugin_server_options){
		.plugin_dirs = argv[6], .program = argv[5], .state_dir = argv[4] });
	add_side(&b, "ours", argv[6], plugin_server_exec(b.server), NULL);
	add_side(&b, "go", argv[7], NULL, NULL);
	add_side(&b, "probe", NULL, NULL, argv[8]);
	for (long i = 0; i < samples + samples / 10; i++) {
		int64_t ns[SIDES];

		run_sample(&b, (int)i, ns);
		if (i >= samples / 10)
			printf("%lld %lld %lld\n", (long long)ns[0], (long long)ns[1],
			       (long long)ns[2]);
	}
	for (int i = 0; i < SIDES; i++) {
		hw_conf_free(b.sides[i].conf);
		hw_cni_free(b.sides[i].cni);
	}
	plugin_server_free(b.server);
	return 0;
}
