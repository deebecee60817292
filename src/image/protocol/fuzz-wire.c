/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image/protocol/fuzz-wire.c - fuzz test: bytes on the socket of a helper
 *
 * The first byte of the input says with which of the other bytes a descriptor is sent, if any. A
 * message is either received completely, with a known type and a limited size, or rejected with an
 * error. Descriptors are never lost.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "image/protocol/job.h"

#define WAIT_MS	  10000
#define INPUT_MAX (64 << 10) /* fits into the buffer of a socket */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void send_bytes(int fd, const uint8_t *data, size_t size, int along)
{
	union {
		char space[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = { 0 };
	struct iovec iov = { (void *)data, size };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	ssize_t n;

	if (size == 0)
		return;
	if (along >= 0) {
		msg.msg_control = control.space;
		msg.msg_controllen = sizeof(control.space);
		*CMSG_FIRSTHDR(&msg) = (struct cmsghdr){ .cmsg_len = CMSG_LEN(sizeof(int)),
							 .cmsg_level = SOL_SOCKET,
							 .cmsg_type = SCM_RIGHTS };
		memcpy(CMSG_DATA(CMSG_FIRSTHDR(&msg)), &along, sizeof(along));
	}
	n = sendmsg(fd, &msg, MSG_DONTWAIT);
	assert(n == (ssize_t)size);
}

/* Return: the number of bytes of all messages */
static size_t receive_messages(int fd)
{
	size_t bytes = 0;

	for (;;) {
		AUTO(job_message_done) struct job_message m = { .fd = -1 };
		struct hw_err e = { 0 };
		int r;

		r = job_receive(fd, WAIT_MS, &m, &e);
		if (r == 0)
			return bytes;
		if (r < 0) {
			assert((r == -EBADMSG || r == -EPIPE) && e.code == r && e.msg[0]);
			assert(!m.data.data && m.fd < 0);
			return bytes;
		}
		assert(m.type > JOB_NONE && m.type < JOB_TYPES && m.data.len <= JOB_MESSAGE_MAX);
		assert(m.fd < 0 || fcntl(m.fd, F_GETFD) == FD_CLOEXEC);
		bytes += 5 + m.data.len;
	}
}

/* Return: the lowest free descriptor; it changes if one is lost */
static int free_descriptor(int fd)
{
	int free_fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);

	assert(free_fd >= 0);
	close(free_fd);
	return free_fd;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int before = free_descriptor(STDERR_FILENO);
	size_t along, bytes;
	int pair[2], r;

	if (size == 0 || size > INPUT_MAX)
		return 0;
	along = data[0] < size - 1 ? data[0] : size - 1;
	data++;
	size--;
	r = socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair);
	assert(r == 0);
	send_bytes(pair[0], data, along, -1);
	send_bytes(pair[0], data + along, size - along, pair[0]);
	shutdown(pair[0], SHUT_WR);
	close(pair[0]);
	bytes = receive_messages(pair[1]);
	assert(bytes <= size);
	close(pair[1]);
	assert(free_descriptor(STDERR_FILENO) == before);
	return 0;
}
