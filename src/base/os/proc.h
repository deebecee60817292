/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/os/proc.h - run a program and wait for it, within bounds
 *
 * What:  spawn with a given environment and input, collect bounded output,
 *        honour a deadline and a cancel descriptor.
 * Rules: a good guest: it waits only for its own child, and gets the right
 *        status also when the host ignores SIGCHLD or loops on waitpid(-1); no
 *        signal disposition is changed; no descriptor of the host is passed on.
 *        The child leads its own process group, unless it is to stay in ours;
 *        that group, or the child alone, is killed on deadline, cancel or too
 *        much output, and only then: what a program leaves running after a normal
 *        exit is its own affair, and a grandchild that still holds the output does
 *        not keep us waiting.
 *        The program's standard input is a file that holds the input.
 */
#ifndef BASE_OS_PROC_H
#define BASE_OS_PROC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

struct proc {
	const char *path;	 /* to execute */
	const char *const *argv; /* NULL: just the path */
	const char *const *env;	 /* NULL at the end; NULL: ours */
	const char *input;	 /* standard input; NULL: empty */
	size_t input_len;
	size_t output_max;   /* of each of the two; 0: PROC_OUTPUT_MAX */
	bool stderr_through; /* the child's standard error is ours */
	bool stay;	     /* in our process group: who kills us kills it, too */
	int cancel_fd;	     /* readable: kill; -1: none */
	int64_t deadline;    /* of time.h; TIME_NEVER: none */
};

#define PROC_OUTPUT_MAX (4 << 20)

struct proc_result {
	int status; /* as waitpid() gives it */
	struct buf output;
	struct buf errors;
};

/* Return: 0 when the program ran and ended by itself, whatever its status; -ETIMEDOUT, -ECANCELED,
 * -EFBIG (too much output) after it was killed; else why it could not be started (-ETXTBSY, ...). */
int proc_run(const struct proc *p, struct proc_result *ret, struct hw_err *e);
void proc_result_done(struct proc_result *r);
const char *proc_status_format(int status, char *buf,
			       size_t size); /* "exit status 1", "signal: killed" */

AUTO_VALUE_DEFINE(proc_result_done, struct proc_result);

#endif
