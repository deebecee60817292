/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image/protocol/wire.c - protocol between the daemon and its helpers: messages on a socket
 *
 * How:   non-blocking I/O after poll(), so that every wait has a timeout. A
 *        file descriptor is sent with the first byte of a message.
 *        Only job_receive_from() can be cancelled: its caller is the daemon. The other callers
 *        are helpers, which are killed instead.
 */
#include "image/protocol/job.h"

#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/os/pass-fd.h"
#include "base/time.h"

#define HEADER	5
#define REST_MS (30 * 1000) /* timeout for the rest of a message */

void job_message_done(struct job_message *m)
{
	buf_done(&m->data);
	mem_close_fd(&m->fd);
}

/* ---- sending --------------------------------------------------------------- */

static int wait_ready(int fd, short events, int idle_ms, struct hw_err *e)
{
	int64_t deadline = time_deadline(idle_ms);
	struct pollfd poller = { .fd = fd, .events = events };
	int r;

	do {
		r = poll(&poller, 1, time_left_ms(deadline));
	} while (r < 0 && errno == EINTR);
	if (r < 0)
		return err_set(e, -errno, "poll the message socket");
	if (r == 0)
		return err_text(e, -ETIMEDOUT, "message transfer stalled for %d ms", idle_ms);
	return 0;
}

static void skip_bytes(struct iovec parts[2], size_t len)
{
	for (size_t i = 0; i < 2; i++) {
		size_t n = len < parts[i].iov_len ? len : parts[i].iov_len;

		parts[i].iov_base = (char *)parts[i].iov_base + n;
		parts[i].iov_len -= n;
		len -= n;
	}
}

int job_send(int fd, enum job_type type, const void *data, size_t len, int along, int idle_ms,
	     struct hw_err *e)
{
	unsigned char header[HEADER] = { (unsigned char)len, (unsigned char)(len >> 8),
					 (unsigned char)(len >> 16), (unsigned char)(len >> 24),
					 (unsigned char)type };
	struct iovec parts[] = { { header, sizeof(header) }, { (void *)data, len } };

	if (len > JOB_MESSAGE_MAX)
		return err_text(e, -EFBIG, "message too large: got %zu bytes, want at most %d", len,
				JOB_MESSAGE_MAX);
	while (parts[0].iov_len + parts[1].iov_len > 0) {
		bool begun = parts[0].iov_len < sizeof(header);
		ssize_t n;
		int r;

		r = wait_ready(fd, POLLOUT, idle_ms, e);
		n = r < 0 ? 0
			  : pass_fd_send(fd, parts, ARRAY_SIZE(parts), begun ? -1 : along,
					 MSG_DONTWAIT);
		if (n < 0 && errno != EINTR && errno != EAGAIN)
			r = err_set(e, -errno, "send a message");
		if (r < 0) {
			if (begun)
				shutdown(fd, SHUT_WR);
			return r;
		}
		skip_bytes(parts, n > 0 ? (size_t)n : 0);
	}
	return 0;
}

/* ---- receiving ------------------------------------------------------------- */

/* the sender of a message, and how long to wait for it */
struct sender {
	int fd;
	int idle_ms;
	struct helper *helper; /* or NULL; then the next two are unused, otherwise idle_ms is */
	int cancel_fd;
	int64_t deadline;
};

static int wait_sender(const struct sender *s, struct hw_err *e)
{
	if (s->helper)
		return helper_wait(s->helper, s->fd, s->cancel_fd, s->deadline, e);
	return wait_ready(s->fd, POLLIN, s->idle_ms, e);
}

/* Return: 1; 0 on EOF before the first byte; or negative errno */
static int receive_all(const struct sender *s, char *data, size_t len, int *ret_fd,
		       struct hw_err *e)
{
	size_t got = 0;

	while (got < len) {
		ssize_t n;
		int r;

		r = wait_sender(s, e);
		if (r < 0)
			return r;
		n = pass_fd_receive(s->fd, data + got, len - got, ret_fd, MSG_DONTWAIT);
		if (n < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (n < 0 && errno != ECONNRESET)
			return err_set(e, -errno, "receive a message");
		if (n <= 0)
			return got == 0 ? 0
					: err_text(e, -EPIPE,
						   "truncated message: got %zu of %zu bytes", got,
						   len);
		got += (size_t)n;
	}
	return 1;
}

static int receive_message(const struct sender *s, struct job_message *ret_message,
			   struct hw_err *e)
{
	AUTO(job_message_done) struct job_message m = { .fd = -1 };
	unsigned char h[HEADER];
	size_t len;
	int r;

	r = receive_all(s, (char *)h, sizeof(h), &m.fd, e);
	if (r <= 0)
		return r;
	len = h[0] | (size_t)h[1] << 8 | (size_t)h[2] << 16 | (size_t)h[3] << 24;
	if (h[4] == JOB_NONE || h[4] >= JOB_TYPES)
		return err_text(e, -EBADMSG, "unknown message type %d", h[4]);
	if (len > JOB_MESSAGE_MAX)
		return err_text(e, -EBADMSG, "message too large: got %zu bytes, want at most %d",
				len, JOB_MESSAGE_MAX);
	m.type = h[4];
	r = receive_all(s, buf_reserve(&m.data, len), len, &m.fd, e);
	if (r == 0)
		return err_text(e, -EPIPE, "truncated message: got 0 of %zu bytes", len);
	if (r < 0)
		return r;
	buf_commit(&m.data, len);
	*ret_message = m;
	m = (struct job_message){ .fd = -1 };
	return 1;
}

int job_receive(int fd, int idle_ms, struct job_message *ret_message, struct hw_err *e)
{
	const struct sender s = { .fd = fd, .idle_ms = idle_ms };

	return receive_message(&s, ret_message, e);
}

int job_receive_from(struct helper *h, int cancel_fd, int64_t deadline,
		     struct job_message *ret_message, struct hw_err *e)
{
	struct sender s = {
		.fd = helper_socket(h), .helper = h, .cancel_fd = cancel_fd, .deadline = deadline
	};
	int r;

	r = wait_sender(&s, e);
	if (r < 0)
		return r;
	s.deadline = time_earlier(deadline, time_deadline(REST_MS));
	r = receive_message(&s, ret_message, e);
	if (r == -ETIMEDOUT && !time_has_passed(deadline))
		return err_text(e, -EIO, "incomplete message after %d s", REST_MS / 1000);
	return r;
}

int job_receive_answer(struct helper *h, const struct job_answer *answer,
		       struct job_message *ret_message, struct hw_err *e)
{
	AUTO(job_message_done) struct job_message m = { .fd = -1 };
	int r;

	r = job_receive_from(h, answer->cancel_fd, answer->deadline, &m, e);
	if (r == -ECANCELED || r == -ETIMEDOUT)
		return r;
	if (r < 0)
		return err_ctx(e, "%s: protocol error", answer->name);
	if (r == 0)
		return helper_exit_error(h, answer->name, e);
	if (m.type == JOB_FAILED) {
		job_decode_failed(&m, e);
		return err_text(e, answer->failed, "%s: %s", answer->name, e->msg);
	}
	if (m.type != answer->type)
		return err_text(e, -EBADMSG, "%s: unexpected message of type %d", answer->name,
				m.type);
	*ret_message = m;
	m = (struct job_message){ .fd = -1 };
	return 0;
}
