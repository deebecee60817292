/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/test-sender.c - processes that send datagrams or hold sockets
 */
#include "net/sender.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the headers above */
#include <cmocka.h>

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/mem.h"

#define WAIT_MS 5000

static void open_pair(int fds[2])
{
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
}

static void start(int fd, const char *text)
{
	autofree char *copy = strdup(text);
	struct iovec message = { copy, strlen(copy) };

	assert_int_equal(sender_start(fd, &message, 1), 0);
	memset(copy, '?', message.iov_len);
}

/* Return: the length of the next message; 0 after the last descriptor of the other end is closed */
static ssize_t receive(int fd, char *text, size_t room)
{
	struct pollfd poll_fd = { .fd = fd, .events = POLLIN };
	ssize_t n;

	assert_int_equal(poll(&poll_fd, 1, WAIT_MS), 1);
	n = recv(fd, text, room - 1, 0);
	assert_true(n >= 0);
	text[n] = '\0';
	return n;
}

static void copies_messages(void **state)
{
	int fds[2];
	char text[16];

	(void)state;
	open_pair(fds);
	for (int i = 0; i < 100; i++) {
		snprintf(text, sizeof(text), "message %d", i);
		start(fds[0], text);
	}
	close(fds[0]);
	for (int i = 0; i < 100; i++) {
		assert_true(receive(fds[1], text, sizeof(text)) > 0);
		assert_memory_equal(text, "message ", 8);
	}
	assert_int_equal(receive(fds[1], text, sizeof(text)), 0);
	close(fds[1]);
}

static void keeps_errno(void **state)
{
	autoclose int unconnected = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	struct iovec message = { (char[]){ "lost" }, 4 };
	int held[2];
	char text[16];

	(void)state;
	open_pair(held);
	sender_hold(held[0]);
	close(held[0]);
	errno = 0;
	assert_int_equal(sender_start(unconnected, &message, 1), 0); /* ENOTCONN */
	assert_int_equal(receive(held[1], text, sizeof(text)), 0);   /* the sender has exited */
	assert_int_equal(errno, 0);
	close(held[1]);
}

static void holds_sockets(void **state)
{
	int held[2], blocked[2];
	char text[16];

	(void)state;
	open_pair(held);
	open_pair(blocked);
	sender_hold(held[0]);
	close(held[0]);
	assert_int_equal(recv(held[1], text, sizeof(text), MSG_DONTWAIT), -1);
	assert_int_equal(errno, EAGAIN);
	start(blocked[0], "x");
	assert_int_equal(receive(held[1], text, sizeof(text)), 0); /* when the sender has exited */
	close(held[1]);
	close(blocked[0]);
	close(blocked[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{ "sender: the caller may free the messages at once", copies_messages },
		{ "sender: a failed send does not change the caller's errno", keeps_errno },
		{ "sender: a socket is held until the next sender exits", holds_sockets },
	};

	return cmocka_run_group_tests_name("sender", tests, NULL, NULL);
}
