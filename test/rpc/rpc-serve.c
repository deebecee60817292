/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rpc-serve SOCKET [LONG-CALLS]: serves the sample service of src/rpc on a unix socket
 *
 * Prints "ready" when it accepts calls; SIGTERM drains it for up to two seconds. The exit
 * status is 0 if every handler that was started has ended.
 */
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include <uv.h>

#include "base/str.h"
#include "rpc/sample.h"
#include "rpc/server.h"
#include "rpc/socket.h"

#define DRAIN 2000 /* ms */

struct program {
	uv_loop_t loop;
	uv_signal_t term;
	struct rpc_server *server;
	struct sample_counts sample;
};

static void on_stopped(void *ctx)
{
	(void)ctx;
}

static void on_term(uv_signal_t *term, int number)
{
	struct program *p = term->data;

	(void)number;
	uv_close((uv_handle_t *)term, NULL);
	rpc_server_stop(p->server, DRAIN, on_stopped, p);
}

static int start_server(struct program *p, const char *path, const struct rpc_config *config,
			struct hw_err *e)
{
	const struct socket_owner owner = { .mode = 0600, .uid = (uid_t)-1, .gid = (gid_t)-1 };
	int fd, r;

	uv_loop_init(&p->loop);
	uv_signal_init(&p->loop, &p->term);
	p->term.data = p;
	uv_signal_start(&p->term, on_term, SIGTERM);
	r = rpc_server_new(&p->loop, config, &p->server, e);
	if (r < 0)
		return r;
	rpc_server_add(p->server, sample_methods, &p->sample);
	r = socket_listen(path, &owner, &fd, e);
	if (r == 0)
		r = rpc_server_listen(p->server, fd, e);
	return r;
}

int main(int argc, char **argv)
{
	struct rpc_config config = RPC_CONFIG;
	struct program p = { 0 };
	long long long_calls = config.long_calls_max;
	struct hw_err e;

	if (argc < 2 || argc > 3 || (argc == 3 && !str_to_int64(argv[2], 0, 100000, &long_calls))) {
		fprintf(stderr, "usage: rpc-serve SOCKET [LONG-CALLS]\n");
		return 2;
	}
	config.long_calls_max = (unsigned)long_calls;
	if (start_server(&p, argv[1], &config, &e) < 0) {
		fprintf(stderr, "rpc-serve: %s\n", e.msg);
		return 1;
	}
	printf("ready\n");
	fflush(stdout);
	uv_run(&p.loop, UV_RUN_DEFAULT);
	rpc_server_free(p.server);
	uv_loop_close(&p.loop);
	unlink(argv[1]);
	return p.sample.started == p.sample.ended ? 0 : 1;
}
