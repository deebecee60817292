/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/os/child.h - child processes that do not disturb the host program
 *
 * What:  start a program, get notified when it ends, kill it with its process
 *        group, get its exit status. For a program whose input and output are
 *        plain bytes, proc.h is simpler.
 * Rules: every child that was started must be waited for with child_wait().
 */
#ifndef BASE_OS_CHILD_H
#define BASE_OS_CHILD_H

#include <stdbool.h>

#include "base/err.h"

struct child;

struct child_start {
	const char *path;
	const char *const *argv; /* NULL at the end */
	const char *const *env;	 /* NULL at the end; NULL: our environment */
	int in, out, err;	 /* become 0, 1 and 2; see CHILD_FD_MIN */
	bool stay;		 /* in our process group; else the program leads a new one */
};

/* A descriptor given as in or out must be at least this, else duplicating the other one could
 * overwrite it. */
#define CHILD_FD_MIN 3

/* Starts a program. All its other descriptors are closed, its signals have default dispositions and
 * are not blocked. *start and everything it points to must stay valid until child_wait().
 * Return: 0, or a negative errno. If the program cannot be executed, either child_start() or
 * child_wait() returns that error. */
int child_start(const struct child_start *start, struct child **ret_child, struct hw_err *e);
int child_fd(const struct child *c); /* becomes readable when child_wait() will not block */
void child_kill(struct child *c);    /* SIGKILL to the program and the process group it leads */

/* Waits for the program and frees the child.
 * Return: 0 with the status as waitpid() reports it; a negative errno if the program could not be
 * executed or its status was lost */
int child_wait(struct child *c, int *ret_status, struct hw_err *e);

#endif
