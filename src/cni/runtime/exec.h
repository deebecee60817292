/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cni/runtime/exec.h - find a plugin, run it once, understand its answer
 */
#ifndef CNI_RUNTIME_EXEC_H
#define CNI_RUNTIME_EXEC_H

#include <hawser/cni.h>

#include "base/err.h"

/* The environment that a plugin gets on top of ours (facts 2.6); NULL: as in ours. */
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
	const char *plugin;	    /* path */
	struct exec_env env;
	const char *input;
	size_t input_len;
	enum hw_stderr stderr_mode;
	bool stay;	  /* in our process group */
	int cancel_fd;	  /* -1: none */
	int64_t deadline; /* TIME_NEVER: none */
};

/* Texts as facts 2.5. */
int exec_find(const struct hw_exec *exec, const char *plugin, const char *const *dirs,
	      char **ret_path, struct hw_err *e);
/* Runs the plugin; its failure becomes the error (its own object, or the texts of facts 2.6). */
int exec_call(const struct exec_call *call, char **ret_output, size_t *ret_len, struct hw_err *e);
/* What an ADD printed, as a result; @version when it carries none. */
int exec_result(const char *output, size_t len, const char *version, struct hw_result **ret_result,
		struct hw_err *e);

#endif
