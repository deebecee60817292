/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/hawser/run.c - run: create a pod with one container, and follow its log
 *
 * How:   pulls the image if it is missing, then calls RunPodSandbox, CreateContainer and
 *        StartContainer. The log is read from its file, and ContainerStatus is polled
 *        until the container has ended.
 *        SIGINT, SIGTERM and SIGHUP are read from a descriptor. The first one starts a
 *        StopContainer, whose answer arrives while the log is still printed; the next one
 *        kills the container.
 * Rules: a pod whose container was not started is removed again.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/os/file.h"
#include "base/str.h"
#include "cli/hawser/hawser.h"
#include "cli/hawser/log-output.h"
#include "cli/hawser/run-config.h"
#include "cli/text.h"
#include "rpc/grpc/status.h"

#define GRACE 10 /* seconds until a container that is interrupted gets SIGKILL */

static struct {
	struct run_options options;
	bool remove, detach;
} given;

static const struct option_entry options[] = {
	{ "name", 0, "NAME", "name of the pod and the container (default: from the image)",
	  .text = &given.options.name },
	{ "env", 'e', "KEY[=VALUE]", "set a variable, or pass on hawser's own; may be repeated",
	  .texts = &given.options.env },
	{ "volume", 'v', "HOST:CTR[:ro]", "mount a path of the host; may be repeated",
	  .texts = &given.options.volumes },
	{ "publish", 'p', "HOST:CTR[/udp]", "forward a port of the host; may be repeated",
	  .texts = &given.options.ports },
	{ "host-network", .help = "use the network of the host",
	  .flag = &given.options.host_network },
	{ "rm", .help = "remove the pod and its log at the end", .flag = &given.remove },
	{ "detach", 'd', .help = "start the container, print its ID and end",
	  .flag = &given.detach },
	{ 0 },
};

/* ---- interruption ---------------------------------------------------------------- */

struct run {
	struct cli *cli;
	const char *name;
	char *pod, *container; /* IDs */
	int signals;	       /* signalfd */
	unsigned interrupts;
	struct rpc_stream *stop; /* StopContainer, or NULL */
	struct log_output log;
};

static void run_done(struct run *run)
{
	free(run->pod);
	free(run->container);
	mem_close_fd(&run->signals);
	rpc_stream_free(run->stop);
	log_done(&run->log);
}

AUTO_VALUE_DEFINE(run_done, struct run);

static int catch_signals(struct run *run, struct hw_err *e)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	run->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return run->signals < 0 ? err_set(e, -errno, "create a signalfd") : 0;
}

/* Return: the number of a signal that was sent; 0 if there is none */
static int next_signal(const struct run *run)
{
	struct signalfd_siginfo info;

	return read(run->signals, &info, sizeof(info)) == sizeof(info) ? (int)info.ssi_signo : 0;
}

/* The first interruption starts to stop the container, without a wait; the others kill it. */
static int interrupt(struct run *run, struct hw_err *e)
{
	if (run->interrupts++)
		return container_stop(run->cli, run->name, run->container, 0, e);
	return container_stop_begin(run->cli, run->container, GRACE, &run->stop, e);
}

static int print_and_pause(void *ctx, int ms, struct hw_err *e)
{
	struct run *run = ctx;
	int r;

	while (next_signal(run)) {
		r = interrupt(run, e);
		if (r < 0)
			return r;
	}
	r = log_print_new(&run->log, e);
	if (r == 0)
		log_pause(&run->log, run->signals, ms);
	return r;
}

/* ---- steps ----------------------------------------------------------------------- */

static int get_image(struct cli *cli, const char *image, char **ret_id, struct hw_err *e)
{
	AUTO(api_free) Runtime__V1__ImageStatusResponse *status = NULL;
	int r;

	r = image_status(cli, image, false, &status, e);
	if (r < 0 && status_from_err(e) == STATUS_NOT_FOUND)
		return image_pull(cli, image, ret_id, e);
	if (r == 0)
		*ret_id = str_copy(status->image->id);
	return r;
}

static int check_name(struct cli *cli, const char *name, struct hw_err *e)
{
	autofree char *word = str_printf("%s/%s", RUN_NAMESPACE, name), *id = NULL;
	int r;

	r = find_pod(cli, word, &id, e);
	if (r < 0 && status_from_err(e) == STATUS_NOT_FOUND)
		return 0;
	return r < 0 ? r
		     : status_set(e, STATUS_ALREADY_EXISTS, "pod \"%s\" exists: its ID is %s", name,
				  id);
}

/* The runtime would create a directory on the host. */
static int check_volumes(const struct run_config *config, struct hw_err *e)
{
	for (size_t i = 0; i < config->container.n_mounts; i++) {
		const char *path = config->container.mounts[i]->host_path;

		if (access(path, F_OK) < 0)
			return err_set(e, -errno, "volume %s", path);
	}
	return 0;
}

/* A pod of the same name may have left a log. */
static int make_log_directory(const struct run_config *config, struct hw_err *e)
{
	int r;

	r = file_mkdirs(AT_FDCWD, config->log_directory, 0755, e);
	return r < 0 ? r : file_remove(AT_FDCWD, config->log_path, e);
}

static int create(struct run *run, struct run_config *config, struct hw_err *e)
{
	Runtime__V1__RunPodSandboxRequest pod = RUNTIME__V1__RUN_POD_SANDBOX_REQUEST__INIT;
	Runtime__V1__CreateContainerRequest container = RUNTIME__V1__CREATE_CONTAINER_REQUEST__INIT;
	AUTO(api_free) Runtime__V1__RunPodSandboxResponse *pod_answer = NULL;
	AUTO(api_free) Runtime__V1__CreateContainerResponse *answer = NULL;
	int r;

	pod.config = &config->pod;
	r = runtime_call(run->cli, "RunPodSandbox", &pod.base, &pod_answer, e);
	if (r < 0)
		return err_ctx(e, "create pod \"%s\"", run->name);
	run->pod = str_copy(pod_answer->pod_sandbox_id);
	container.pod_sandbox_id = run->pod;
	container.config = &config->container;
	container.sandbox_config = &config->pod;
	r = runtime_call(run->cli, "CreateContainer", &container.base, &answer, e);
	if (r < 0)
		return err_ctx(e, "create container \"%s\"", run->name);
	run->container = str_copy(answer->container_id);
	return 0;
}

/* Ends the container, and removes its pod, if there is one, and its log. */
static int remove_all(struct run *run, const struct run_config *config, struct hw_err *e)
{
	Runtime__V1__StopPodSandboxRequest stop = RUNTIME__V1__STOP_POD_SANDBOX_REQUEST__INIT;
	Runtime__V1__RemovePodSandboxRequest remove = RUNTIME__V1__REMOVE_POD_SANDBOX_REQUEST__INIT;
	AUTO(api_free) Runtime__V1__StopPodSandboxResponse *stopped = NULL;
	AUTO(api_free) Runtime__V1__RemovePodSandboxResponse *removed = NULL;
	int r = 0;

	stop.pod_sandbox_id = remove.pod_sandbox_id = run->pod;
	if (run->pod)
		r = runtime_call(run->cli, "StopPodSandbox", &stop.base, &stopped, e);
	if (r == 0 && run->pod)
		r = runtime_call(run->cli, "RemovePodSandbox", &remove.base, &removed, e);
	if (r == 0)
		r = file_remove(AT_FDCWD, config->log_path, e);
	if (r == 0 && rmdir(config->log_directory) < 0 && errno != ENOENT && errno != ENOTEMPTY)
		r = err_set(e, -errno, "remove %s", config->log_directory);
	return r < 0 ? err_ctx(e, "remove pod \"%s\"", run->name) : 0;
}

/* Return: an error if the container could not be stopped after an interruption */
static int receive_stop(struct run *run, struct hw_err *e)
{
	AUTO(api_free) Runtime__V1__StopContainerResponse *answer = NULL;
	int r;

	if (!run->stop)
		return 0;
	r = api_stream_receive(run->stop, &runtime__v1__stop_container_response__descriptor,
			       (ProtobufCMessage **)&answer, e);
	return r < 0 ? err_ctx(e, "stop container \"%s\"", run->name) : 0;
}

/* Return: the exit code */
static int follow(struct run *run, const struct run_config *config, struct hw_err *e)
{
	int r, exit_code = 0;

	r = log_open(&run->log, config->log_path, e);
	if (r >= 0)
		r = container_wait(run->cli, run->name, run->container, print_and_pause, run,
				   &exit_code, e);
	if (r >= 0)
		r = log_print_new(&run->log, e);
	if (r >= 0)
		r = receive_stop(run, e);
	if (r >= 0)
		r = log_end(&run->log, e);
	return r < 0 ? r : exit_code & 0xff;
}

static int print_ids(const struct run *run)
{
	autofree char *id = text_clean(run->container);
	struct value *v;

	if (!run->cli->json) {
		printf("%s\n", id);
		return 0;
	}
	v = value_new_object();
	value_set(v, "podSandboxId", value_new_string(run->pod));
	value_set(v, "containerId", value_new_string(run->container));
	print_json(v);
	return 0;
}

/* ---- command --------------------------------------------------------------------- */

static int run_pod(struct run *run, struct run_config *config, struct hw_err *e)
{
	int r, signal;
	bool started;

	r = catch_signals(run, e);
	if (r < 0)
		return r;
	r = create(run, config, e);
	signal = next_signal(run);
	if (r == 0 && signal)
		r = status_set(e, STATUS_CANCELLED, "interrupted by signal %d", signal);
	if (r == 0)
		r = container_start(run->cli, run->name, run->container, e);
	started = r == 0;
	if (started)
		r = given.detach ? print_ids(run) : follow(run, config, e);
	if (!started || given.remove) {
		struct errors errors = { 0 };
		struct hw_err failed;

		if (r < 0)
			errors_add(&errors, e);
		if (remove_all(run, config, &failed) < 0)
			errors_add(&errors, &failed);
		if (errors.n)
			r = errors_result(&errors, e);
	}
	return r;
}

static int run_run(struct cli *cli, char **args, struct hw_err *e)
{
	AUTO(run_config_done) struct run_config config = { 0 };
	AUTO(run_done) struct run run = { .cli = cli, .signals = -1, .log = LOG_OUTPUT };
	autofree char *image = NULL;
	int r;

	if (given.remove && given.detach)
		return usage_error(
			cli, e,
			"--rm conflicts with --detach: hawser would end before the container");
	r = run_config_init(&config, &given.options, args[0], args + 1, e);
	if (r < 0) {
		cli->error_source = ERROR_USAGE;
		return r;
	}
	run.name = config.name;
	r = check_volumes(&config, e);
	if (r == 0)
		r = check_name(cli, config.name, e);
	if (r < 0)
		return r;
	r = get_image(cli, args[0], &image, e);
	if (r < 0)
		return r;
	run_config_set_image(&config, image);
	r = make_log_directory(&config, e);
	return r < 0 ? r : run_pod(&run, &config, e);
}

const struct command run_command = {
	.name = "run",
	.group = "containers",
	.args = "IMAGE [COMMAND...]",
	.min_args = 1,
	.max_args = -1,
	.runs_words = true,
	.run = run_run,
	.summary = "run a container in a pod of its own",
	.help = "The image is pulled if it is missing. COMMAND replaces the command of the image, "
		"but\n"
		"not its entrypoint. The log is printed until the container has ended, and the "
		"exit\n"
		"status is that of the container, or 125 if it could not be run. Ctrl-C stops the\n"
		"container, a second Ctrl-C kills it.\n\n"
		"A kubelet on the same host removes pods that it does not know.\n\n"
		"examples:\n"
		"  hawser run --rm busybox:1.36 wget -qO- http://example.com\n"
		"  hawser run -d --name web -p 8080:80 -v /srv/www:/www:ro nginx:1\n",
	.options = options,
};
