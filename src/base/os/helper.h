/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/os/helper.h - helper processes: they serve this process on a socket, and end with it
 *
 * What:  helper_start() runs a program as a helper; helper_fork() a function in a copy of this
 *        process. In the helper the socket is descriptor 0 and 1, standard error is ours, the kept
 *        descriptors are HELPER_KEPT, HELPER_KEPT + 1, ..., and no other descriptor is open.
 * Rules: a helper ends as soon as our end of the socket is closed, at any point of its work, so it
 *        never outlives this process. The helper itself sees to that with helper_end_on_eof();
 *        helper_fork() calls it, and also sets the parent-death signal, which a compromised helper
 *        cannot block. For programs this signal would not do: it is sent when the thread ends that
 *        started the process.
 *        A helper may be compromised: its messages are untrusted input.
 */
#ifndef BASE_OS_HELPER_H
#define BASE_OS_HELPER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/mem.h"

#define HELPER_SOCKET	0
#define HELPER_KEPT	3
#define HELPER_KEPT_MAX 4

struct helper;

struct helper_start {
	const char *const *argv; /* path of the program, arguments, NULL */
	/* The environment variables that the program gets, in the form of environment_select(); NULL:
	 * none. It must not see other variables, which may contain secrets of this process. */
	const char *const *env;
	const int *keep; /* duplicated: the caller may close them */
	size_t n_keep;	 /* at most HELPER_KEPT_MAX */
};

/* Return: 0, or a negative errno. If the program cannot be executed, helper_exit_error() may be the
 * first call to report it. */
int helper_start(const struct helper_start *start, struct helper **ret_helper, struct hw_err *e);

/* Forks. The new process calls @run and exits with the status that it returns. This process must
 * have no other thread. */
int helper_fork(int (*run)(void *arg), void *arg, const int *keep, size_t n_keep,
		struct helper **ret_helper, struct hw_err *e);

int helper_socket(const struct helper *h); /* our end */

/* Waits until a program's @fd, its socket or another descriptor that it writes to, has data or EOF.
 * @cancel_fd: or -1. Return: 0; -ECANCELED if @cancel_fd became readable; -ETIMEDOUT at the
 * deadline; or another negative errno */
int helper_wait(struct helper *h, int fd, int cancel_fd, int64_t deadline, struct hw_err *e);

/* Return: a descriptor that becomes readable when the program has ended */
int helper_exit_fd(const struct helper *h);
bool helper_is_running(const struct helper *h);
/* For a program that has closed its socket too early: waits for its exit, and kills it if that takes
 * long. Return: -EIO with "NAME exited unexpectedly: exit status 1", or the error why the program
 * could not be executed */
int helper_exit_error(struct helper *h, const char *name, struct hw_err *e);

/* Kills the process if it is still running. NULL is allowed. */
void helper_free(struct helper *h);

AUTO_DEFINE(helper_free, struct helper);

/* At the start of a helper program: helper_end_on_eof() for HELPER_SOCKET,
 * helper_reset_oom_score() and helper_limit_memory(). */
int helper_init(size_t memory, struct hw_err *e);
/* In the helper: if memory runs out, let the kernel kill the helper before the daemon, whose
 * oom_score_adj it has inherited. */
void helper_reset_oom_score(void);
/* In the helper: erase the environment, so that this process and its forks no longer contain it. Not
 * to be called while other threads run. */
void helper_erase_environment(void);
/* In the helper: limit the memory of this process and its forks, in bytes. A lower limit is kept. */
int helper_limit_memory(size_t memory, struct hw_err *e);
/* In the helper: exit with status 0 when the other end of @socket is closed. To be called again
 * after a change of the user ID. */
int helper_end_on_eof(int socket, struct hw_err *e);
/* In the helper: call @act in a signal handler when the other end of @socket is closed, or shut down
 * for writing; before this function returns, if that has already happened. Replaces the socket that
 * was watched before. The signal is SIGIO: a process that ignores it no longer watches. */
int helper_watch_eof(int socket, void (*act)(void), struct hw_err *e);
/* In a helper of helper_fork(): be killed when the process @parent ends. To be called again after a
 * change of the user ID, with the getppid() from before. Exits if @parent has already ended. */
int helper_end_with_parent(pid_t parent, struct hw_err *e);

#endif
