/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/hawser/inspect.c - inspect: show everything that the runtime reports about a pod or container
 *
 * How:   calls CRI's PodSandboxStatus or ContainerStatus with "verbose" and prints the response as JSON.
 *        What it contains under "info" depends on the runtime.
 */
#include <errno.h>
#include <stdlib.h>

#include "api/cri-v1.pb-c.h"
#include "cli/hawser/hawser.h"
#include "cli/json.h"

static int inspect_pod(struct cli *cli, char *id, struct value **ret, struct hw_err *e)
{
	Runtime__V1__PodSandboxStatusRequest request =
		RUNTIME__V1__POD_SANDBOX_STATUS_REQUEST__INIT;
	AUTO(api_free) Runtime__V1__PodSandboxStatusResponse *answer = NULL;
	int r;

	request.pod_sandbox_id = id;
	request.verbose = true;
	r = runtime_call(cli, "PodSandboxStatus", &request.base, &answer, e);
	if (r == 0)
		*ret = message_to_json(&answer->base);
	return r;
}

static int inspect_container(struct cli *cli, char *id, struct value **ret, struct hw_err *e)
{
	Runtime__V1__ContainerStatusRequest request = RUNTIME__V1__CONTAINER_STATUS_REQUEST__INIT;
	AUTO(api_free) Runtime__V1__ContainerStatusResponse *answer = NULL;
	int r;

	request.container_id = id;
	request.verbose = true;
	r = runtime_call(cli, "ContainerStatus", &request.base, &answer, e);
	if (r == 0)
		*ret = message_to_json(&answer->base);
	return r;
}

static int inspect_found(struct cli *cli, const struct found *found, struct value **ret,
			 struct hw_err *e)
{
	if (found->is_lost)
		return err_text(e, -ENODATA,
				"it is not in the database of hawser-cri: \"hawser rm --force\" "
				"removes it");
	return (found->is_pod ? inspect_pod : inspect_container)(cli, found->id, ret, e);
}

static int run_inspect(struct cli *cli, char **args, struct hw_err *e)
{
	struct value *status = NULL;
	struct found found;
	int r;

	r = find_any(cli, args[0], &found, e);
	if (r < 0)
		return r;
	r = inspect_found(cli, &found, &status, e);
	free(found.id);
	if (r < 0)
		return err_ctx(e, "%s \"%s\"", found.is_pod ? "pod" : "container", args[0]);
	json_parse_info(status);
	print_json(status);
	return 0;
}

const struct command inspect_command = {
	.name = "inspect",
	.group = "pods and containers",
	.args = "POD|CONTAINER",
	.min_args = 1,
	.max_args = 1,
	.run = run_inspect,
	.summary = "show a pod or container as JSON",
	.help = "Prints everything that the runtime reports. What is under \"info\" depends on "
		"the\n"
		"runtime. If a pod and a container have the same name, it stands for the pod;\n"
		"POD/NAME is the container.\n\n"
		"examples:\n"
		"  hawser inspect web\n"
		"  hawser inspect web/main | jq .status.exitCode\n",
};
