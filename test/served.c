/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test/served.c - run plugins through `hawser-plugin serve`, as hawser-cri does
 *
 *	PLUGIN                     a link to this program with the name of a plugin: runs
 *	                           $SERVED_PLUGINS/PLUGIN, so that tests of programs can test serve.
 *	                           serve runs hawser-plugin in $SERVED_PROGRAM
 *	served DIR PLUGINS PROGRAM a daemon: DIR has the network in conflist, state and cache;
 *	                           PLUGINS is the directory of plugins
 *
 * Commands of the daemon on standard input, and what they print:
 *
 *	add|del POD                start a call in a thread: container cPOD, namespace /run/netns/pPOD
 *	join                       wait for all calls: "POD ok" or "POD error MESSAGE" for each, in the
 *	                           order of the commands, then "end"; a newline in MESSAGE becomes a space
 *	cancel                     cancel all calls
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <hawser/cni.h>

#include "base/os/file.h"
#include "base/str.h"
#include "pod/network/plugin-server.h"

#define INPUT_MAX (8 << 20)
#define CALLS_MAX 1000

static void __attribute__((noreturn)) die(const char *what, const char *why)
{
	fprintf(stderr, "served: %s: %s\n", what, why);
	exit(2);
}

static struct plugin_server *new_server(const char *dirs, const char *program, const char *state)
{
	struct hw_err e;

	if (file_mkdirs(AT_FDCWD, state, 0700, &e) < 0)
		die(state, e.msg);
	return plugin_server_new(&(struct plugin_server_options){
		.plugin_dirs = dirs, .program = program, .state_dir = state });
}

/* ---- as a plugin ------------------------------------------------------------------- */

static int run_plugin(const char *name)
{
	const char *plugins = getenv("SERVED_PLUGINS"), *program = getenv("SERVED_PROGRAM");
	const char *state = str_or(getenv("HAWSER_STATE"), "/run/hawser");
	AUTO(plugin_server_free) struct plugin_server *server = NULL;
	autofree char *path = NULL;
	AUTO(buf_done) struct buf input = { 0 };
	struct hw_ran ran = { .size = sizeof(ran) };
	struct hw_err e;

	if (!plugins || !program)
		die(name, "SERVED_PLUGINS and SERVED_PROGRAM must be set");
	if (getenv("CNI_PATH"))
		setenv("CNI_PATH", plugins, 1);
	if (file_read_fd(STDIN_FILENO, INPUT_MAX, &input, &e) < 0)
		die(name, e.msg);
	path = str_printf("%s/%s", plugins, name);
	server = new_server("", program, state);
	const struct hw_exec *exec = plugin_server_exec(server);
	const struct hw_run run = {
		.size = sizeof(run),
		.plugin = path,
		.env = (const char *const *)environ,
		.input = input.data,
		.input_len = input.len,
	};
	if (exec->run(exec->ctx, &run, &ran, &e) < 0)
		die(name, e.msg);
	fwrite(ran.output, 1, ran.output_len, stdout);
	fwrite(ran.errors, 1, ran.errors_len, stderr);
	free(ran.output);
	free(ran.errors);
	if (WIFSIGNALED(ran.status))
		raise(WTERMSIG(ran.status));
	return WEXITSTATUS(ran.status);
}

/* ---- as a daemon ------------------------------------------------------------------- */

struct daemon {
	struct hw_cni *cni;
	struct hw_conf *conf;
	int cancel_fd;
};

struct call {
	const struct daemon *d;
	bool del;
	int pod;
	pthread_t thread;
	int r;
	struct hw_err e;
};

static void *run_call(void *arg)
{
	struct call *c = arg;
	autofree char *id = str_printf("c%d", c->pod);
	autofree char *netns = str_printf("/run/netns/p%d", c->pod);
	autofree char *ports = str_printf("{\"portMappings\":[{\"hostPort\":%d,"
					  "\"containerPort\":80,\"protocol\":\"tcp\"}]}",
					  20000 + c->pod);
	const struct hw_attach at = { .size = sizeof(at),
				      .container_id = id,
				      .netns = netns,
				      .ifname = "eth0",
				      .capability_args = ports,
				      .cancel_fd = c->d->cancel_fd };

	c->r = c->del ? hw_del(c->d->cni, c->d->conf, &at, &c->e)
		      : hw_add(c->d->cni, c->d->conf, &at, 0, NULL, &c->e);
	return NULL;
}

static void start_call(const struct daemon *d, struct call *c, const char *line)
{
	*c = (struct call){ .d = d, .del = str_starts(line, "del ") };
	c->pod = (int)strtol(line + strlen("add "), NULL, 10);
	if (pthread_create(&c->thread, NULL, run_call, c) != 0)
		die(line, "no thread");
}

static void join_calls(struct call *calls, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		pthread_join(calls[i].thread, NULL);
		for (char *c = calls[i].e.msg; calls[i].r < 0 && *c; c++)
			*c = *c == '\n' ? ' ' : *c;
		if (calls[i].r < 0)
			printf("%d error %s\n", calls[i].pod, calls[i].e.msg);
		else
			printf("%d ok\n", calls[i].pod);
	}
	puts("end");
	fflush(stdout);
}

static void open_network(struct daemon *d, const char *dir, const char *plugins,
			 const struct hw_exec *exec)
{
	autofree char *conf = str_printf("%s/conflist", dir);
	autofree char *cache = str_printf("%s/cache", dir);
	autofree char *state = str_printf("%s/state", dir);
	const char *const dirs[] = { plugins, NULL };
	const struct hw_cni_options options = { .size = sizeof(options),
						.plugin_dirs = dirs,
						.cache_dir = cache,
						.state_dir = state,
						.exec = exec,
						.stderr_mode = HW_STDERR_DROP };
	struct hw_err e;

	d->cancel_fd = eventfd(0, EFD_CLOEXEC);
	if (hw_conf_open(conf, &d->conf, &e) < 0 || hw_cni_new(&options, &d->cni, &e) < 0)
		die(conf, e.msg);
}

static int run_daemon(const char *dir, const char *plugins, const char *program)
{
	autofree char *state = str_printf("%s/state", dir);
	AUTO(plugin_server_free)
	struct plugin_server *server = new_server(plugins, program, state);
	static struct call calls[CALLS_MAX];
	struct daemon d;
	char line[256];
	size_t n = 0;

	open_network(&d, dir, plugins, plugin_server_exec(server));
	while (fgets(line, sizeof(line), stdin)) {
		line[strcspn(line, "\n")] = '\0';
		if (str_equal(line, "join")) {
			join_calls(calls, n);
			n = 0;
		} else if (str_equal(line, "cancel")) {
			eventfd_write(d.cancel_fd, 1);
		} else if (n < CALLS_MAX) {
			start_call(&d, &calls[n++], line);
		}
	}
	hw_cni_free(d.cni);
	hw_conf_free(d.conf);
	close(d.cancel_fd);
	return 0;
}

int main(int argc, char **argv)
{
	const char *name = basename(argv[0]);

	if (!str_equal(name, "served"))
		return run_plugin(name);
	if (argc != 4)
		die("usage", "served DIR PLUGINS PROGRAM");
	return run_daemon(argv[1], argv[2], argv[3]);
}
