/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/hawser/rm.c - rm: remove pods and containers
 *
 * What:  removes pods with their containers, and single containers. Those that run are removed only with
 *        --force.
 * How:   --force uses hawser.v1, which removes a pod although plugins fail, and what is lost. Without
 *        hawser.v1 it uses CRI, whose calls stop what runs, too.
 * Rules: if one object cannot be removed, the remaining ones are still removed.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "api/cri-v1.pb-c.h"
#include "api/hawser-v1.pb-c.h"
#include "base/err.h"
#include "base/mem.h"
#include "cli/hawser/hawser.h"
#include "cli/text.h"
#include "rpc/grpc/status.h"

static struct {
	bool force;
} given;

static const struct option_entry options[] = {
	{ "force", 'f', .help = "also what runs or is lost; ignore failing plugins",
	  .flag = &given.force },
	{ 0 },
};

/* Return: 0 if no container of the pod runs, or if the container does not run; or a negative errno */
static int check_stopped(struct cli *cli, const struct found *found, struct hw_err *e)
{
	Runtime__V1__ContainerStateValue state = RUNTIME__V1__CONTAINER_STATE_VALUE__INIT;
	Runtime__V1__ContainerFilter filter = RUNTIME__V1__CONTAINER_FILTER__INIT;
	AUTO(api_free) Runtime__V1__ListContainersResponse *running = NULL;
	autofree char *id = NULL;
	int r;

	state.state = RUNTIME__V1__CONTAINER_STATE__CONTAINER_RUNNING;
	filter.state = &state;
	if (found->is_pod)
		filter.pod_sandbox_id = found->id;
	else
		filter.id = found->id;
	r = list_containers(cli, &filter, &running, e);
	if (r < 0 || running->n_containers == 0)
		return r;
	id = text_short_id(running->containers[0]->id);
	return status_set(e, STATUS_FAILED_PRECONDITION, "container %s is running", id);
}

/* ---- calls ----------------------------------------------------------------------- */

static int remove_pod(struct cli *cli, char *id, struct hw_err *e)
{
	Runtime__V1__RemovePodSandboxRequest request =
		RUNTIME__V1__REMOVE_POD_SANDBOX_REQUEST__INIT;
	AUTO(api_free) Runtime__V1__RemovePodSandboxResponse *answer = NULL;

	request.pod_sandbox_id = id;
	return runtime_call(cli, "RemovePodSandbox", &request.base, &answer, e);
}

static int remove_container(struct cli *cli, char *id, struct hw_err *e)
{
	Runtime__V1__RemoveContainerRequest request = RUNTIME__V1__REMOVE_CONTAINER_REQUEST__INIT;
	AUTO(api_free) Runtime__V1__RemoveContainerResponse *answer = NULL;

	request.container_id = id;
	return runtime_call(cli, "RemoveContainer", &request.base, &answer, e);
}

static int force_pod(struct cli *cli, char *id, struct hw_err *e)
{
	Hawser__V1__RemovePodRequest request = HAWSER__V1__REMOVE_POD_REQUEST__INIT;
	AUTO(api_free) Hawser__V1__RemovePodResponse *answer = NULL;

	request.id = id;
	request.force = true;
	return service_call(cli, &hawser__v1__pods__descriptor, "Remove", &request.base, &answer,
			    e);
}

static int force_container(struct cli *cli, char *id, struct hw_err *e)
{
	Hawser__V1__RemoveContainerRequest request = HAWSER__V1__REMOVE_CONTAINER_REQUEST__INIT;
	AUTO(api_free) Hawser__V1__RemoveContainerResponse *answer = NULL;

	request.id = id;
	request.force = true;
	return service_call(cli, &hawser__v1__containers__descriptor, "Remove", &request.base,
			    &answer, e);
}

static int remove_found(struct cli *cli, const struct found *found, struct hw_err *e)
{
	int r = 0;

	if (given.force) {
		r = (found->is_pod ? force_pod : force_container)(cli, found->id, e);
		if (r == 0 || !is_unimplemented(e))
			return r;
	} else if (!found->is_lost) {
		r = check_stopped(cli, found, e);
		if (r < 0)
			return r;
	}
	return (found->is_pod ? remove_pod : remove_container)(cli, found->id, e);
}

/* ---- command --------------------------------------------------------------------- */

/* @removed: with --json, the ID is appended to this list */
static int find_and_remove(struct cli *cli, const char *word, struct value *removed,
			   struct hw_err *e)
{
	autofree char *clean = text_clean(word);
	struct found found;
	int r;

	r = find_any(cli, word, &found, e);
	if (r < 0)
		return r;
	r = remove_found(cli, &found, e);
	if (r < 0)
		err_ctx(e, "remove %s \"%s\"", found.is_pod ? "pod" : "container", word);
	else if (cli->json)
		value_append(removed, value_new_string(found.id));
	else
		printf("%s\n", clean);
	free(found.id);
	return r;
}

static int run_rm(struct cli *cli, char **args, struct hw_err *e)
{
	struct value *removed = value_new_array(), *all = value_new_object();
	struct errors errors = { 0 };

	value_set(all, "removed", removed);
	for (; *args; args++)
		if (find_and_remove(cli, *args, removed, e) < 0)
			errors_add(&errors, e);
	if (cli->json)
		print_json(all);
	else
		value_free(all);
	return errors_result(&errors, e);
}

const struct command rm_command = {
	.name = "rm",
	.group = "pods and containers",
	.args = "POD|CONTAINER...",
	.min_args = 1,
	.max_args = -1,
	.is_long = true,
	.run = run_rm,
	.summary = "remove pods and containers",
	.help = "A pod is removed with its containers. A container that runs is not removed, and\n"
		"neither is its pod: stop it first, or use --force. If a pod and a container have\n"
		"the same name, it stands for the pod; POD/NAME is the container.\n\n"
		"With hawser-cri, --force also removes pods and containers that are lost, and "
		"pods\n"
		"whose networks cannot be cleaned up because plugins fail. What the plugins leave\n"
		"behind can be deleted with \"hawser network gc\" later.\n\n"
		"examples:\n"
		"  hawser rm web\n"
		"  hawser rm --force web\n",
	.options = options,
};
