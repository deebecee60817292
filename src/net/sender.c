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
 *        ignores SIGCHLD, does not see it (base/os/child.c says why that matters).
 *        A socket to hold is given to the next sender, which has one more
 *        descriptor then and costs nothing. When none comes, a process that
 *        only sleeps gets it at our exit.
 * Rules: the sender keeps nothing else of ours open: no pipe that a runtime reads
 *        until its end, no lock. It is outside of our session and process group,
 *        so no terminal and no kill of the group reaches it. It calls nothing but
 *        the kernel, as other threads may have been anywhere when it was copied.
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
#define SENDER_HOLD_MS	20 /* ours is closed long before that */
#define SENDER_HELD_MAX 4
#define SENDER_HELD_MIN 16

/* clone() by the name that ThreadSanitizer leaves alone: it takes clone() for a fork(). */
int __clone(int (*fn)(void *arg), void *stack, int flags, void *arg, ...);

struct sender {
	int fd; /* -1: hold only */
	const void *data;
	size_t len;
};

/* What is to be held: duplicates, out of the way of the few numbers that a sender uses. */
static struct {
	pthread_mutex_t lock;
	int fds[SENDER_HELD_MAX];
	int n;
} held = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* What is done before the send is manners: the send must happen. */
static _Noreturn void sender_run(const struct sender *s)
{
	int fd = s->fd < 0 ? STDIN_FILENO : dup2(s->fd, STDIN_FILENO), failed, next = 1;

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

static void sender_let_go(void)
{
	while (held.n > 0)
		close(held.fds[--held.n]);
}

/* With all signals blocked no handler of the host runs in the processes between, and the wait is not
 * interrupted. */
static int sender_launch(struct sender *s)
{
	sigset_t all, before;
	int r;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	pthread_mutex_lock(&held.lock);
	r = sender_clone(s);
	if (r >= 0)
		sender_let_go();
	pthread_mutex_unlock(&held.lock);
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
 * Where that cannot be, it is, and waits.
 */
void sender_hold(int fd)
{
	pthread_mutex_lock(&held.lock);
	int copy = held.n < SENDER_HELD_MAX ? fcntl(fd, F_DUPFD_CLOEXEC, SENDER_HELD_MIN) : -1;
	if (copy >= 0)
		held.fds[held.n++] = copy;
	pthread_mutex_unlock(&held.lock);
}

/* At our exit, when no sender has come. */
__attribute__((destructor)) static void sender_hold_on(void)
{
	struct sender s = { .fd = -1 };

	if (held.n > 0)
		(void)sender_launch(&s);
}
