/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/sender.c - a sender process that sends a datagram or keeps a socket open
 *
 * How:   caller ── clone(VM, VFORK) ─► starter ── fork ─► sender
 *
 *        The starter exits at once, so the sender is reparented to init (or to
 *        the runtime, if that is a subreaper): it outlives the caller, and
 *        leaves no zombie if the caller outlives it. The starter shares the
 *        caller's memory while the caller is suspended, and has no exit signal:
 *        a calling program that waits for all its children, or ignores SIGCHLD,
 *        does not notice it (base/os/child.c says why that matters).
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
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#define SENDER_STACK	(16 << 10)
#define SENDER_HOLD_MS	20 /* long enough: the caller exits much earlier */
#define SENDER_HELD_MAX 4
#define SENDER_HELD_MIN 16 /* above the few descriptor numbers that a sender uses */

/* Another name of clone(). ThreadSanitizer intercepts clone() and treats it like fork(), but it
 * does not intercept this name. */
int __clone(int (*fn)(void *arg), void *stack, int flags, void *arg, ...);

struct sender {
	int fd; /* -1: send nothing, only hold the sockets */
	const void *data;
	size_t len;
};

/* Duplicates of the sockets to hold */
static struct {
	pthread_mutex_t lock;
	int fds[SENDER_HELD_MAX];
	int n;
} held = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* Runs in the starter and forks the sender. The sender calls send() even if dup2() or chdir()
 * fails. */
static int sender_fork(void *ctx)
{
	const struct sender *s = ctx;
	int fd, failed, next = 1;
	pid_t pid;

	pid = _Fork();
	if (pid != 0)
		return pid < 0 ? errno : 0;

	fd = s->fd < 0 ? STDIN_FILENO : dup2(s->fd, STDIN_FILENO);
	for (int i = 0; i < held.n; i++)
		next += dup2(held.fds[i], next) >= 0;
	if (fd >= 0)
		close_range(next, ~0U, 0);
	else
		fd = s->fd;
	setsid();
	failed = chdir("/") < 0;
	if (s->fd >= 0)
		failed |= send(fd, s->data, s->len, 0) < 0;
	else
		(void)poll(NULL, 0, SENDER_HOLD_MS);
	_exit(failed);
}

static int sender_clone(struct sender *s)
{
	char stack[SENDER_STACK] __attribute__((aligned(16)));
	int status;
	pid_t pid;

	pid = __clone(sender_fork, stack + sizeof(stack), CLONE_VM | CLONE_VFORK, s);
	if (pid < 0)
		return -errno;
	if (waitpid(pid, &status, __WCLONE) < 0)
		return -errno;
	return WIFEXITED(status) ? -WEXITSTATUS(status) : -EINTR;
}

/* Blocks all signals, so that no signal handler of the calling program runs in the starter or the
 * sender, and so that waitpid() is not interrupted. */
static int sender_launch(struct sender *s)
{
	sigset_t all, before;
	int r;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	pthread_mutex_lock(&held.lock);
	r = sender_clone(s);
	while (r >= 0 && held.n > 0)
		close(held.fds[--held.n]);
	pthread_mutex_unlock(&held.lock);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return r;
}

int sender_start(int fd, const void *data, size_t len)
{
	struct sender s = { .fd = fd, .data = data, .len = len };

	return sender_launch(&s);
}

void sender_hold(int fd)
{
	int copy;

	pthread_mutex_lock(&held.lock);
	copy = held.n < SENDER_HELD_MAX ? fcntl(fd, F_DUPFD_CLOEXEC, SENDER_HELD_MIN) : -1;
	if (copy >= 0)
		held.fds[held.n++] = copy;
	pthread_mutex_unlock(&held.lock);
}

/* Starts a process for the sockets that no sender has inherited yet. */
__attribute__((destructor)) static void sender_hold_at_exit(void)
{
	struct sender s = { .fd = -1 };

	if (held.n > 0)
		(void)sender_launch(&s);
}
