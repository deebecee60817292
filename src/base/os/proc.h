/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/os/proc.h - run a program to its end, with bounded time and output
 *
 * What:  start a program with a given environment and input, collect its output
 *        up to a limit, and kill it at a deadline or on cancel.
 * Rules: does not disturb the calling program: waits only for its own child, gets
 *        the correct status even if the calling program ignores SIGCHLD or loops on
 *        waitpid(-1), and changes no signal disposition. The program inherits no
 *        descriptor of the calling program but .lock.
 *        The program leads a new process group, unless .stay is set. At the
 *        deadline, on cancel or after too much output (unless .drop_excess is set),
 *        that group is killed; with
 *        .stay, only the program. After a normal exit nothing is killed: the
 *        program may leave processes running on purpose. A grandchild that still
 *        has the output open does not delay proc_run().
 *        The program's standard input is a file that contains the input.
 */
#ifndef BASE_OS_PROC_H
#define BASE_OS_PROC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

struct child;

struct proc {
	const char *path;	 /* path of the program */
	const char *const *argv; /* NULL at the end; NULL: only the path */
	const char *const *env;	 /* NULL at the end; NULL: our environment */
	const char *input;	 /* standard input; NULL: empty */
	size_t input_len;
	size_t output_max;   /* limit for each of the two outputs; 0: PROC_OUTPUT_MAX */
	bool drop_excess;    /* discard output beyond the limit; else the program is killed */
	bool stderr_through; /* the program inherits our standard error */
	bool stay;	     /* stay in our process group, to be killed together with us */
	int cancel_fd;	     /* the program is killed when this becomes readable; -1: none */
	int64_t deadline;    /* a deadline of base/time.h, or TIME_NEVER */
	/* As in struct child_start; NULL: ours. */
	const int *oom_score;
	int lock; /* the program inherits this descriptor, and holds its flock() until it ends; 0: none */
	/* If set, called where the program would be killed: it must make the program end. If that takes
	 * longer than PROC_STOP_MS, the program is killed. */
	void (*stop)(void *ctx, const struct child *program);
	void *stop_ctx;
};

#define PROC_STOP_MS 2000

#define PROC_OUTPUT_MAX (4 << 20)

struct proc_result {
	int status; /* as waitpid() reports it */
	struct buf output;
	struct buf errors;
};

/* Runs a program and waits for it. *ret is written on success only; free it with
 * proc_result_done(). Nothing is started if the deadline has passed or cancel_fd is readable.
 * Return: 0 if the program ended by itself, with any status; -ETIMEDOUT or -ECANCELED if it
 * was killed or not started; -EFBIG if it was killed because of too much output; another negative
 * errno, such as -ETXTBSY, if it could not be started */
int proc_run(const struct proc *p, struct proc_result *ret, struct hw_err *e);
void proc_result_done(struct proc_result *r);
/* Formats a status like Go: "exit status 1", "signal: killed", "signal: segmentation fault (core
 * dumped)". Return: buf */
const char *proc_status_format(int status, char *buf, size_t size);

AUTO_VALUE_DEFINE(proc_result_done, struct proc_result);

#endif
