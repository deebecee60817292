/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench/cri.h - what the files of bench-cri share: sides, operations, steps
 */
#ifndef BENCH_CRI_H
#define BENCH_CRI_H

#include <stdbool.h>
#include <stdint.h>

struct rpc_client;
struct side;

/* One operation of a benchmark: the pod and the container of one sample. */
struct op {
	int number;
	char *pod, *container; /* IDs */
};

/* Performs a step of an operation. Returns the nanoseconds that it took; ends the program on an
 * error. @client is the connection of the calling thread, NULL for a side that has none. */
typedef int64_t step_run(const struct side *side, struct rpc_client *client, struct op *op);

struct step {
	const char *name;
	step_run *run;
};

struct side_kind {
	const char *name;
	const struct step *steps; /* NULL name at the end */
	bool has_client;
	void (*open)(struct side *side);
	void (*close)(struct side *side);
};

/* A runtime, or a lower bound. */
struct side {
	const struct side_kind *kind;
	const char *target; /* of a runtime: its socket; see bench/cri.c for the others */
	const char *dir;    /* exists: logs of containers, files of the lower bounds */
	void *state;	    /* of the kind */
};

extern const struct side_kind kind_cri;		      /* cri-calls.c */
extern const struct side_kind kind_serve, kind_probe; /* cri-network.c */
extern const struct side_kind kind_crun;	      /* cri-crun.c */
extern const struct side_kind kind_files;	      /* cri-files.c */

void __attribute__((noreturn)) cri_die(const char *what, const char *why);

#endif
