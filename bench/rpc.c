/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench/rpc.c - time empty unary calls to two servers
 *
 * What:  bench-rpc SAMPLES CLIENTS CROWD OUR-SOCKET OUR-METHOD THEIR-SOCKET THEIR-METHOD
 *        The sockets are those of two servers, OURS and THEIRS. A sample is one call on each
 *        of CLIENTS connections to each server; all requests are sent before the first
 *        response is read. Prints a line for each sample: the nanoseconds of OURS and
 *        of THEIRS, divided by CLIENTS.
 * How:   the two servers are called alternately. If CROWD is not 0, OURS must be the
 *        sample service of src/rpc: CROWD calls that sleep, and CROWD / 4 clients that
 *        never read their response, are started before the first sample.
 */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/time.h"
#include "rpc/client.h"

#define CLIENTS_MAX 256
#define CROWD_MAX   400
#define TIMEOUT	    60000 /* ms */

struct side {
	const char *socket, *method;
	size_t n;
	struct rpc_client *clients[CLIENTS_MAX];
};

static void check(int r, const struct hw_err *e)
{
	if (r >= 0)
		return;
	fprintf(stderr, "bench-rpc: %s\n", e->msg);
	exit(1);
}

static struct rpc_stream *start_call(struct rpc_client *client, const char *method,
				     const char *text)
{
	struct rpc_stream *stream;
	struct buf request = { 0 };
	struct hw_err e;

	buf_puts(&request, text);
	check(rpc_stream_open(client, method, &request, time_deadline(TIMEOUT), &stream, &e), &e);
	return stream;
}

static void finish_call(struct rpc_stream *stream)
{
	struct hw_err e;
	int r;

	do {
		AUTO(buf_done) struct buf response = { 0 };

		r = rpc_stream_receive(stream, &response, &e);
		check(r, &e);
	} while (r == 1);
	rpc_stream_free(stream);
}

static int64_t run_sample(struct side *s)
{
	struct rpc_stream *streams[CLIENTS_MAX];
	int64_t before = time_now();

	assert(s->n > 0);
	for (size_t i = 0; i < s->n; i++)
		streams[i] = start_call(s->clients[i], s->method, "");
	for (size_t i = 0; i < s->n; i++)
		finish_call(streams[i]);
	return (time_now() - before) / (int64_t)s->n;
}

static void open_side(struct side *s)
{
	struct hw_err e;

	for (size_t i = 0; i < s->n; i++)
		check(rpc_client_open(s->socket, &s->clients[i], &e), &e);
	for (int i = 0; i < 20; i++)
		run_sample(s);
}

/* These connections and calls stay open until the program exits. */
static struct {
	struct rpc_client *sleeping, *stalled[CROWD_MAX / 4];
	struct rpc_stream *streams[CROWD_MAX + CROWD_MAX / 4];
} crowd;

static void start_crowd(const char *socket, long long n)
{
	struct rpc_stream **next = crowd.streams;
	struct hw_err e;

	check(rpc_client_open(socket, &crowd.sleeping, &e), &e);
	for (long long i = 0; i < n; i++)
		*next++ = start_call(crowd.sleeping, "/sample.Sample/Sleep", "2000000");
	/* While the client waits for this response, it also receives the server's limit of
	 * concurrent calls. Only then can it send all calls above. */
	finish_call(start_call(crowd.sleeping, "/sample.Sample/Echo", ""));
	for (long long i = 0; i < n / 4; i++) {
		check(rpc_client_open(socket, &crowd.stalled[i], &e), &e);
		*next++ = start_call(crowd.stalled[i], "/sample.Sample/Count", "100 1000000");
	}
}

static void close_side(struct side *s)
{
	for (size_t i = 0; i < s->n; i++)
		rpc_client_close(s->clients[i]);
}

int main(int argc, char **argv)
{
	struct side ours = { 0 }, theirs = { 0 };
	long long samples, clients, crowd_size;

	if (argc != 8 || !str_to_int64(argv[1], 1, 1000000, &samples) ||
	    !str_to_int64(argv[2], 1, CLIENTS_MAX, &clients) ||
	    !str_to_int64(argv[3], 0, CROWD_MAX, &crowd_size)) {
		fprintf(stderr, "usage: bench-rpc SAMPLES CLIENTS CROWD OUR-SOCKET OUR-METHOD "
				"THEIR-SOCKET THEIR-METHOD\n");
		return 2;
	}
	ours = (struct side){ .socket = argv[4], .method = argv[5], .n = (size_t)clients };
	theirs = (struct side){ .socket = argv[6], .method = argv[7], .n = (size_t)clients };
	if (crowd_size > 0)
		start_crowd(ours.socket, crowd_size);
	open_side(&ours);
	open_side(&theirs);
	for (long long i = 0; i < samples; i++) {
		int64_t ns = run_sample(&ours);

		printf("%" PRId64 " %" PRId64 "\n", ns, run_sample(&theirs));
	}
	close_side(&ours);
	close_side(&theirs);
	return 0;
}
