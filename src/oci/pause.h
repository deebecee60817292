/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci/pause.h - the process 1 of a PID namespace that a pod's containers share (hawser-pause)
 *
 *	r = pause_start(host, &files, &p, e);		a new PID namespace; the process waits
 *	...						pin /proc/PID/ns/pid, record the pod
 *	r = pause_go(&p, e);				from here on it outlives the daemon
 *	...						perhaps in the next daemon
 *	r = pause_kill(pid, &ns, deadline, e);
 */
#ifndef OCI_PAUSE_H
#define OCI_PAUSE_H

#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"

/* What all pause processes of a daemon share; does not change. */
struct pause_host;
struct namespace_id;

/* @program: the path of hawser-pause. Creates an empty mount namespace, in which the processes will
 * be; so they do not keep mounts of the host busy, and containers do not find the host's files
 * through /proc/1/root. */
int pause_host_new(const char *program, struct pause_host **ret_host, struct hw_err *e);
void pause_host_free(struct pause_host *host); /* accepts NULL */
AUTO_DEFINE(pause_host_free, struct pause_host);

struct pause_process {
	pid_t pid;
	int pidfd;
	int go; /* the socket to the process; -1 after pause_go() */
};

/* Starts a process that is in the namespaces of the calling thread, except PID and mount. It is a
 * child of this process, without an exit signal: the process that waits for it reaps it.
 * @cgroup_files: see cgroup_procs_files(); the process enters these cgroups some time after
 * pause_go(). @user: a user namespace; the process is its root, and the PID namespace belongs to it. -1: that of
 * the caller */
int pause_start(const struct pause_host *host, const struct hw_strings *cgroup_files, int user,
		struct pause_process *ret_process, struct hw_err *e);
/* Lets the process live on. Before, it ends with this process. */
int pause_go(struct pause_process *process, struct hw_err *e);
/* Kills and reaps the process if pause_go() was not called, and closes the descriptors. */
void pause_process_done(struct pause_process *process);
AUTO_VALUE_DEFINE(pause_process_done, struct pause_process);

/* Opens the process if it is in this PID namespace. Return: 1 with a pidfd, which is readable if
 * the process has ended, but was not waited for; 0 if it does not exist; or a negative errno */
int pause_open(pid_t pid, const struct namespace_id *ns, int *ret_pidfd, struct hw_err *e);

/* Kills the process if it is in this PID namespace, and waits for its end: then all processes of
 * the namespace have ended. A process with the same ID in another namespace is left alone. The
 * process may have been started by this or by an earlier daemon. Return: 0, also if it does not
 * exist; -ETIMEDOUT; or another negative errno */
int pause_kill(pid_t pid, const struct namespace_id *ns, int64_t deadline, struct hw_err *e);

#endif
