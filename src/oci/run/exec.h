/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci/run/exec.h - commands in a running container
 *
 * What:  exec_sync() runs a command to its end and collects its output. exec_open() starts a command whose
 *        input and output are descriptors of the caller, or a terminal.
 * How:   `crun exec`, without a monitor. The command has the user, environment, directory, capabilities,
 *        confinement and oom_score_adj of the container's process.
 * Rules: a command is killed with its whole process group, which is in a session of its own. Background
 *        processes that have left the group survive, and do not delay the end of the call even if they
 *        keep the output open.
 *        If crun cannot start the command, the error has crun's text.
 */
#ifndef OCI_RUN_EXEC_H
#define OCI_RUN_EXEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "oci/run/runtime.h"

/* Borrowed during the call. */
struct exec_command {
	const struct runtime *runtime;
	const char *id;
	const char *bundle;		   /* temporary files are here */
	const struct oci_process *process; /* of the container, from its config.json */
	const struct hw_strings *args;
};

struct exec_result {
	int code;		   /* 128 + N if it was killed by signal N */
	struct buf output, errors; /* at most the first EXEC_OUTPUT_MAX bytes of each */
};

#define EXEC_OUTPUT_MAX (16 << 20)

/* Output beyond the limit is discarded. At the deadline, or when @cancel_fd (or -1) becomes readable, the
 * command is killed.
 * Return: 0 if the command has ended, with any code; -ETIMEDOUT; -ECANCELED; -EIO if it was not started; or
 * another negative errno */
int exec_sync(const struct exec_command *x, int cancel_fd, int64_t deadline,
	      struct exec_result *ret, struct hw_err *e);
void exec_result_done(struct exec_result *r);
AUTO_VALUE_DEFINE(exec_result_done, struct exec_result);

/* After a restart of this process: kills the commands in a container that it was waiting for, and deletes their
 * files. @bundle, @id: of the container. Return: 0; -ENOENT: no bundle; or another negative errno */
int exec_sweep(const char *bundle, const char *id, struct hw_err *e);

struct exec;

/* Where the command reads and writes. The descriptors are borrowed until exec_open() returns. */
struct exec_streams {
	int in, out, err;	/* -1: a null device; without a terminal */
	bool terminal;		/* the command has a terminal: see exec_terminal() */
	unsigned height, width; /* its size in characters, set soon after the start; 0: none */
};

/* Starts a command. If crun cannot start it, exec_open() or exec_close() reports that. Until the deadline
 * crun must have sent the terminal.
 * Return: 0; the caller frees *ret with exec_close(); -EIO; -ETIMEDOUT; or another negative errno */
int exec_open(const struct exec_command *x, const struct exec_streams *streams, int64_t deadline,
	      struct exec **ret, struct hw_err *e);
int exec_fd(const struct exec *x);	 /* becomes readable when the command has ended */
int exec_terminal(const struct exec *x); /* the terminal, non-blocking; owned by @x */
int exec_resize(const struct exec *x, unsigned height, unsigned width, struct hw_err *e);
void exec_kill(const struct exec *x);
/* Waits for the end of the command and frees @x. Return: 0 with the code as in struct exec_result; -EIO if
 * it was not started; or another negative errno */
int exec_close(struct exec *x, int *ret_code, struct hw_err *e);

#endif
