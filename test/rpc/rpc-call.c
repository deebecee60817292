/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rpc-call SOCKET METHOD TIMEOUT-MS [MESSAGE...]: makes one call, prints one response per line
 *
 * A MESSAGE is sent unchanged; @N stands for N bytes of "x". Responses of more than 100
 * bytes are printed as their length, "@N". A call that fails prints "CODE text" and exits
 * with status 1.
 */
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "base/time.h"
#include "rpc/client.h"
#include "rpc/grpc/status.h"

#define PRINT_MAX 100

static void make_message(const char *text, struct buf *b)
{
	long long n;

	if (text[0] == '@' && str_to_int64(text + 1, 0, 64 << 20, &n)) {
		memset(buf_reserve(b, (size_t)n), 'x', (size_t)n);
		buf_commit(b, (size_t)n);
	} else {
		buf_puts(b, text);
	}
}

static int send_messages(struct rpc_stream *stream, char **messages, struct hw_err *e)
{
	int r = 0;

	for (; r == 0 && *messages; messages++) {
		struct buf b = { 0 };

		make_message(*messages, &b);
		r = rpc_stream_send(stream, &b, e);
	}
	rpc_stream_end_request(stream);
	return r;
}

static int print_responses(struct rpc_stream *stream, struct hw_err *e)
{
	int r;

	do {
		AUTO(buf_done) struct buf b = { 0 };

		r = rpc_stream_receive(stream, &b, e);
		if (r == 1 && b.len > PRINT_MAX)
			printf("@%zu\n", b.len);
		else if (r == 1)
			printf("%s\n", str_or(b.data, ""));
	} while (r == 1);
	return r;
}

static int make_call(const char *path, const char *method, int ms, char **messages,
		     struct hw_err *e)
{
	AUTO(rpc_client_close) struct rpc_client *client = NULL;
	AUTO(rpc_stream_free) struct rpc_stream *stream = NULL;
	int r = rpc_client_open(path, &client, e);

	if (r == 0)
		r = rpc_stream_open(client, method, NULL, time_deadline(ms), &stream, e);
	if (r == 0)
		r = send_messages(stream, messages, e);
	return r == 0 ? print_responses(stream, e) : r;
}

int main(int argc, char **argv)
{
	struct hw_err e;
	long long ms;

	if (argc < 4 || !str_to_int64(argv[3], 0, 1000000, &ms)) {
		fprintf(stderr, "usage: rpc-call SOCKET METHOD TIMEOUT-MS [MESSAGE...]\n");
		return 2;
	}
	if (make_call(argv[1], argv[2], (int)ms, argv + 4, &e) == 0)
		return 0;
	printf("%s %s\n", status_name((int)status_from_err(&e)), e.msg);
	return 1;
}
