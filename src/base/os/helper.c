/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/os/helper.c - helper processes: they serve this process on a socket, and end with it
 *
 * How:   the kernel sends SIGIO to the helper whenever something happens on its socket (O_ASYNC).
 *        The handler exits, or calls a function, if the other end is closed. Unlike a thread that
 *        waits for EOF, this works in a process that must not have a second, less confined thread.
 *        A fork also gets SIGKILL when its parent ends: a compromised helper can block SIGIO.
 */
#include "base/os/helper.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/os/child.h"
#include "base/os/environment.h"
#include "base/os/proc.h"
#include "base/str.h"
#include "base/time.h"

#define EXIT_MS 2000 /* timeout for the exit after the socket was closed */

struct helper {
	int socket;
	/* the helper's socket and its kept descriptors. They stay open here until it is known that
	 * the program has inherited them: child_start() may return earlier. */
	int inherited[1 + HELPER_KEPT_MAX];
	size_t n_inherited;
	pid_t pid; /* of a fork; 0: a program */
	struct child *child;
	struct child_start start;
	const char **argv;
	const char **env; /* points to strings of environ and of helper_start.env */
};

static void close_inherited(struct helper *h)
{
	while (h->n_inherited > 0)
		close(h->inherited[--h->n_inherited]);
}

void helper_free(struct helper *h)
{
	struct hw_err ignored;
	int status;

	if (!h)
		return;
	if (h->child)
		child_kill(h->child);
	if (h->pid > 0)
		kill(h->pid, SIGKILL);
	mem_close_fd(&h->socket); /* before the wait: the helper ends even if the kill fails */
	if (h->child)
		child_wait(h->child, &status, &ignored);
	while (h->pid > 0 && waitpid(h->pid, NULL, 0) < 0 && errno == EINTR)
		;
	close_inherited(h);
	for (size_t i = 0; h->argv && h->argv[i]; i++)
		free((char *)h->argv[i]);
	free(h->argv);
	free(h->env);
	free(h);
}

/* ---- starting -------------------------------------------------------------------------------- */

/* All numbers are so high that no descriptor is overwritten before it has its number in the
 * helper. */
static int add_inherited(struct helper *h, int fd, size_t n_keep, struct hw_err *e)
{
	int high;

	high = fcntl(fd, F_DUPFD_CLOEXEC, HELPER_KEPT + (int)n_keep);
	if (high < 0)
		return err_set(e, -errno, "duplicate a descriptor");
	h->inherited[h->n_inherited++] = high;
	return 0;
}

static int helper_new(const int *keep, size_t n_keep, struct helper **ret_helper, struct hw_err *e)
{
	AUTO(helper_free) struct helper *h = mem_new(sizeof(*h));
	autoclose int theirs = -1;
	int pair[2], r;

	assert(n_keep <= HELPER_KEPT_MAX);
	h->socket = -1;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return err_set(e, -errno, "create a socket pair");
	h->socket = pair[0];
	theirs = pair[1];
	r = add_inherited(h, theirs, n_keep, e);
	for (size_t i = 0; r == 0 && i < n_keep; i++)
		r = add_inherited(h, keep[i], n_keep, e);
	if (r < 0)
		return r;
	*ret_helper = take_ptr(h);
	return 0;
}

static const char **copy_argv(const char *const *argv)
{
	const char **copy;
	size_t n = 0;

	while (argv[n])
		n++;
	copy = mem_new((n + 1) * sizeof(*copy));
	for (size_t i = 0; i < n; i++)
		copy[i] = str_copy(argv[i]);
	return copy;
}

int helper_start(const struct helper_start *start, struct helper **ret_helper, struct hw_err *e)
{
	AUTO(helper_free) struct helper *h = NULL;
	int r;

	r = helper_new(start->keep, start->n_keep, &h, e);
	if (r < 0)
		return r;
	h->argv = copy_argv(start->argv);
	h->env = environment_select((const char *const *)environ, start->env);
	h->start = (struct child_start){
		.path = h->argv[0],
		.argv = h->argv,
		.env = h->env,
		.in = h->inherited[0],
		.out = h->inherited[0],
		.err = STDERR_FILENO,
		.keep = h->inherited + 1,
		.n_keep = start->n_keep,
	};
	r = child_start(&h->start, &h->child, e);
	if (r < 0)
		return r;
	*ret_helper = take_ptr(h);
	return 0;
}

/* ---- forks ----------------------------------------------------------------------------------- */

/* Return: false if a descriptor could not be moved */
static bool move_inherited(const struct helper *h)
{
	bool ok = dup2(h->inherited[0], STDIN_FILENO) >= 0 &&
		  dup2(h->inherited[0], STDOUT_FILENO) >= 0;

	for (size_t i = 1; ok && i < h->n_inherited; i++)
		ok = dup2(h->inherited[i], HELPER_KEPT + (int)i - 1) >= 0;
	return ok && close_range(HELPER_KEPT + (unsigned)h->n_inherited - 1, ~0U, 0) == 0;
}

int helper_fork(int (*run)(void *arg), void *arg, const int *keep, size_t n_keep,
		struct helper **ret_helper, struct hw_err *e)
{
	AUTO(helper_free) struct helper *h = NULL;
	pid_t parent = getpid(), pid;
	int r;

	r = helper_new(keep, n_keep, &h, e);
	if (r < 0)
		return r;
	pid = fork();
	if (pid < 0)
		return err_set(e, -errno, "fork");
	if (pid == 0) {
		if (helper_end_with_parent(parent, e) < 0 || !move_inherited(h) ||
		    helper_end_on_eof(HELPER_SOCKET, e) < 0)
			_exit(EXIT_FAILURE);
		_exit(run(arg));
	}
	h->pid = pid;
	close_inherited(h);
	*ret_helper = take_ptr(h);
	return 0;
}

/* ---- waiting --------------------------------------------------------------------------------- */

int helper_socket(const struct helper *h)
{
	return h->socket;
}

int helper_exit_fd(const struct helper *h)
{
	return child_fd(h->child);
}

bool helper_is_running(const struct helper *h)
{
	struct pollfd poller = { .fd = helper_exit_fd(h), .events = POLLIN };

	return poll(&poller, 1, 0) == 0;
}

/* Once the program writes or has exited, our copies of its descriptors are closed; then its exit
 * also becomes EOF on @fd. */
int helper_wait(struct helper *h, int fd, int cancel_fd, int64_t deadline, struct hw_err *e)
{
	for (;;) {
		struct pollfd fds[] = {
			{ .fd = fd, .events = POLLIN },
			{ .fd = cancel_fd, .events = POLLIN },
			{ .fd = h->n_inherited > 0 ? child_fd(h->child) : -1, .events = POLLIN },
		};
		int n;

		n = poll(fds, ARRAY_SIZE(fds), time_left_ms(deadline));
		if (n < 0 && errno != EINTR)
			return err_set(e, -errno, "wait for %s", h->start.path);
		if (n < 0)
			continue;
		if (fds[1].revents)
			return err_text(e, -ECANCELED, "cancelled");
		if (fds[0].revents || fds[2].revents)
			close_inherited(h);
		if (fds[0].revents)
			return 0;
		if (n == 0 && time_has_passed(deadline))
			return err_text(e, -ETIMEDOUT, "deadline exceeded");
	}
}

int helper_exit_error(struct helper *h, const char *name, struct hw_err *e)
{
	struct pollfd exited = { .fd = child_fd(h->child), .events = POLLIN };
	char text[64];
	int r, status;

	if (poll(&exited, 1, EXIT_MS) <= 0)
		child_kill(h->child);
	r = child_wait(take_ptr(h->child), &status, e);
	if (r < 0)
		return r;
	return err_text(e, -EIO, "%s exited unexpectedly: %s", name,
			proc_status_format(status, text, sizeof(text)));
}

/* ---- in the helper --------------------------------------------------------------------------- */

void helper_erase_environment(void)
{
	for (char **v = environ; v && *v; v++)
		explicit_bzero(*v, strlen(*v));
	clearenv();
}

static int watched_socket;
static void (*on_eof)(void);

static void check_for_eof(int number)
{
	struct pollfd poller = { .fd = watched_socket, .events = POLLRDHUP };
	int before = errno;

	(void)number;
	if (poll(&poller, 1, 0) > 0)
		on_eof();
	errno = before;
}

int helper_watch_eof(int socket, void (*act)(void), struct hw_err *e)
{
	const struct sigaction action = { .sa_handler = check_for_eof, .sa_flags = SA_RESTART };
	int flags;

	watched_socket = socket;
	on_eof = act;
	flags = fcntl(socket, F_GETFL);
	if (flags < 0 || sigaction(SIGIO, &action, NULL) < 0 ||
	    fcntl(socket, F_SETOWN, getpid()) < 0 || fcntl(socket, F_SETFL, flags | O_ASYNC) < 0)
		return err_set(e, -errno, "watch the socket");
	check_for_eof(SIGIO); /* it may have been closed before */
	return 0;
}

static void exit_successfully(void)
{
	_exit(EXIT_SUCCESS);
}

int helper_end_on_eof(int socket, struct hw_err *e)
{
	return helper_watch_eof(socket, exit_successfully, e);
}

/* Writing the value may be forbidden, or /proc not be mounted: the helper also works without. A
 * positive value is kept: it would make the helper less likely to be killed. */
void helper_reset_oom_score(void)
{
	autoclose int fd = -1;
	char text[16] = "";

	fd = open("/proc/self/oom_score_adj", O_RDWR | O_CLOEXEC);
	if (fd >= 0 && read(fd, text, sizeof(text) - 1) > 0 && text[0] == '-' &&
	    pwrite(fd, "0", 1, 0) < 0)
		return;
}

/* RLIMIT_DATA counts what the process may write to. RLIMIT_AS would also count libraries and address
 * space that is only reserved. */
int helper_limit_memory(size_t memory, struct hw_err *e)
{
	struct rlimit limit;

	if (MEM_SANITIZED)
		return 0;
	if (getrlimit(RLIMIT_DATA, &limit) < 0)
		return err_set(e, -errno, "read the memory limit");
	if (limit.rlim_max > memory)
		limit.rlim_max = memory;
	limit.rlim_cur = limit.rlim_max;
	if (setrlimit(RLIMIT_DATA, &limit) < 0)
		return err_set(e, -errno, "limit the memory");
	return 0;
}

int helper_init(size_t memory, struct hw_err *e)
{
	int r;

	helper_reset_oom_score();
	r = helper_limit_memory(memory, e);
	return r < 0 ? r : helper_end_on_eof(HELPER_SOCKET, e);
}

int helper_end_with_parent(pid_t parent, struct hw_err *e)
{
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
		return err_set(e, -errno, "set the parent-death signal");
	if (getppid() != parent) /* it ended before the call */
		_exit(EXIT_SUCCESS);
	return 0;
}
