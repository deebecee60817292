/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci/run/runtime.h - calls of an OCI runtime program, such as crun
 *
 * What:  the operations on a container that exists: start, kill, delete, state, update, pause. A
 *        container is created by its monitor (monitor.h), and commands in it are run by exec.h.
 * Rules: every call has a deadline, at which the program is killed with -ETIMEDOUT. An error contains
 *        the program's own text. The program gets a small fixed environment and no descriptor of this
 *        process. The calls are safe in threads; the caller orders calls for the same container.
 */
#ifndef OCI_RUN_RUNTIME_H
#define OCI_RUN_RUNTIME_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/os/proc.h"
#include "oci/spec/spec.h"

struct runtime {
	const char *program; /* path */
	const char *root;    /* directory of its state */
	bool systemd_cgroup; /* cgroups are made by systemd */
};

/* The environment of crun and conmon. */
extern const char *const runtime_env[];

/* Starts a container that was created. */
int runtime_start(const struct runtime *rt, const char *id, int64_t deadline, struct hw_err *e);

/* Sends a signal to the first process of a container, or to all processes in its cgroup. Return: 0;
 * 1 if the container does not run, or does not exist; or a negative errno */
int runtime_kill(const struct runtime *rt, const char *id, int signal, bool all, int64_t deadline,
		 struct hw_err *e);

/* Kills all processes of a container, and removes its cgroups and the runtime's state. Return: 0, also if
 * the container does not exist; or a negative errno */
int runtime_delete(const struct runtime *rt, const char *id, int64_t deadline, struct hw_err *e);

enum runtime_status { RUNTIME_CREATED, RUNTIME_RUNNING, RUNTIME_PAUSED, RUNTIME_STOPPED };

struct runtime_state {
	enum runtime_status status;
	pid_t pid; /* 0 if stopped */
};

/* A container whose start was interrupted, so that it never runs, is reported as created.
 * Return: 1; 0 if the container does not exist; or a negative errno */
int runtime_get_state(const struct runtime *rt, const char *id, int64_t deadline,
		      struct runtime_state *ret_state, struct hw_err *e);

/* Changes limits of a container that was created or runs. Some may be changed and others not if it fails:
 * update.h has all or nothing. @lock: held until crun has ended; 0: none. Return: 0; as runtime_error_code(); or another negative errno */
int runtime_update(const struct runtime *rt, const char *id, const struct oci_limits *limits,
		   int lock, int64_t deadline, struct hw_err *e);

int runtime_pause(const struct runtime *rt, const char *id, int64_t deadline, struct hw_err *e);
int runtime_resume(const struct runtime *rt, const char *id, int64_t deadline, struct hw_err *e);

/* ---- for monitor.c and exec.c ---------------------------------------------------------------- */

/* Adds the program's options that come before the command, such as --root. */
void runtime_add_options(const struct runtime *rt, struct hw_strings *argv);
/* What the program wrote to standard error, as one line of bounded length. Return: allocated */
char *runtime_error_text(const char *text);
/* What a text of a failed create, update or exec says. Return: -EINVAL if a value of the request is at fault, such as
 * a program that does not exist; -EBUSY if a limit is below what is in use; -EIO for any other error */
int runtime_error_code(const char *text);

#endif
