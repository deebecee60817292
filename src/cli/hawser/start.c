/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/hawser/start.c - start: start containers that were created
 */
#include "api/cri-v1.pb-c.h"
#include "cli/hawser/hawser.h"

int container_start(struct cli *cli, const char *word, const char *id, struct hw_err *e)
{
	Runtime__V1__StartContainerRequest request = RUNTIME__V1__START_CONTAINER_REQUEST__INIT;
	AUTO(api_free) Runtime__V1__StartContainerResponse *answer = NULL;

	request.container_id = (char *)id;
	if (runtime_call(cli, "StartContainer", &request.base, &answer, e) < 0)
		return err_ctx(e, "start container \"%s\"", word);
	return 0;
}

static int run_start(struct cli *cli, char **args, struct hw_err *e)
{
	return each_container(cli, args, "started", container_start, e);
}

const struct command start_command = {
	.name = "start",
	.group = "containers",
	.args = "CONTAINER...",
	.min_args = 1,
	.max_args = -1,
	.run = run_start,
	.summary = "start containers that were created",
	.help = "In CRI a container runs only once: one that has ended cannot be started again.\n"
		"Remove it and create another one; hawser run does both.\n\n"
		"examples:\n"
		"  hawser start 0123456789ab\n",
};
