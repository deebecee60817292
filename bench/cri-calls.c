/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench/cri-calls.c - steps of operations on a CRI runtime
 *
 *	run, run-pause		RunPodSandbox; with pause the containers share a PID namespace
 *	stop, remove		StopPodSandbox, RemovePodSandbox
 *	create			CreateContainer: a shell that prints "ready" and ends on SIGTERM
 *	create-printer		the same; it also prints what the step "line" writes
 *	start, stop-container, remove-container
 *	exec			ExecSync of /bin/true
 *	stats			ListContainerStats of all containers
 *	ready			wait until the container has printed "ready"
 *	line			from writing a line, which the container prints, until it is in the log
 *	settle			wait until background work has ended
 *
 * The image is that of test/runtimes/busybox.py. Logs are in the directory of the side.
 */
#include "cri.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/call.h"
#include "api/cri-v1.pb-c.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/time.h"
#include "cri/service/convert.h"

#define IMAGE	  "hawser.test/busybox:1"
#define TIMEOUT	  600000 /* ms */
#define GRACE	  10	 /* s */
#define SETTLE_MS 40
#define LINE_MS	  60000
#define INSIDE	  "/bench" /* where the container sees the directory of the fifo */
#define SERVER	  "trap 'exit 0' TERM; echo ready; sleep 100000 & wait"
#define PRINTER	  "trap 'exit 0' TERM; echo ready; cat <>" INSIDE "/fifo & wait"
#define CGROUP	  "/bench"

/* Returns the response, which the caller frees, and adds the time to *ns. */
static ProtobufCMessage *call(const struct side *side, struct rpc_client *client,
			      const char *method, const ProtobufCMessage *request, int64_t *ret_ns)
{
	ProtobufCMessage *response;
	int64_t start = time_now();
	struct hw_err e;

	if (api_call(client, &runtime__v1__runtime_service__descriptor, method, request,
		     time_deadline(TIMEOUT), &response, &e) < 0)
		cri_die(side->target, e.msg);
	*ret_ns = time_now() - start;
	return response;
}

static int64_t call_only(const struct side *side, struct rpc_client *client, const char *method,
			 const ProtobufCMessage *request)
{
	int64_t ns;

	message_free(call(side, client, method, request, &ns));
	return ns;
}

/* ---- pods --------------------------------------------------------------------------- */

static int64_t run_pod(const struct side *side, struct rpc_client *client, struct op *op,
		       Runtime__V1__NamespaceMode pid)
{
	autofree char *name = str_printf("pod%d", op->number);
	Runtime__V1__PodSandboxMetadata metadata = RUNTIME__V1__POD_SANDBOX_METADATA__INIT;
	Runtime__V1__NamespaceOption namespaces = RUNTIME__V1__NAMESPACE_OPTION__INIT;
	Runtime__V1__LinuxSandboxSecurityContext security;
	Runtime__V1__LinuxPodSandboxConfig lin = RUNTIME__V1__LINUX_POD_SANDBOX_CONFIG__INIT;
	Runtime__V1__PodSandboxConfig config = RUNTIME__V1__POD_SANDBOX_CONFIG__INIT;
	Runtime__V1__RunPodSandboxRequest request = RUNTIME__V1__RUN_POD_SANDBOX_REQUEST__INIT;
	Runtime__V1__RunPodSandboxResponse *response;
	int64_t ns;

	metadata.name = metadata.uid = name;
	metadata.namespace_ = no_const("bench");
	namespaces.pid = pid;
	runtime__v1__linux_sandbox_security_context__init(&security);
	security.namespace_options = &namespaces;
	lin.cgroup_parent = no_const(CGROUP);
	lin.security_context = &security;
	config.metadata = &metadata;
	config.hostname = name;
	config.log_directory = no_const(side->dir);
	config.linux = &lin;
	request.config = &config;
	response = (void *)call(side, client, "RunPodSandbox", &request.base, &ns);
	op->pod = str_copy(response->pod_sandbox_id);
	message_free(&response->base);
	return ns;
}

static int64_t run(const struct side *side, struct rpc_client *client, struct op *op)
{
	return run_pod(side, client, op, RUNTIME__V1__NAMESPACE_MODE__CONTAINER);
}

static int64_t run_pause(const struct side *side, struct rpc_client *client, struct op *op)
{
	return run_pod(side, client, op, RUNTIME__V1__NAMESPACE_MODE__POD);
}

static int64_t stop(const struct side *side, struct rpc_client *client, struct op *op)
{
	Runtime__V1__StopPodSandboxRequest request = RUNTIME__V1__STOP_POD_SANDBOX_REQUEST__INIT;

	request.pod_sandbox_id = op->pod;
	return call_only(side, client, "StopPodSandbox", &request.base);
}

static int64_t remove_pod(const struct side *side, struct rpc_client *client, struct op *op)
{
	Runtime__V1__RemovePodSandboxRequest request =
		RUNTIME__V1__REMOVE_POD_SANDBOX_REQUEST__INIT;

	request.pod_sandbox_id = op->pod;
	return call_only(side, client, "RemovePodSandbox", &request.base);
}

/* ---- containers --------------------------------------------------------------------- */

static char *log_name(const struct op *op)
{
	return str_printf("%s-%d.log", op->pod, op->number);
}

static int64_t create_container(const struct side *side, struct rpc_client *client, struct op *op,
				const char *script, bool fifo)
{
	autofree char *name = str_printf("container%d", op->number), *log = log_name(op);
	char *command[] = { no_const("/bin/sh"), no_const("-c"), no_const(script) };
	Runtime__V1__PodSandboxMetadata pod_metadata = RUNTIME__V1__POD_SANDBOX_METADATA__INIT;
	Runtime__V1__PodSandboxConfig pod = RUNTIME__V1__POD_SANDBOX_CONFIG__INIT;
	Runtime__V1__ContainerMetadata metadata = RUNTIME__V1__CONTAINER_METADATA__INIT;
	Runtime__V1__ImageSpec image = RUNTIME__V1__IMAGE_SPEC__INIT;
	Runtime__V1__Mount mount = RUNTIME__V1__MOUNT__INIT, *mounts[] = { &mount };
	Runtime__V1__NamespaceOption namespaces = RUNTIME__V1__NAMESPACE_OPTION__INIT;
	Runtime__V1__LinuxContainerSecurityContext security;
	Runtime__V1__LinuxContainerConfig lin = RUNTIME__V1__LINUX_CONTAINER_CONFIG__INIT;
	Runtime__V1__ContainerConfig config = RUNTIME__V1__CONTAINER_CONFIG__INIT;
	Runtime__V1__CreateContainerRequest request = RUNTIME__V1__CREATE_CONTAINER_REQUEST__INIT;
	Runtime__V1__CreateContainerResponse *response;
	int64_t ns;

	pod.metadata = &pod_metadata;
	pod.log_directory = no_const(side->dir);
	metadata.name = name;
	image.image = no_const(IMAGE);
	mount.host_path = no_const(side->dir);
	mount.container_path = no_const(INSIDE);
	namespaces.pid = RUNTIME__V1__NAMESPACE_MODE__CONTAINER;
	runtime__v1__linux_container_security_context__init(&security);
	security.namespace_options = &namespaces;
	lin.security_context = &security;
	config.metadata = &metadata;
	config.image = &image;
	config.command = command;
	config.n_command = ARRAY_SIZE(command);
	config.log_path = log;
	config.mounts = mounts;
	config.n_mounts = fifo;
	config.linux = &lin;
	request.pod_sandbox_id = op->pod;
	request.sandbox_config = &pod;
	request.config = &config;
	response = (void *)call(side, client, "CreateContainer", &request.base, &ns);
	op->container = str_copy(response->container_id);
	message_free(&response->base);
	return ns;
}

static int64_t create(const struct side *side, struct rpc_client *client, struct op *op)
{
	return create_container(side, client, op, SERVER, false);
}

static int64_t create_printer(const struct side *side, struct rpc_client *client, struct op *op)
{
	autofree char *fifo = str_printf("%s/fifo", side->dir);

	if (mkfifo(fifo, 0600) < 0 && errno != EEXIST)
		cri_die(fifo, strerror(errno));
	return create_container(side, client, op, PRINTER, true);
}

static int64_t start(const struct side *side, struct rpc_client *client, struct op *op)
{
	Runtime__V1__StartContainerRequest request = RUNTIME__V1__START_CONTAINER_REQUEST__INIT;

	request.container_id = op->container;
	return call_only(side, client, "StartContainer", &request.base);
}

static int64_t stop_container(const struct side *side, struct rpc_client *client, struct op *op)
{
	Runtime__V1__StopContainerRequest request = RUNTIME__V1__STOP_CONTAINER_REQUEST__INIT;

	request.container_id = op->container;
	request.timeout = GRACE;
	return call_only(side, client, "StopContainer", &request.base);
}

static int64_t remove_container(const struct side *side, struct rpc_client *client, struct op *op)
{
	Runtime__V1__RemoveContainerRequest request = RUNTIME__V1__REMOVE_CONTAINER_REQUEST__INIT;

	request.container_id = op->container;
	return call_only(side, client, "RemoveContainer", &request.base);
}

static int64_t exec(const struct side *side, struct rpc_client *client, struct op *op)
{
	Runtime__V1__ExecSyncRequest request = RUNTIME__V1__EXEC_SYNC_REQUEST__INIT;
	Runtime__V1__ExecSyncResponse *response;
	char *command[] = { no_const("/bin/true") };
	int64_t ns;

	request.container_id = op->container;
	request.cmd = command;
	request.n_cmd = ARRAY_SIZE(command);
	response = (void *)call(side, client, "ExecSync", &request.base, &ns);
	if (response->exit_code != 0)
		cri_die("ExecSync", "/bin/true failed");
	message_free(&response->base);
	return ns;
}

static int64_t stats(const struct side *side, struct rpc_client *client, struct op *op)
{
	Runtime__V1__ListContainerStatsRequest request =
		RUNTIME__V1__LIST_CONTAINER_STATS_REQUEST__INIT;
	Runtime__V1__ListContainerStatsResponse *response;
	int64_t ns;

	(void)op;
	response = (void *)call(side, client, "ListContainerStats", &request.base, &ns);
	for (size_t i = 0; i < response->n_stats; i++)
		if (!response->stats[i]->cpu || !response->stats[i]->memory)
			cri_die("ListContainerStats", "a container without values");
	message_free(&response->base);
	return ns;
}

/* ---- log ---------------------------------------------------------------------------- */

static off_t log_size(const char *log)
{
	struct stat st;

	return stat(log, &st) == 0 ? st.st_size : 0;
}

static int64_t ready(const struct side *side, struct rpc_client *client, struct op *op)
{
	autofree char *name = log_name(op), *log = str_printf("%s/%s", side->dir, name);
	int64_t started = time_now(), deadline = time_deadline(LINE_MS);

	(void)client;
	while (log_size(log) == 0) {
		if (time_has_passed(deadline))
			cri_die(log, "the container has not printed \"ready\"");
		time_sleep(1);
	}
	return time_now() - started;
}

/* Waits until the log grows beyond @size. */
static void wait_for_line(int inotify, const char *log, off_t size)
{
	struct pollfd p = { .fd = inotify, .events = POLLIN };
	char events[4096];

	while (log_size(log) == size)
		if (poll(&p, 1, LINE_MS) != 1 || read(inotify, events, sizeof(events)) < 0)
			cri_die(log, "no new line");
}

static int64_t line(const struct side *side, struct rpc_client *client, struct op *op)
{
	autofree char *name = log_name(op), *log = str_printf("%s/%s", side->dir, name);
	autofree char *fifo = str_printf("%s/fifo", side->dir);
	autoclose int to = open(fifo, O_RDWR | O_CLOEXEC), inotify = inotify_init1(IN_CLOEXEC);
	off_t size = log_size(log);
	int64_t started;

	(void)client;
	if (to < 0 || inotify_add_watch(inotify, log, IN_MODIFY) < 0)
		cri_die(log, strerror(errno));
	started = time_now();
	if (write(to, "line\n", 5) != 5)
		cri_die(fifo, strerror(errno));
	wait_for_line(inotify, log, size);
	return time_now() - started;
}

static int64_t settle(const struct side *side, struct rpc_client *client, struct op *op)
{
	(void)side;
	(void)client;
	(void)op;
	time_sleep(SETTLE_MS);
	return 0;
}

static const struct step steps[] = {
	{ "run", run },
	{ "run-pause", run_pause },
	{ "stop", stop },
	{ "remove", remove_pod },
	{ "create", create },
	{ "create-printer", create_printer },
	{ "start", start },
	{ "stop-container", stop_container },
	{ "remove-container", remove_container },
	{ "exec", exec },
	{ "stats", stats },
	{ "ready", ready },
	{ "line", line },
	{ "settle", settle },
	{ NULL, NULL },
};

const struct side_kind kind_cri = { .name = "cri", .steps = steps, .has_client = true };
