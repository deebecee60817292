/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/os/child.h - child processes that do not disturb the calling program
 *
 * What:  start a program, get notified when it ends, kill it with its process
 *        group, and get its exit status. For a program whose input and output are
 *        plain bytes, proc.h is simpler.
 * Rules: child_wait() must be called for every child that was started.
 */
#ifndef BASE_OS_CHILD_H
#define BASE_OS_CHILD_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "base/err.h"

struct child;

struct child_start {
	const char *path;
	const char *const *argv; /* NULL at the end */
	const char *const *env;	 /* NULL at the end; NULL: our environment */
	const char *dir;	 /* working directory; NULL: ours */
	int in, out, err; /* become descriptors 0, 1 and 2 of the program; see CHILD_FD_MIN */
	const int *keep;  /* become descriptors 3, 4, ... of the program; see CHILD_FD_MIN */
	size_t n_keep;
	bool stay; /* stay in our process group; else the program leads a new group */
	/* oom_score_adj of the program, from its start; NULL: ours. A lower one than ours needs
	 * CAP_SYS_RESOURCE. If it cannot be set, the program is not executed. */
	const int *oom_score;
};

/* .in, .out and .keep must be at least CHILD_FD_MIN + .n_keep: a lower number could be overwritten
 * when another descriptor is duplicated to its number in the program. */
#define CHILD_FD_MIN 3

/* Starts a program with no descriptors except 0, 1, 2 and the kept ones. Its signals have their
 * default dispositions and are not blocked; see also child_raise_files(). *start and everything it points to must stay valid until
 * child_wait().
 * Return: 0, or a negative errno. If the program cannot be executed, either child_start() or
 * child_wait() returns that error. */
int child_start(const struct child_start *start, struct child **ret_child, struct hw_err *e);
int child_fd(const struct child *c); /* becomes readable when child_wait() will not block */
/* The process ID of the program, valid while it runs; 0 if it is not started yet. */
pid_t child_pid(const struct child *c);
/* Sends SIGKILL to the program and to the process group that it leads. */
void child_kill(struct child *c);

/* Waits for the program and frees the child.
 * Return: 0 with the status as waitpid() reports it; a negative errno if the program could not be
 * executed or its status was lost */
int child_wait(struct child *c, int *ret_status, struct hw_err *e);

/* Raises this process's soft limit of open files to @wanted, or to the hard limit if that is lower.
 * Programs are started with the limit from before, because select() fails above 1024. To be called
 * once, while there is no other thread. */
void child_raise_files(rlim_t wanted);

#endif
