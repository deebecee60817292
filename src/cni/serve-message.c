/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cni/serve-message.c - messages between a daemon and its `hawser-plugin serve`
 *
 * How:   a message is a fixed header, followed by the strings that the header counts. Both sides run
 *        on one machine, so numbers have its byte order. The strings of a request are terminated by
 *        NUL, so that they can be used where they are.
 */
#include "cni/serve-message.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

#define PIECE_MAX (32 << 10) /* bytes of a message in one packet */

enum packet_type {
	PACKET_MORE = 'm', /* a piece of the message */
	PACKET_LAST = 'l', /* the last piece */
	PACKET_DIED = 'd', /* a whole message, from serve; pieces before it are dropped */
};

struct request_header {
	uint32_t n_env;
	uint8_t stderr_through;
	uint8_t zero[3];
};

struct reply_header {
	int32_t error;
	int32_t status;
	uint32_t output_len;
};

/* ---- encode ------------------------------------------------------------------------ */

void serve_request_encode(const struct serve_request *request, struct buf *message)
{
	struct request_header h = { .stderr_through = request->stderr_through };

	while (request->env[h.n_env])
		h.n_env++;
	buf_add(message, &h, sizeof(h));
	buf_add(message, request->plugin, strlen(request->plugin) + 1);
	for (uint32_t i = 0; i < h.n_env; i++)
		buf_add(message, request->env[i], strlen(request->env[i]) + 1);
	if (request->input_len > 0)
		buf_add(message, request->input, request->input_len);
}

void serve_reply_encode(const struct serve_reply *reply, struct buf *message)
{
	const struct reply_header h = { reply->error, reply->status, (uint32_t)reply->output_len };

	buf_add(message, &h, sizeof(h));
	if (reply->output_len > 0)
		buf_add(message, reply->output, reply->output_len);
	if (reply->errors_len > 0)
		buf_add(message, reply->errors, reply->errors_len);
}

/* ---- decode ------------------------------------------------------------------------ */

/* The part of a message that is not decoded yet. */
struct rest {
	const char *data;
	size_t len;
};

/* Return: the next @len bytes; NULL if there are fewer */
static const char *take_bytes(struct rest *rest, size_t len)
{
	const char *bytes = rest->data;

	if (len > rest->len)
		return NULL;
	rest->data += len;
	rest->len -= len;
	return bytes;
}

static const char *take_string(struct rest *rest)
{
	const char *end = rest->len > 0 ? memchr(rest->data, '\0', rest->len) : NULL;

	return end ? take_bytes(rest, (size_t)(end - rest->data) + 1) : NULL;
}

static int fail_malformed(struct hw_err *e)
{
	return err_text(e, -EBADMSG, "malformed message");
}

int serve_request_decode(const struct buf *message, struct serve_request *ret_request,
			 struct hw_err *e)
{
	struct rest rest = { message->data, message->len };
	const char *header = take_bytes(&rest, sizeof(struct request_header));
	autofree const char **env = NULL;
	struct request_header h;
	const char *plugin;

	if (!header)
		return fail_malformed(e);
	memcpy(&h, header, sizeof(h));
	plugin = take_string(&rest);
	if (!plugin || h.n_env > rest.len) /* a string has at least its NUL */
		return fail_malformed(e);
	env = mem_new((h.n_env + 1) * sizeof(*env));
	for (uint32_t i = 0; i < h.n_env; i++) {
		env[i] = take_string(&rest);
		if (!env[i])
			return fail_malformed(e);
	}
	*ret_request = (struct serve_request){
		.plugin = plugin,
		.env = take_ptr(env),
		.input = rest.data,
		.input_len = rest.len,
		.stderr_through = h.stderr_through,
	};
	return 0;
}

void serve_request_done(struct serve_request *request)
{
	free((void *)request->env);
}

int serve_reply_decode(const struct buf *message, struct serve_reply *ret_reply, struct hw_err *e)
{
	struct rest rest = { message->data, message->len };
	const char *header = take_bytes(&rest, sizeof(struct reply_header)), *output;
	struct reply_header h;

	if (!header)
		return fail_malformed(e);
	memcpy(&h, header, sizeof(h));
	output = take_bytes(&rest, h.output_len);
	if (!output || h.error > 0 || h.output_len > PROC_OUTPUT_MAX || rest.len > PROC_OUTPUT_MAX)
		return fail_malformed(e);
	*ret_reply = (struct serve_reply){ h.error,	 h.status,  output,
					   h.output_len, rest.data, rest.len };
	return 0;
}

/* ---- packets ----------------------------------------------------------------------- */

/* Return: 0; or a negative errno, also -EAGAIN */
static int send_packet(int fd, enum packet_type type, const char *piece, size_t len, int flags,
		       struct hw_err *e)
{
	char head = (char)type;
	struct iovec parts[] = { { &head, 1 }, { (char *)piece, len } };
	const struct msghdr packet = { .msg_iov = parts, .msg_iovlen = ARRAY_SIZE(parts) };
	ssize_t n;

	do {
		n = sendmsg(fd, &packet, MSG_NOSIGNAL | flags);
	} while (n < 0 && errno == EINTR);
	return n < 0 ? err_set(e, -errno, "send a message") : 0;
}

int serve_send(int fd, const struct buf *message, size_t *offset, int flags, struct hw_err *e)
{
	for (;;) {
		size_t left = message->len - *offset, len = left < PIECE_MAX ? left : PIECE_MAX;
		int r;

		r = send_packet(fd, len == left ? PACKET_LAST : PACKET_MORE,
				message->data + *offset, len, flags, e);
		if (r == -EAGAIN)
			return 0;
		if (r < 0)
			return r;
		*offset += len;
		if (len == left)
			return 1;
	}
}

int serve_send_died(int fd, const struct buf *message, struct hw_err *e)
{
	size_t len = message->len < PIECE_MAX ? message->len : PIECE_MAX;

	return send_packet(fd, PACKET_DIED, message->data, len, MSG_DONTWAIT, e);
}

int serve_receive(int fd, struct buf *message, int flags, struct hw_err *e)
{
	char head;
	struct iovec parts[] = { { &head, 1 }, { buf_reserve(message, PIECE_MAX), PIECE_MAX } };
	struct msghdr packet = { .msg_iov = parts, .msg_iovlen = ARRAY_SIZE(parts) };
	size_t len;
	ssize_t n;

	n = recvmsg(fd, &packet, flags);
	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return 0;
	if (n < 0)
		return err_set(e, -errno, "receive a message");
	if (n == 0)
		return err_text(e, -EPIPE, "connection closed within a message");
	len = (size_t)n - 1;
	if (head == PACKET_DIED && message->len > 0) {
		memmove(message->data, parts[1].iov_base, len);
		message->len = 0;
	}
	if ((packet.msg_flags & MSG_TRUNC) || message->len + len > SERVE_MESSAGE_MAX)
		return err_text(e, -EBADMSG, "message too large");
	buf_commit(message, len);
	switch (head) {
	case PACKET_MORE:
		return 0;
	case PACKET_LAST:
	case PACKET_DIED:
		return 1;
	default:
		return err_text(e, -EBADMSG, "unknown packet type %d", head);
	}
}
