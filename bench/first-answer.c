/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench/first-answer.c - time the start of a CRI runtime until it answers
 *
 * What:  first-answer SOCKET PODS CONTAINERS PROGRAM [ARGUMENT...]
 *        starts the program and prints the nanoseconds until lists of pods and containers have
 *        succeeded, with at least that many entries. Then stops it with SIGTERM and waits for
 *        its end. Its output is written to SOCKET.log.
 * How:   tries every half millisecond to connect and to call. A runtime may accept calls before it
 *        has read its state, and then refuses them.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "api/call.h"
#include "api/cri-v1.pb-c.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/time.h"

#define TIMEOUT	 120000 /* ms */
#define EVERY_NS 500000

extern char **environ;

static void __attribute__((noreturn)) die(const char *what, const char *why)
{
	fprintf(stderr, "first-answer: %s: %s\n", what, why);
	exit(1);
}

static bool list_pods(struct rpc_client *client, long long pods, int64_t deadline, struct hw_err *e)
{
	AUTO(api_free) Runtime__V1__ListPodSandboxResponse *response = NULL;
	Runtime__V1__ListPodSandboxRequest request = RUNTIME__V1__LIST_POD_SANDBOX_REQUEST__INIT;

	return api_call(client, &runtime__v1__runtime_service__descriptor, "ListPodSandbox",
			&request.base, deadline, (ProtobufCMessage **)&response, e) == 0 &&
	       response->n_items >= (size_t)pods;
}

static bool list_containers(struct rpc_client *client, long long containers, int64_t deadline,
			    struct hw_err *e)
{
	AUTO(api_free) Runtime__V1__ListContainersResponse *response = NULL;
	Runtime__V1__ListContainersRequest request = RUNTIME__V1__LIST_CONTAINERS_REQUEST__INIT;

	return api_call(client, &runtime__v1__runtime_service__descriptor, "ListContainers",
			&request.base, deadline, (ProtobufCMessage **)&response, e) == 0 &&
	       response->n_containers >= (size_t)containers;
}

static bool answers(const char *socket, long long pods, long long containers, int64_t deadline,
		    struct hw_err *e)
{
	AUTO(rpc_client_close) struct rpc_client *client = NULL;

	return rpc_client_open(socket, &client, e) == 0 && list_pods(client, pods, deadline, e) &&
	       list_containers(client, containers, deadline, e);
}

static pid_t start_program(char **argv, const char *log)
{
	posix_spawn_file_actions_t actions;
	pid_t pid;
	int r;

	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, log, O_WRONLY | O_CREAT | O_TRUNC,
					 0600);
	posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
	r = posix_spawnp(&pid, argv[0], &actions, NULL, argv, environ);
	if (r != 0)
		die(argv[0], strerror(r));
	posix_spawn_file_actions_destroy(&actions);
	return pid;
}

int main(int argc, char **argv)
{
	int64_t start = time_now(), deadline = time_deadline(TIMEOUT);
	long long pods, containers;
	autofree char *log = NULL;
	struct hw_err e = { 0 };
	int status;
	pid_t pid;

	if (argc < 5 || !str_to_int64(argv[2], 0, 1000000, &pods) ||
	    !str_to_int64(argv[3], 0, 1000000, &containers))
		die("usage", "first-answer SOCKET PODS CONTAINERS PROGRAM [ARGUMENT...]");
	log = str_printf("%s.log", argv[1]);
	pid = start_program(argv + 4, log);
	while (!answers(argv[1], pods, containers, deadline, &e)) {
		if (time_has_passed(deadline) || waitpid(pid, &status, WNOHANG) != 0)
			die(argv[4], e.msg);
		nanosleep(&(struct timespec){ .tv_nsec = EVERY_NS }, NULL);
	}
	printf("%" PRId64 "\n", time_now() - start);
	if (kill(pid, SIGTERM) < 0 || waitpid(pid, &status, 0) < 0)
		die(argv[4], strerror(errno));
	return 0;
}
