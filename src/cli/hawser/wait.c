/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/hawser/wait.c - wait: wait until containers have ended
 *
 * How:   polls ContainerStatus, at intervals that grow while nothing happens. CRI's events
 *        exist only in newer runtimes, and an event may be lost.
 */
#include <stdio.h>

#include "api/cri-v1.pb-c.h"
#include "base/mem.h"
#include "base/time.h"
#include "cli/hawser/hawser.h"

#define POLL_MIN 5 /* ms */
#define POLL_MAX 250

int container_wait(struct cli *cli, const char *word, const char *id, container_pause *pause,
		   void *ctx, int *ret_exit_code, struct hw_err *e)
{
	int r, ms = POLL_MIN;

	for (;;) {
		AUTO(api_free) Runtime__V1__ContainerStatusResponse *answer = NULL;

		r = container_status(cli, word, id, &answer, e);
		if (r < 0)
			return r;
		*ret_exit_code = answer->status->exit_code;
		if (answer->status->state == RUNTIME__V1__CONTAINER_STATE__CONTAINER_EXITED)
			return 0;
		r = pause(ctx, ms, e);
		if (r < 0)
			return r;
		ms = r ? POLL_MIN : ms * 2 > POLL_MAX ? POLL_MAX : ms * 2;
	}
}

static int pause_only(void *ctx, int ms, struct hw_err *e)
{
	(void)ctx;
	(void)e;
	time_sleep(ms);
	return 0;
}

static int run_wait(struct cli *cli, char **args, struct hw_err *e)
{
	struct value *codes = value_new_array(), *all = value_new_object();
	struct errors errors = { 0 };

	value_set(all, "exitCodes", codes);
	for (; *args; args++) {
		autofree char *id = NULL;
		int r, exit_code = 0;

		r = find_container(cli, *args, &id, e);
		if (r == 0)
			r = container_wait(cli, *args, id, pause_only, NULL, &exit_code, e);
		if (r < 0)
			errors_add(&errors, e);
		else if (cli->json)
			value_append(codes, value_new_int(exit_code));
		else
			printf("%d\n", exit_code);
		fflush(stdout); /* the next container may run for long */
	}
	if (cli->json)
		print_json(all);
	else
		value_free(all);
	return errors_result(&errors, e);
}

const struct command wait_command = {
	.name = "wait",
	.group = "containers",
	.args = "CONTAINER...",
	.min_args = 1,
	.max_args = -1,
	.run = run_wait,
	.summary = "wait until containers have ended",
	.help = "Prints the exit code of each container, in the order of the arguments.\n\n"
		"examples:\n"
		"  hawser wait job-1 job-2\n",
};
