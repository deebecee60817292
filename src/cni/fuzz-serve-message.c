/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cni/fuzz-serve-message.c - fuzzer: packets and messages between a daemon and its serve
 *
 * The first byte says what the message is decoded as, the second one is the size of the packets, each
 * with its type, in which the rest is sent. A message that is accepted must be the same after encoding
 * and decoding it again.
 */
#include <assert.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/mem.h"
#include "cni/serve-message.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_request(const struct buf *message)
{
	AUTO(serve_request_done) struct serve_request first = { 0 }, second = { 0 };
	AUTO(buf_done) struct buf again = { 0 };
	struct hw_err e;
	int r;

	if (serve_request_decode(message, &first, &e) < 0) {
		assert(e.code < 0 && e.msg[0]);
		return;
	}
	serve_request_encode(&first, &again);
	r = serve_request_decode(&again, &second, &e);
	assert(r == 0);
	assert(strcmp(first.plugin, second.plugin) == 0);
	assert(first.input_len == second.input_len);
	assert(memcmp(first.input, second.input, first.input_len) == 0);
	for (size_t i = 0; first.env[i] || second.env[i]; i++)
		assert(first.env[i] && second.env[i] && strcmp(first.env[i], second.env[i]) == 0);
}

static void check_reply(const struct buf *message)
{
	AUTO(buf_done) struct buf again = { 0 };
	struct serve_reply reply;
	struct hw_err e;

	if (serve_reply_decode(message, &reply, &e) < 0) {
		assert(e.code < 0 && e.msg[0]);
		return;
	}
	serve_reply_encode(&reply, &again);
	assert(again.len == message->len && memcmp(again.data, message->data, again.len) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO(buf_done) struct buf message = { 0 };
	int pair[2], r = 0;
	struct hw_err e;

	if (size < 2 || data[1] == 0 ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return 0;
	for (size_t at = 2; at < size && r == 0; at += data[1]) {
		size_t left = size - at, len = left < data[1] ? left : data[1];

		if (send(pair[0], data + at, len, MSG_DONTWAIT) < 0)
			break;
		r = serve_receive(pair[1], &message, MSG_DONTWAIT, &e);
	}
	close(pair[0]);
	close(pair[1]);
	assert(message.len <= SERVE_MESSAGE_MAX);
	assert(r >= 0 || (e.code == r && e.msg[0]));
	if (r == 1)
		(data[0] ? check_request : check_reply)(&message);
	return 0;
}
