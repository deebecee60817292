/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/os/child.h - a program of ours, in whatever process we are a guest of
 *
 * What:  start a program, learn when it ends, kill it with its process group,
 *        get its exit status. proc.h is what others use; this is below it.
 * Rules: a child that was started is waited for, always: child_wait() ends it.
 */
#ifndef BASE_OS_CHILD_H
#define BASE_OS_CHILD_H

#include <stdbool.h>

#include "base/err.h"

struct child;

struct child_start {
	const char *path;
	const char *const *argv; /* NULL at the end */
	const char *const *env;	 /* NULL at the end; NULL: ours */
	int in, out, err;	 /* become 0, 1 and 2; see CHILD_FD_MIN */
	bool stay;		 /* in our process group; else it leads one of its own */
};

/* A descriptor given as in or out is this or higher, so that it is not overwritten by the other. */
#define CHILD_FD_MIN 3

int child_start(const struct child_start *start, struct child **ret_child, struct hw_err *e);
int child_fd(const struct child *c); /* readable once child_wait() will not block */
void child_kill(struct child *c);    /* with the process group that it leads */

/* Wait, and free the child. Return: 0 and the status as waitpid() gives it; or why the program
 * could not be executed, which may be known only now. */
int child_wait(struct child *c, int *ret_status, struct hw_err *e);

#endif
