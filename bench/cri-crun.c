/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench/cri-crun.c - the lower bound of a container: crun alone
 *
 *	create		crun create
 *	start		crun start
 *	stop-container	crun delete --force
 *	exec		crun exec /bin/true
 *
 * How:   the target is the config.json of a container of hawser-cri that exists all the time. Every
 *        container here uses its root and its pod, and has a cgroup of its own.
 */
#include "cri.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <jansson.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/time.h"

#define CRUN "/usr/bin/crun"

extern char **environ;

/* Returns the time until the program has ended. */
static int64_t run_crun(const char *const *argv)
{
	posix_spawn_file_actions_t actions;
	int64_t started = time_now();
	int r, status;
	pid_t pid;

	posix_spawn_file_actions_init(&actions);
	for (int fd = 0; fd < 3; fd++)
		posix_spawn_file_actions_addopen(&actions, fd, "/dev/null", O_RDWR, 0);
	r = posix_spawn(&pid, CRUN, &actions, NULL, (char *const *)argv, environ);
	if (r != 0 || waitpid(pid, &status, 0) < 0)
		cri_die(CRUN, strerror(r ? r : errno));
	posix_spawn_file_actions_destroy(&actions);
	if (status != 0)
		cri_die(CRUN, "failed");
	return time_now() - started;
}

static void write_bundle(const struct side *side, const char *bundle, const char *id)
{
	autofree char *file = str_printf("%s/config.json", bundle);
	autofree char *cgroup = str_printf("/bench/%s", id);
	json_error_t error;
	json_t *config = json_load_file(side->target, 0, &error);

	if (!config)
		cri_die(side->target, error.text);
	json_object_set_new(json_object_get(config, "linux"), "cgroupsPath", json_string(cgroup));
	if ((mkdir(bundle, 0700) < 0 && errno != EEXIST) || json_dump_file(config, file, 0) < 0)
		cri_die(file, strerror(errno));
	json_decref(config);
}

static int64_t create(const struct side *side, struct rpc_client *client, struct op *op)
{
	autofree char *bundle = str_printf("%s/bundle", side->dir);
	autofree char *state = str_printf("%s/crun", side->dir);

	(void)client;
	op->container = str_printf("crun%d", op->number);
	write_bundle(side, bundle, op->container);
	return run_crun((const char *const[]){ CRUN, "--root", state, "create", "--bundle", bundle,
					       op->container, NULL });
}

static int64_t start(const struct side *side, struct rpc_client *client, struct op *op)
{
	autofree char *state = str_printf("%s/crun", side->dir);

	(void)client;
	return run_crun(
		(const char *const[]){ CRUN, "--root", state, "start", op->container, NULL });
}

static int64_t exec(const struct side *side, struct rpc_client *client, struct op *op)
{
	autofree char *state = str_printf("%s/crun", side->dir);

	(void)client;
	return run_crun((const char *const[]){ CRUN, "--root", state, "exec", op->container,
					       "/bin/true", NULL });
}

static int64_t stop_container(const struct side *side, struct rpc_client *client, struct op *op)
{
	autofree char *state = str_printf("%s/crun", side->dir);

	(void)client;
	return run_crun((const char *const[]){ CRUN, "--root", state, "delete", "--force",
					       op->container, NULL });
}

static const struct step steps[] = {
	{ "create", create }, { "start", start }, { "stop-container", stop_container },
	{ "exec", exec },     { NULL, NULL },
};

const struct side_kind kind_crun = { .name = "crun", .steps = steps };
