/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/sender.c - a sender process that sends datagrams or keeps a descriptor open
 *
 * How:   clone() with CLONE_VM: the sender shares the caller's memory. A fork would
 *        copy the page tables, and afterwards every page that the caller writes;
 *        that takes longer than everything else that a sender does. The sender has no
 *        exit signal: a calling program that waits for all its children, or ignores
 *        SIGCHLD, does not notice it (base/os/child.c says why that matters). When
 *        the caller exits, init becomes the sender's parent, or the runtime, if that
 *        is a subreaper: the sender outlives the caller. While the caller runs, a
 *        sender that has exited is reaped when another one is started, so their
 *        number is bounded.
 *        Descriptors to hold are passed to the next sender, which costs nothing. If
 *        no sender is started before the caller exits, a process that only sleeps is
 *        started then and gets the descriptors.
 * Rules: the sender closes all other descriptors that it inherits: it holds no
 *        pipe that a runtime reads until EOF, and no lock. It has its own session
 *        and process group, so signals from the caller's terminal or to the
 *        caller's process group do not reach it.
 *        The caller continues while the sender runs. So the sender uses only its
 *        struct sender, which contains its stack and is reused after its exit; and no
 *        function of the C library, which would write the caller's errno.
 */
#include "net/sender.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/time_types.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/os/raw-call.h"

#define SENDER_HOLD_MS	20 /* long enough: the caller exits much earlier */
#define SENDER_HELD_MAX 4
#define SENDER_HELD_MIN 16 /* above the few descriptor numbers that a sender uses */
#define SENDER_MAX	16
#define SENDER_STACK	4096

/* ThreadSanitizer intercepts clone() and treats it as fork(). It does not intercept this name. */
int __clone(int (*fn)(void *arg), void *stack, int flags, void *arg, ...);

/* Duplicates of descriptors to hold */
struct sender_held {
	int fds[SENDER_HELD_MAX];
	int n;
};

struct sender {
	pid_t pid; /* 0: none */
	int fd;	   /* -1: send nothing, only hold descriptors */
	struct iovec *messages;
	size_t n;
	struct sender_held held;
	_Alignas(16) char stack[SENDER_STACK];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of all that follows */
static struct sender_held held;
static struct sender senders[SENDER_MAX];

/* In the sender. It sends even if the other calls fail. */
__attribute__((no_sanitize_thread, no_sanitize_address)) static int sender_run(void *arg)
{
	const struct sender *s = arg;
	long fd, failed, next = 1;

	fd = s->fd <= STDIN_FILENO ? STDIN_FILENO : raw_call3(__NR_dup3, s->fd, STDIN_FILENO, 0);
	for (int i = 0; i < s->held.n; i++)
		next += raw_call3(__NR_dup3, s->held.fds[i], next, 0) >= 0;
	if (fd >= 0)
		raw_call3(__NR_close_range, next, ~0U, 0);
	else
		fd = s->fd;
	raw_call0(__NR_setsid);
	failed = raw_call1(__NR_chdir, "/") < 0;
	for (size_t i = 0; i < s->n; i++)
		failed |= raw_call(__NR_sendto, fd, (long)s->messages[i].iov_base,
				   (long)s->messages[i].iov_len, 0, 0, 0) < 0;
	if (s->fd < 0) {
		struct __kernel_timespec hold = { .tv_nsec = SENDER_HOLD_MS * 1000000 };

		raw_call2(__NR_nanosleep, &hold, 0);
	}
	return (int)failed;
}

/* Return: a sender that has exited, or was never started. If all are running, waits for one of
 * them. */
static struct sender *find_sender(void)
{
	for (size_t i = 0; i < SENDER_MAX; i++)
		if (!senders[i].pid || waitpid(senders[i].pid, NULL, __WCLONE | WNOHANG) != 0)
			return &senders[i];
	waitpid(senders[0].pid, NULL, __WCLONE);
	return &senders[0];
}

static void copy_messages(struct sender *s, const struct iovec *messages, size_t n)
{
	size_t len = n * sizeof(*messages);
	char *to;

	for (size_t i = 0; i < n; i++)
		len += messages[i].iov_len;
	free(s->messages);
	s->messages = mem_new(len);
	s->n = n;
	to = (char *)(s->messages + n);
	for (size_t i = 0; i < n; i++) {
		s->messages[i] = (struct iovec){ to, messages[i].iov_len };
		to = mempcpy(to, messages[i].iov_base, messages[i].iov_len);
	}
}

/* Blocks all signals, so that no signal handler of the calling program runs in the sender, and so
 * that waitpid() is not interrupted. */
static int sender_launch(int fd, const struct iovec *messages, size_t n)
{
	sigset_t all, before;
	struct sender *s;
	int r;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	pthread_mutex_lock(&lock);
	s = find_sender();
	s->fd = fd;
	s->held = held;
	copy_messages(s, messages, n);
	s->pid = __clone(sender_run, s->stack + sizeof(s->stack), CLONE_VM, s);
	r = s->pid < 0 ? -errno : 0;
	if (r < 0)
		s->pid = 0;
	while (r == 0 && held.n > 0)
		close(held.fds[--held.n]);
	pthread_mutex_unlock(&lock);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return r;
}

int sender_start(int fd, const struct iovec *messages, size_t n)
{
	return sender_launch(fd, messages, n);
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

/* Starts a process for the descriptors that no sender has inherited yet. */
__attribute__((destructor)) static void sender_hold_at_exit(void)
{
	if (held.n > 0)
		(void)sender_launch(-1, NULL, 0);
}
