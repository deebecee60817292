/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cni/runtime/exec.h - find a plugin, run it once, interpret its reply
 */
#ifndef CNI_RUNTIME_EXEC_H
#define CNI_RUNTIME_EXEC_H

#include <hawser/cni.h>

#include "base/err.h"

/* The CNI variables of a plugin's environment. If a member is NULL, its variable is inherited from
 * our environment, like all other variables. */
struct exec_env {
	const char *command;
	const char *container_id;
	const char *netns;
	const char *ifname;
	const char *args;	    /* CNI_ARGS, already joined */
	const char *path;	    /* CNI_PATH */
	const char *netns_override; /* CNI_NETNS_OVERRIDE */
};

struct exec_call {
	const struct hw_exec *exec; /* NULL: fork and exec */
	const char *plugin;	    /* path of its file */
	struct exec_env env;
	const char *input;
	size_t input_len;
	enum hw_stderr stderr_mode;
	bool same_group;  /* the plugin stays in our process group */
	int cancel_fd;	  /* -1: none */
	int64_t deadline; /* TIME_NEVER: none */
};

/*
 * Finds a plugin with exec->find(), or with hw_exec_find() if that is NULL.
 * @exec:     may be NULL
 * @dirs:     directories to search, NULL at the end
 * @ret_path: freed by the caller
 *
 * Return: 0, or a negative errno with libcni's text
 */
int exec_find(const struct hw_exec *exec, const char *plugin, const char *const *dirs,
	      char **ret_path, struct hw_err *e);

/* hw_exec_run(); @same_group: the plugin stays in our process group, and only the plugin itself is
 * killed, not its group */
int exec_run(const struct hw_run *run, bool same_group, struct hw_ran *ret_ran, struct hw_err *e);
/* Sets the error of hw_exec_run() for a plugin that was not started or was killed: @r is the error,
 * @started the time of the call, and *e explains an error other than -ETIMEDOUT, -ECANCELED and
 * -EFBIG. Return: @r */
int exec_run_error(int r, int64_t started, struct hw_err *e);

/*
 * Runs a plugin once.
 * @ret_output: its standard output, @ret_len bytes; freed by the caller
 *
 * Return: 0 if the plugin succeeded; else a negative errno, and *e is the error object that the plugin
 * printed, or libcni's text if it printed none
 */
int exec_call(const struct exec_call *call, char **ret_output, size_t *ret_len, struct hw_err *e);

/*
 * Parses the output of an ADD as a result.
 * @version: version of a result without cniVersion
 */
int exec_result(const char *output, size_t len, const char *version, struct hw_result **ret_result,
		struct hw_err *e);

#endif
