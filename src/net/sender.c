/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/sender.c - a sender process that sends datagrams or keeps a socket open
 *
 * How:   a fork without an exit signal: a calling program that waits for all its
 *        children, or ignores SIGCHLD, does not notice it (base/os/child.c says why
 *        that matters). When the caller exits, init becomes the sender's parent, or
 *        the runtime, if that is a subreaper: the sender outlives the caller. While
 *        the caller runs, a sender that has exited is reaped when another one is
 *        started, so their number is bounded.
 *        Sockets to hold are passed to the next sender as extra descriptors,
 *        which costs nothing. If no sender is started before the caller exits, a
 *        process that only sleeps is started then and gets the sockets.
 * Rules: the sender closes all other descriptors that it inherits: it holds no
 *        pipe that a runtime reads until EOF, and no lock. It has its own session
 *        and process group, so signals from the caller's terminal or to the
 *        caller's process group do not reach it. It only makes system calls:
 *        another thread may have held any lock of the C library during the fork.
 */
#include "net/sender.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#define SENDER_HOLD_MS	20 /* long enough: the caller exits much earlier */
#define SENDER_HELD_MAX 4
#define SENDER_HELD_MIN 16 /* above the few descriptor numbers that a sender uses */
#define SENDER_MAX	16

struct sender {
	int fd; /* -1: send nothing, only hold the sockets */
	const struct iovec *messages;
	size_t n;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of all that follows */
/* Duplicates of the sockets to hold */
static struct {
	int fds[SENDER_HELD_MAX];
	int n;
} held;
static pid_t senders[SENDER_MAX]; /* 0: none */

/* In the sender. It calls send() even if dup2() or chdir() fails. */
static void __attribute__((noreturn)) sender_run(const struct sender *s)
{
	int fd, failed, next = 1;

	fd = s->fd < 0 ? STDIN_FILENO : dup2(s->fd, STDIN_FILENO);
	for (int i = 0; i < held.n; i++)
		next += dup2(held.fds[i], next) >= 0;
	if (fd >= 0)
		close_range(next, ~0U, 0);
	else
		fd = s->fd;
	setsid();
	failed = chdir("/") < 0;
	for (size_t i = 0; i < s->n; i++)
		failed |= send(fd, s->messages[i].iov_base, s->messages[i].iov_len, 0) < 0;
	if (s->fd < 0)
		(void)poll(NULL, 0, SENDER_HOLD_MS);
	_exit(failed);
}

/* Return: a place for the ID of a sender. If all senders are running, waits for one of them. */
static pid_t *find_place(void)
{
	for (size_t i = 0; i < SENDER_MAX; i++)
		if (!senders[i] || waitpid(senders[i], NULL, __WCLONE | WNOHANG) != 0)
			return &senders[i];
	waitpid(senders[0], NULL, __WCLONE);
	return &senders[0];
}

/* Blocks all signals, so that no signal handler of the calling program runs in the sender, and so
 * that waitpid() is not interrupted. Not fork(): its child would have the exit signal SIGCHLD. */
static int sender_launch(const struct sender *s)
{
	sigset_t all, before;
	pid_t *place;
	int r;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	pthread_mutex_lock(&lock);
	place = find_place();
	*place = (pid_t)syscall(SYS_clone, 0, NULL, NULL, NULL, NULL);
	if (*place == 0)
		sender_run(s);
	r = *place < 0 ? -errno : 0;
	if (r < 0)
		*place = 0;
	while (r == 0 && held.n > 0)
		close(held.fds[--held.n]);
	pthread_mutex_unlock(&lock);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return r;
}

int sender_start(int fd, const struct iovec *messages, size_t n)
{
	return sender_launch(&(struct sender){ .fd = fd, .messages = messages, .n = n });
}

void sender_hold(int fd)
{
	int copy;

	pthread_mutex_lock(&lock);
	copy = held.n < SENDER_HELD_MAX ? fcntl(fd, F_DUPFD_CLOEXEC, SENDER_HELD_MIN) : -1;
	if (copy >= 0)
		held.fds[held.n++] = copy;
	pthread_mutex_unlock(&lock);
}

/* Starts a process for the sockets that no sender has inherited yet. */
__attribute__((destructor)) static void sender_hold_at_exit(void)
{
	if (held.n > 0)
		(void)sender_launch(&(struct sender){ .fd = -1 });
}
