/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci/run/monitor.h - the monitor of a container: conmon
 *
 * What:  conmon is the parent of a container's first process. It writes the output to the log, serves
 *        clients that attach, and records the exit code. It outlives this process. Nothing but this
 *        header depends on conmon.
 * How:   everything of a container is in its bundle, a directory that only root can enter:
 *
 *	config.json	written by the caller before monitor_create()
 *	lock		conmon, and crun while it creates the container, have inherited a shared lock on
 *			it. While the lock is held, one of them lives. After a restart, a process with the
 *			number from conmon.pid is conmon only if it has this file open.
 *	conmon.pid, pidfile	process IDs of conmon and of the container
 *	attach		socket for clients that attach
 *	ctl		FIFO for commands: reopen the log, resize the terminal
 *	exit, oom	exit code; exists if the kernel killed a process for lack of memory
 *
 * Rules: when a container has ended, conmon writes DIRECTORY/ID with the exit code, by a rename, and ends;
 *        so one inotify on that directory reports all exits. If conmon is killed, the container continues,
 *        but its output and its exit code are lost.
 */
#ifndef OCI_RUN_MONITOR_H
#define OCI_RUN_MONITOR_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "oci/cgroup.h"
#include "oci/run/runtime.h"

struct monitor_create {
	const char *program; /* path of conmon */
	const struct runtime *runtime;
	const struct cgroup_fs *fs; /* makes it faster: grace.h; NULL: not used */
	const char *id;
	const char *bundle;
	const char *log;   /* path; its directory must exist. NULL: output is discarded */
	const char *exits; /* directory for exit codes */
	bool terminal;	   /* config.json must say the same */
	bool open_stdin;   /* clients can write to standard input; else it is /dev/null */
	/* with a user namespace, crun gives the streams to its root, which must not get /dev/null of the
	 * host: standard input is a pipe, which has ended if clients cannot write to it */
	bool user_namespace;
	bool stdin_once; /* standard input is closed when the first client has closed it */
	int cancel_fd;	 /* the creation fails when this becomes readable; -1: none */
	int64_t deadline;
};

/* A monitor that lives. */
struct monitor {
	int pidfd;	 /* of conmon; readable when it has ended */
	pid_t pid;	 /* of conmon */
	pid_t container; /* first process of the container; 0: it is not created, or has ended */
};

/* Creates a container: it waits for runtime_start(). If that fails, no process of it is left, and the
 * runtime has no state of it; the caller removes its cgroup and the bundle.
 * Return: 0; -EIO with the runtime's text; -ETIMEDOUT; -ECANCELED; or another negative errno */
int monitor_create(const struct monitor_create *c, struct monitor *ret, struct hw_err *e);
void monitor_done(struct monitor *m); /* closes the descriptor; conmon continues */
AUTO_VALUE_DEFINE(monitor_done, struct monitor);

/* Finds the monitor of a bundle again, after a restart of this process. Return: 1; 0 if it has ended;
 * -EBUSY if another process has the lock, and the one of conmon.pid certainly has not: a container is just
 * being created there, or its creation was interrupted: monitor_end(); another negative errno if the monitor
 * may live */
int monitor_adopt(const char *bundle, struct monitor *ret, struct hw_err *e);

/* Whether conmon or crun lives. Return: 1 or 0; or a negative errno */
int monitor_is_alive(const char *bundle, struct hw_err *e);

/* Kills conmon, and crun if it is creating a container. The container itself may continue: see
 * runtime_delete(). Return: 0, also if neither lives; -ETIMEDOUT */
int monitor_end(const char *bundle, int64_t deadline, struct hw_err *e);

struct monitor_exit {
	int code;     /* 128 + N if it was killed by signal N */
	int64_t time; /* wall clock, ns */
	bool oom;     /* the kernel killed a process of the container for lack of memory */
};

/* How the container has ended. Return: 1; 0 if there is no exit code, because it runs, was never started,
 * or its monitor was killed; -EBADMSG; or another negative errno */
int monitor_get_exit(const char *bundle, struct monitor_exit *ret, struct hw_err *e);

/* Starts a new log file, after the old one was renamed. Returns when the new file exists at @log.
 * Return: 0; -ESRCH if the monitor does not live; -ETIMEDOUT; or another negative errno */
int monitor_reopen_log(const char *bundle, const char *log, int64_t deadline, struct hw_err *e);

/* Connects a client. Each packet that it reads is a byte, 2 for standard output and 3 for standard error,
 * and at most MONITOR_PACKET bytes of output; the end of the container is EOF. What it writes is standard
 * input. A client that connects before runtime_start() misses no output.
 * Return: 0 with a non-blocking socket (SOCK_SEQPACKET); -ESRCH; or another negative errno */
int monitor_attach(const char *bundle, int *ret_fd, struct hw_err *e);

#define MONITOR_PACKET 8192

/* Sets the size of the terminal, in characters. Return: 0; -ESRCH; or another negative errno */
int monitor_resize(const char *bundle, unsigned height, unsigned width, struct hw_err *e);

#endif
