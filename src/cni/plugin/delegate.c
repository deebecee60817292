/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cni/plugin/delegate.c - delegation to another plugin, such as IPAM
 *
 * What:  finds the plugin in CNI_PATH and runs it with the environment of the
 *        call, except CNI_COMMAND, and with the input of the call, unless the
 *        caller passes another input.
 * How:   runs it through struct hw_exec. If the file found is the running
 *        binary and the binary contains a plugin of that name, run() calls the
 *        plugin as a function instead of executing the file. All other code
 *        and the reply are the same in both cases.
 */
#include <errno.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <hawser/plugin.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/os/file.h"
#include "base/str.h"
#include "base/time.h"
#include "cni/plugin/program.h"
#include "cni/plugin/skel.h"
#include "cni/runtime/conf.h"
#include "cni/runtime/exec.h"

#define DELEGATE_TIMEOUT_MS (5 * 60 * 1000) /* longer than a runtime waits for a plugin */

struct in_process_call {
	const struct hw_plugin *plugin;
	struct skel_request request;
};

/* run() of struct hw_exec that calls the plugin as a function. */
static int run_in_process(void *ctx, const struct hw_run *run, struct hw_ran *ret_ran,
			  struct hw_err *e)
{
	struct in_process_call *call = ctx;
	struct skel_reply reply;

	call->request.input = run->input;
	call->request.input_len = run->input_len;
	(void)skel_call(call->plugin, &call->request, &reply, e);
	free(reply.notice);
	ret_ran->status = W_EXITCODE(reply.status, 0);
	ret_ran->output = reply.output ? reply.output : str_copy("");
	ret_ran->output_len = strlen(ret_ran->output);
	return 0;
}

static int find_in_path(const char *plugin, const char *path, char **ret_path, struct hw_err *e)
{
	AUTO(hw_strings_free) struct hw_strings dirs = { 0 };

	strings_split(path, ':', &dirs);
	dirs.v = mem_resize(dirs.v, dirs.n + 1, sizeof(*dirs.v));
	dirs.v[dirs.n] = NULL;
	return exec_find(NULL, plugin, (const char *const *)dirs.v, ret_path, e);
}

int hw_delegate(struct hw_call *call, const char *plugin, const char *command, const char *input,
		struct hw_result **ret_result, struct hw_err *e)
{
	const struct skel_frame *f = (const struct skel_frame *)call;
	autofree char *path = NULL, *output = NULL;
	const struct hw_plugin *sibling;
	size_t len;
	int r;

	/* A plugin that delegates to itself with the same input would recurse without end. DEL and
	 * GC then have nothing to delete, because the ADD cannot have succeeded. */
	if (!input && str_equal(plugin, f->plugin->name)) {
		if (str_equal(command, "DEL") || str_equal(command, "GC"))
			return 0;
		return err_cni(e, HW_CNI_INVALID_CONFIG, "plugin \"%s\" cannot delegate to itself",
			       plugin);
	}
	r = find_in_path(plugin, call->path, &path, e);
	if (r < 0)
		return r;
	sibling = program_find(f->request->siblings, f->request->self, plugin, path);

	struct exec_call run = {
		.plugin = path,
		.env = { command, call->container_id, call->netns, call->ifname, call->args,
			 call->path, f->request->netns_override },
		.input = input ? input : call->input,
		.input_len = input ? strlen(input) : call->input_len,
		.stderr_mode = HW_STDERR_THROUGH,
		.same_group = true, /* a runtime that times out kills our process group */
		.cancel_fd = -1,
		.deadline = time_deadline(DELEGATE_TIMEOUT_MS),
	};
	/* The same request as the environment above, for a call without exec. */
	struct in_process_call in_process = {
		.plugin = sibling,
		.request = { .command = run.env.command,
			     .container_id = run.env.container_id,
			     .netns = run.env.netns,
			     .ifname = run.env.ifname,
			     .args = run.env.args,
			     .path = run.env.path,
			     .netns_override = run.env.netns_override,
			     .netns_is_checked = true,
			     .state_dir = f->request->state_dir,
			     .siblings = f->request->siblings,
			     .self = f->request->self },
	};
	const struct hw_exec without_exec = { sizeof(without_exec), &in_process, NULL,
					      run_in_process };

	if (sibling)
		run.exec = &without_exec;
	r = exec_call(&run, &output, &len, e);
	if (r < 0 || !ret_result)
		return r;
	return exec_result(output, len, call->version, ret_result, e);
}
