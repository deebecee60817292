/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/sender.c - let a process of its own send a datagram, or hold a socket
 *
 * How:   caller ── clone(VM, VFORK) ─► starter ── fork ─► sender
 *
 *        The starter is gone at once, so the sender belongs to init (or to the
 *        subreaper that the runtime is): it outlives us, and leaves no zombie
 *        if we outlive it. The starter shares our memory while we stand still,
 *        and has no exit signal: a host that waits for all its children, or
 *        ignores SIGCHLD, does not see it (base/child.c says why that matters).
 * Rules: the sender keeps nothing of ours open: no pipe that a runtime reads
 *        until its end, no lock. It is outside of our session and process group,
 *        so no terminal and no kill of the group reaches it. It calls nothing but
 *        the kernel, as other threads may have been anywhere when it was copied.
 */
#include "net/sender.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#define SENDER_STACK   (16 << 10)
#define SENDER_HOLD_MS 20 /* ours is closed long before that */

/* clone() by the name that ThreadSanitizer leaves alone: it takes clone() for a fork(). */
int __clone(int (*fn)(void *arg), void *stack, int flags, void *arg, ...);

struct sender {
	int fd;
	const void *data; /* NULL: hold it only */
	size_t len;
};

/* What is done before the send is manners: the send must happen. */
static _Noreturn void sender_run(const struct sender *s)
{
	int fd = dup2(s->fd, STDIN_FILENO), failed;

	if (fd >= 0)
		close_range(fd + 1, ~0U, 0);
	else
		fd = s->fd;
	setsid();
	failed = chdir("/") < 0;
	if (s->data)
		failed |= send(fd, s->data, s->len, 0) < 0;
	else
		(void)poll(NULL, 0, SENDER_HOLD_MS);
	_exit(failed);
}

static int sender_fork(void *ctx)
{
	pid_t pid = _Fork();

	if (pid == 0)
		sender_run(ctx);
	return pid < 0 ? errno : 0;
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

/* With all signals blocked no handler of the host runs in the processes between, and the wait is not
 * interrupted. */
static int sender_launch(struct sender *s)
{
	sigset_t all, before;
	int r;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	r = sender_clone(s);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return r;
}

/**
 * sender_start() - send @data on the socket @fd without waiting for it
 */
int sender_start(int fd, const void *data, size_t len)
{
	struct sender s = { .fd = fd, .data = data, .len = len };

	return sender_launch(&s);
}

/**
 * sender_hold() - let our close() of @fd not be the last
 *
 * The process that has it open as well closes it a little later.
 */
int sender_hold(int fd)
{
	struct sender s = { .fd = fd };

	return sender_launch(&s);
}
