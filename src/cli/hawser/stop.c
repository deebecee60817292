/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/hawser/stop.c - stop, kill: end containers
 *
 * How:   both call CRI's StopContainer. CRI knows no other signal than the stop signal of
 *        the container, and SIGKILL after a time; kill sets this time to 0.
 */
#include "api/cri-v1.pb-c.h"
#include "cli/hawser/hawser.h"

#define GRACE_DEFAULT 10 /* seconds */

static struct {
	int grace;
} given = { GRACE_DEFAULT };

static const struct option_entry options[] = {
	{ "time", 't', "SECONDS", "time until SIGKILL is sent (default: 10)",
	  .seconds = &given.grace },
	{ 0 },
};

int container_stop(struct cli *cli, const char *word, const char *id, int grace, struct hw_err *e)
{
	Runtime__V1__StopContainerRequest request = RUNTIME__V1__STOP_CONTAINER_REQUEST__INIT;
	AUTO(api_free) Runtime__V1__StopContainerResponse *answer = NULL;
	int r;

	request.container_id = (char *)id;
	request.timeout = grace;
	cli->expected = grace;
	r = runtime_call(cli, "StopContainer", &request.base, &answer, e);
	cli->expected = 0;
	return r < 0 ? err_ctx(e, "stop container \"%s\"", word) : 0;
}

int container_stop_begin(struct cli *cli, const char *id, int grace, struct rpc_stream **ret_stream,
			 struct hw_err *e)
{
	Runtime__V1__StopContainerRequest request = RUNTIME__V1__STOP_CONTAINER_REQUEST__INIT;
	int r;

	request.container_id = (char *)id;
	request.timeout = grace;
	cli->expected = grace;
	r = runtime_begin(cli, "StopContainer", &request.base, ret_stream, e);
	cli->expected = 0;
	return r;
}

static int stop_one(struct cli *cli, const char *word, const char *id, struct hw_err *e)
{
	return container_stop(cli, word, id, given.grace, e);
}

static int run_stop(struct cli *cli, char **args, struct hw_err *e)
{
	return each_container(cli, args, "stopped", stop_one, e);
}

const struct command stop_command = {
	.name = "stop",
	.group = "containers",
	.args = "CONTAINER...",
	.min_args = 1,
	.max_args = -1,
	.run = run_stop,
	.summary = "stop containers",
	.help = "The runtime sends the stop signal of the container, which is usually SIGTERM. If "
		"the\n"
		"container still runs after a time, it sends SIGKILL. A container that has "
		"already\n"
		"ended stays as it is. Other containers of the pod continue.\n\n"
		"examples:\n"
		"  hawser stop web\n"
		"  hawser stop --time 60 database\n",
	.options = options,
};

static int kill_one(struct cli *cli, const char *word, const char *id, struct hw_err *e)
{
	return container_stop(cli, word, id, 0, e);
}

static int run_kill(struct cli *cli, char **args, struct hw_err *e)
{
	return each_container(cli, args, "killed", kill_one, e);
}

const struct command kill_command = {
	.name = "kill",
	.group = "containers",
	.args = "CONTAINER...",
	.min_args = 1,
	.max_args = -1,
	.run = run_kill,
	.summary = "end containers with SIGKILL",
	.help = "This is stop without a time to end. CRI has no call that sends another signal; "
		"use\n"
		"hawser exec CONTAINER kill -HUP 1 if the image contains kill.\n\n"
		"examples:\n"
		"  hawser kill web\n",
};
