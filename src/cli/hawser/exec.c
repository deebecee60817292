/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/hawser/exec.c - exec: run a command in a container
 *
 * How:   CRI's ExecSync returns the output when the command has ended, at most 16 MiB. The
 *        command has no standard input.
 */
#include <stdio.h>
#include <unistd.h>

#include "api/cri-v1.pb-c.h"
#include "base/mem.h"
#include "base/os/file.h"
#include "cli/hawser/hawser.h"
#include "cli/json.h"

#define ANSWER_SECONDS 10 /* for the runtime to end the command after its timeout */

static int run_exec(struct cli *cli, char **args, struct hw_err *e)
{
	Runtime__V1__ExecSyncRequest request = RUNTIME__V1__EXEC_SYNC_REQUEST__INIT;
	AUTO(api_free) Runtime__V1__ExecSyncResponse *answer = NULL;
	autofree char *id = NULL;
	int r;

	r = find_container(cli, args[0], &id, e);
	if (r < 0)
		return r;
	request.container_id = id;
	request.cmd = args + 1;
	while (request.cmd[request.n_cmd])
		request.n_cmd++;
	request.timeout = cli->timeout > 0 ? cli->timeout : 0; /* 0: no timeout */
	cli->timeout = cli->timeout > 0 ? cli->timeout + ANSWER_SECONDS : 0;
	r = runtime_call(cli, "ExecSync", &request.base, &answer, e);
	if (r < 0)
		return err_ctx(e, "run %s in container \"%s\"", args[1], args[0]);
	if (cli->json) {
		print_json(message_to_json(&answer->base));
		return answer->exit_code & 0xff;
	}
	r = file_write_fd(STDOUT_FILENO, answer->stdout.data, answer->stdout.len, e);
	if (r == 0)
		r = file_write_fd(STDERR_FILENO, answer->stderr.data, answer->stderr.len, e);
	return r < 0 ? err_ctx(e, "print the output of %s", args[1]) : answer->exit_code & 0xff;
}

const struct command exec_command = {
	.name = "exec",
	.group = "containers",
	.args = "CONTAINER COMMAND...",
	.min_args = 2,
	.max_args = -1,
	.runs_words = true,
	.run = run_exec,
	.summary = "run a command in a container",
	.help = "The output is printed when the command has ended, at most 16 MiB. The exit status "
		"is\n"
		"that of the command, or 125 if hawser or the runtime fails. With --timeout the "
		"runtime\n"
		"kills the command after this time; by default it may run without limit. Options "
		"of\n"
		"hawser come before CONTAINER.\n\n"
		"examples:\n"
		"  hawser exec web cat /etc/hosts\n"
		"  hawser exec --timeout 5 web sh -c 'ps | wc -l'\n",
};
