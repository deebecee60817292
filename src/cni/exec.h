/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cni/exec.h - find a plugin and run it once
 */
#ifndef CNI_EXEC_H
#define CNI_EXEC_H

#include <hawser/cni.h>

#include "base/err.h"

/* The environment that a plugin gets on top of ours (facts 2.6). */
struct exec_env {
	const char *command;
	const char *container_id;
	const char *netns;
	const char *ifname;
	const char *args; /* CNI_ARGS, already joined */
	const char *path; /* CNI_PATH */
};

struct exec_call {
	const struct hw_exec *exec; /* NULL: fork and exec */
	const char *plugin;	    /* path */
	struct exec_env env;
	const char *input;
	size_t input_len;
	enum hw_stderr stderr_mode;
	int cancel_fd;
	int64_t deadline;
};

/* Texts as facts 2.5. */
int exec_find(const struct hw_exec *exec, const char *plugin, const char *const *dirs,
	      char **ret_path, struct hw_err *e);
/* Runs the plugin; its failure becomes the error (its own object, or the texts of facts 2.6). */
int exec_call(const struct exec_call *call, char **ret_output, size_t *ret_len, struct hw_err *e);

#endif
