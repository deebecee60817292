/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/hawser/hawser.c - command-line client for containers and images
 *
 * What:  the list of commands, and the options of all commands; the other files of this
 *        folder have the commands. Those that need only CRI work with any runtime. The
 *        others need the API hawser.v1, and fail with a clear message if the runtime
 *        does not support it.
 * Rules: the exit status is 0; 1 after an error; 2 after an error in the command line. That
 *        of a command that runs a program is the program's, or 125.
 */
#include "cli/hawser/hawser.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/str.h"

#define RUNTIME	   "unix:/run/hawser/cri.sock"
#define CONTAINERD "unix:/run/containerd/containerd.sock"

static struct cli cli = { .runtime = RUNTIME, .timeout = -1 };

static const struct command *const commands[] = {
	&run_command,		&ps_command,
	&exec_command,		&logs_command,
	&start_command,		&stop_command,
	&kill_command,		&wait_command,
	&pods_command,		&rm_command,
	&inspect_command,	&pull_command,
	&images_command,	&rmi_command,
	&image_inspect_command, &history_command,
	&verify_command,	&recover_command,
	&load_command,		&save_command,
	&network_ls_command,	&network_check_command,
	&network_gc_command,	&info_command,
	&version_command,	NULL,
};

static const struct option_entry options[] = {
	{ "runtime", 0, "unix:PATH", "socket of the runtime (default: " RUNTIME ")",
	  .text = &cli.runtime },
	{ "json", .help = "print results and errors as JSON", .flag = &cli.json },
	{ "timeout", 0, "SECONDS",
	  "timeout of a call, 0: no timeout (default: 60, long calls: 3600)",
	  .seconds = &cli.timeout },
	{ 0 },
};

static const struct completion completions[] = {
	{ "CONTAINER", .find = complete_containers },
	{ "IMAGE", .find = complete_images },
	{ "NETWORK", .find = complete_networks },
	{ "POD", .find = complete_pods },
	{ "OS/ARCH[/VARIANT]", "linux/amd64 linux/arm64" },
	{ "unix:PATH", RUNTIME " " CONTAINERD },
	{ 0 },
};

static int run(struct cli *c, const struct command *command, char **args)
{
	struct hw_err e;
	int r;

	c->command = command;
	r = runtime_socket(c, &e);
	if (r == 0)
		r = command->run(c, args, &e);
	if (r < 0)
		report_error(c, &e);
	runtime_disconnect(c);
	if (r < 0 && c->error_source == ERROR_USAGE)
		return USAGE_STATUS;
	if (r < 0)
		return command->runs_words ? NOT_RUN_STATUS : EXIT_FAILURE;
	return r;
}

static const struct program program = {
	.name = "hawser",
	.version = "hawser " HAWSER_VERSION,
	.summary = "Manage pods, containers and images of hawser-cri, or of another CRI runtime.",
	.commands = commands,
	.options = options,
	.completions = completions,
	.usage_status = USAGE_STATUS,
	.report_usage_error = report_usage_error,
	.run = run,
};

int main(int argc, char **argv)
{
	const char *endpoint = getenv("CONTAINER_RUNTIME_ENDPOINT"); /* crictl reads it, too */

	(void)argc;
	if (!str_empty(endpoint))
		cli.runtime = endpoint;
	return command_main(&program, &cli, argv);
}
