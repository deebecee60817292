/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/hawser/logs.c - logs: print the log of a container
 */
#include <errno.h>

#include "api/cri-v1.pb-c.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/hawser/hawser.h"
#include "cli/hawser/log-output.h"

static struct {
	bool follow;
	struct log_output log;
} given = { .log = LOG_OUTPUT };

static const struct option_entry options[] = {
	{ "follow", 'f', .help = "continue until the container has ended", .flag = &given.follow },
	{ "tail", 'n', "N", "print only the last N of the lines that exist",
	  .number = &given.log.tail },
	{ "timestamps", 't', .help = "print the time before each line",
	  .flag = &given.log.timestamps },
	{ 0 },
};

static int print_and_pause(void *ctx, int ms, struct hw_err *e)
{
	struct log_output *log = ctx;
	int r;

	r = log_print_new(log, e);
	if (r == 0)
		log_pause(log, -1, ms);
	return r;
}

static int run_logs(struct cli *cli, char **args, struct hw_err *e)
{
	AUTO(api_free) Runtime__V1__ContainerStatusResponse *answer = NULL;
	AUTO(log_done) struct log_output log = given.log;
	autofree char *id = NULL;
	int r, ignored;

	r = find_container(cli, args[0], &id, e);
	if (r < 0)
		return r;
	r = container_status(cli, args[0], id, &answer, e);
	if (r < 0)
		return r;
	if (str_empty(answer->status->log_path))
		return err_text(e, -EINVAL,
				"container \"%s\" has no log: it was created without a log "
				"directory or a log path",
				args[0]);
	r = log_open(&log, answer->status->log_path, e);
	if (r == 0 && answer->status->state != RUNTIME__V1__CONTAINER_STATE__CONTAINER_CREATED)
		r = err_text(e, -ENOENT, "container \"%s\": log %s does not exist", args[0],
			     answer->status->log_path);
	if (r >= 0 && given.follow)
		r = container_wait(cli, args[0], id, print_and_pause, &log, &ignored, e);
	if (r >= 0)
		r = log_print_new(&log, e);
	return r < 0 ? r : log_end(&log, e);
}

const struct command logs_command = {
	.name = "logs",
	.group = "containers",
	.args = "CONTAINER",
	.min_args = 1,
	.max_args = 1,
	.run = run_logs,
	.summary = "print the log of a container",
	.help = "Standard output and standard error of the container are printed to the same "
		"streams\n"
		"of hawser, as they are: control characters in them reach the terminal. The log "
		"is\n"
		"read from its file, so hawser must run on the host of the runtime. A rotated log "
		"is\n"
		"followed, but files that were rotated before are not read.\n\n"
		"examples:\n"
		"  hawser logs -f web\n"
		"  hawser logs --tail 20 --timestamps database\n",
	.options = options,
};
