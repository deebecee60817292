/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench/cri.c - time operations on pods and containers of CRI runtimes
 *
 * What:  bench-cri [--clients N [--hold]] [--shared-pod] SAMPLES STEPS CLEANUP SIDE...
 *        A sample is one operation for each side: the words of STEPS, in order; those that
 *        begin with + are timed. CLEANUP are the steps that undo it. Prints a line for each
 *        sample: the nanoseconds of each side.
 *        With --shared-pod all operations use one pod per side, created in advance.
 *        With --clients each side performs all operations at once, N at a time, then the
 *        next side. The cleanup follows after the last operation. The first line has the
 *        total nanoseconds of each side; the other lines are as above. With --hold it
 *        prints a line before each cleanup, and waits until its standard input ends.
 *        SIDE is KIND:TARGET:DIR. DIR is an existing directory for its files. KIND is
 *          cri    a CRI runtime; TARGET is its socket
 *          serve  the network of a pod by `hawser-plugin serve`; TARGET is the build directory,
 *                 DIR/net.d has the network "pods"
 *          probe  the kernel's share of that; TARGET is the program bench-probe
 *          crun   crun without a runtime above it; TARGET is a container's config.json
 *          files  files of cgroups, read in a loop; TARGET is a list of them
 * How:   one thread for each client. Without --clients the sides alternate, each sample
 *        starts with another one, and a tenth of the samples is run first and not printed.
 */
#include "cri.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/os/thread.h"
#include "base/str.h"
#include "base/time.h"
#include "rpc/client.h"

#define SIDES	    4
#define CLIENTS_MAX 256
#define SAMPLES_MAX 100000
#define SHARED_POD  SAMPLES_MAX /* its number */
#define SETTLE_MS   1000	/* between two sides with many clients */

static const struct side_kind *const kinds[] = { &kind_cri, &kind_serve, &kind_probe, &kind_crun,
						 &kind_files };

struct bench {
	struct side sides[SIDES];
	int n_sides;
	long long samples, clients;
	bool shared_pod, hold;
	char *steps, *cleanup;
};

void cri_die(const char *what, const char *why)
{
	fprintf(stderr, "bench-cri: %s: %s\n", what, why);
	exit(1);
}

/* ---- steps -------------------------------------------------------------------------- */

static int64_t run_step(const struct side *side, struct rpc_client *client, struct op *op,
			const char *name)
{
	for (const struct step *s = side->kind->steps; s->name; s++)
		if (strcmp(s->name, name) == 0)
			return s->run(side, client, op);
	/* a lower bound has only some of the steps */
	if (side->kind == &kind_cri)
		cri_die("unknown step", name);
	return 0;
}

/* Returns the time of the steps that are timed. */
static int64_t run_steps(const struct side *side, struct rpc_client *client, struct op *op,
			 const char *steps)
{
	autofree char *words = str_copy(steps);
	int64_t total = 0;
	char *rest = words;

	for (const char *word; (word = strsep(&rest, " "));) {
		int64_t ns;

		if (!*word)
			continue;
		ns = run_step(side, client, op, word + (*word == '+'));
		if (*word == '+')
			total += ns;
	}
	return total;
}

static struct rpc_client *connect_side(const struct side *side)
{
	struct rpc_client *client = NULL;
	struct hw_err e;

	if (side->kind->has_client && rpc_client_open(side->target, &client, &e) < 0)
		cri_die(side->target, e.msg);
	return client;
}

static void op_done(struct op *op)
{
	free(op->pod);
	free(op->container);
}

/* ---- one operation after the other -------------------------------------------------- */

static void run_alternately(const struct bench *b)
{
	struct rpc_client *clients[SIDES] = { 0 };
	struct op shared[SIDES] = { 0 };

	for (int i = 0; i < b->n_sides; i++) {
		clients[i] = connect_side(&b->sides[i]);
		shared[i].number = SHARED_POD;
		if (b->shared_pod)
			run_steps(&b->sides[i], clients[i], &shared[i], "run");
	}
	for (long long n = -b->samples / 10; n < b->samples; n++) {
		int64_t ns[SIDES];

		for (int i = 0; i < b->n_sides; i++) {
			long long number = n + b->samples / 10;
			int s = (int)((number + i) % b->n_sides);
			struct op op = { .number = (int)number, .pod = str_copy(shared[s].pod) };

			ns[s] = run_steps(&b->sides[s], clients[s], &op, b->steps);
			run_steps(&b->sides[s], clients[s], &op, b->cleanup);
			op_done(&op);
		}
		for (int i = 0; n >= 0 && i < b->n_sides; i++)
			printf("%" PRId64 "%c", ns[i], i + 1 < b->n_sides ? ' ' : '\n');
	}
	for (int i = 0; i < b->n_sides; i++) {
		if (b->shared_pod)
			run_steps(&b->sides[i], clients[i], &shared[i], "stop remove");
		op_done(&shared[i]);
		rpc_client_close(clients[i]);
	}
}

/* ---- many clients ------------------------------------------------------------------- */

struct crowd {
	const struct side *side;
	const char *steps;
	struct op *ops;
	int64_t *ns;
	atomic_llong next;
	long long n;
};

static void *run_client(void *arg)
{
	struct crowd *c = arg;
	struct rpc_client *client = connect_side(c->side);

	for (long long i; (i = atomic_fetch_add(&c->next, 1)) < c->n;)
		c->ns[i] = run_steps(c->side, client, &c->ops[i], c->steps);
	rpc_client_close(client);
	return NULL;
}

/* Returns the total time. */
static int64_t run_crowd(const struct bench *b, const struct side *side, const char *steps,
			 struct op *ops, int64_t *ret_ns)
{
	struct crowd c = {
		.side = side, .steps = steps, .ops = ops, .ns = ret_ns, .n = b->samples
	};
	pthread_t threads[CLIENTS_MAX];
	int64_t start = time_now();
	struct hw_err e;

	for (long long i = 0; i < b->clients; i++)
		if (thread_start(run_client, &c, &threads[i], &e) < 0)
			cri_die("thread", e.msg);
	for (long long i = 0; i < b->clients; i++)
		pthread_join(threads[i], NULL);
	return time_now() - start;
}

static void hold(void)
{
	puts("hold");
	fflush(stdout);
	while (getchar() != EOF)
		;
}

static int64_t run_side(const struct bench *b, const struct side *side, int64_t *ret_ns)
{
	size_t n = (size_t)b->samples;
	autofree struct op *ops = mem_new(n * sizeof(*ops));
	autofree int64_t *ns = mem_new(n * sizeof(*ns));
	int64_t total;

	for (size_t i = 0; i < n; i++)
		ops[i].number = (int)i;
	total = run_crowd(b, side, b->steps, ops, ret_ns);
	if (b->hold)
		hold();
	run_crowd(b, side, b->cleanup, ops, ns);
	for (size_t i = 0; i < n; i++)
		op_done(&ops[i]);
	time_sleep(SETTLE_MS);
	return total;
}

static void run_together(const struct bench *b)
{
	int64_t *ns[SIDES];

	for (int i = 0; i < b->n_sides; i++) {
		ns[i] = mem_new((size_t)b->samples * sizeof(int64_t));
		printf("%" PRId64 "%c", run_side(b, &b->sides[i], ns[i]),
		       i + 1 < b->n_sides ? ' ' : '\n');
	}
	for (long long n = 0; n < b->samples; n++)
		for (int i = 0; i < b->n_sides; i++)
			printf("%" PRId64 "%c", ns[i][n], i + 1 < b->n_sides ? ' ' : '\n');
	for (int i = 0; i < b->n_sides; i++)
		free(ns[i]);
}

/* ---- the program -------------------------------------------------------------------- */

static void __attribute__((noreturn)) usage(void)
{
	fputs("usage: bench-cri [--clients N [--hold]] [--shared-pod] SAMPLES STEPS CLEANUP "
	      "KIND:TARGET:DIR...\n",
	      stderr);
	exit(2);
}

static void open_side(struct side *side, char *text)
{
	char *rest = text, *name = strsep(&rest, ":");

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (strcmp(kinds[i]->name, name) == 0)
			side->kind = kinds[i];
	side->target = strsep(&rest, ":");
	side->dir = rest;
	if (!side->kind || !side->target || !side->dir)
		usage();
	if (side->kind->open)
		side->kind->open(side);
}

static void parse_options(struct bench *b, int *argc, char ***argv)
{
	while (*argc > 1 && str_starts((*argv)[1], "--")) {
		const char *word = (*argv)[1];
		bool clients = strcmp(word, "--clients") == 0;

		if (strcmp(word, "--shared-pod") == 0)
			b->shared_pod = true;
		else if (strcmp(word, "--hold") == 0)
			b->hold = true;
		else if (!clients || *argc < 3 ||
			 !str_to_int64((*argv)[2], 1, CLIENTS_MAX, &b->clients))
			usage();
		*argc -= 1 + clients;
		*argv += 1 + clients;
	}
}

int main(int argc, char **argv)
{
	struct bench b = { 0 };

	parse_options(&b, &argc, &argv);
	if (argc < 5 || argc > 4 + SIDES || !str_to_int64(argv[1], 1, SAMPLES_MAX, &b.samples))
		usage();
	b.steps = argv[2];
	b.cleanup = argv[3];
	for (int i = 4; i < argc; i++)
		open_side(&b.sides[b.n_sides++], argv[i]);
	if (b.clients)
		run_together(&b);
	else
		run_alternately(&b);
	for (int i = 0; i < b.n_sides; i++)
		if (b.sides[i].kind->close)
			b.sides[i].kind->close(&b.sides[i]);
	return 0;
}
