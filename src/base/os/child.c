/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/os/child.c - a program of ours, in whatever process we are a guest of
 *
 * The difficulty: an exit status goes to whoever of the parent process waits
 * first, and to nobody when the parent ignores SIGCHLD. The host program may
 * loop on waitpid(-1) in another thread, do so in a signal handler, or have set
 * SIGCHLD to be ignored, and none of that is ours to change. A child made with
 * clone() and exit signal 0 is invisible to all of these, but execve() turns it
 * into an ordinary child again (execve(2): "the termination signal is reset to
 * SIGCHLD").
 *
 * So there are two ways:
 *
 *   alone   No other thread, and SIGCHLD at its default: nobody can take the
 *           status. The program is our own child. This is the way of all our
 *           short-lived programs, and the fast one.
 *
 *   minded  Otherwise a minder stands between: a process that shares our memory,
 *           has exit signal 0 and never executes anything, so the host neither
 *           sees nor reaps it. It starts the program, waits for it and leaves
 *           the status in memory.
 *
 *	caller ── pthread ─► thread ── clone(VM, VFORK) ─► minder ── posix_spawn ─► program
 *	  ▲ end (eventfd) ◄──── resumed when the minder is gone ◄── waitpid ◄──────────┘
 *	  └ stop (eventfd) ─────────────────────────────────► kill(-program)
 *
 * Why sharing the memory is safe: CLONE_VFORK suspends the thread for as long as
 * the minder lives, so the minder is the only one that runs on that thread's
 * stack, errno and other thread-local data; it takes no lock, and allocates
 * nothing, so it can be killed at any moment without harm. All signals are blocked in
 * the thread and so in the minder: no handler of the host runs there, and a
 * Ctrl-C for the host's process group passes it by. Its table of descriptors is
 * a copy, of which it closes all but its own two: it keeps nothing of the host's
 * open. Nothing is copied, whatever the size of the host.
 *
 * Killing by process group number is safe both ways, because the number cannot
 * be used again before the one who kills has waited.
 */
#include "base/os/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/pidfd.h>
#include <sys/single_threaded.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"

#define MINDER_STACK (32 << 10)
#define STAT_FLAGS   7	/* which field they are after the name, proc(5) */
#define SPAWN_TRIES  32 /* each within microseconds of a signal */

/* clone() by the name that ThreadSanitizer leaves alone: it takes clone() for a fork(). */
int __clone(int (*fn)(void *arg), void *stack, int flags, void *arg, ...);

struct child {
	const struct child_start *start; /* borrowed until child_wait() */
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attr;
	int end_fd;    /* alone: a pidfd; minded: an eventfd */
	pid_t program; /* alone */

	bool minded;
	pthread_t thread;
	int stop_fd; /* an eventfd */
	int error;   /* why there is no status, positive */
	int status;
};

static void child_free(struct child *c)
{
	if (!c)
		return;
	mem_close_fd(&c->end_fd);
	mem_close_fd(&c->stop_fd);
	posix_spawn_file_actions_destroy(&c->files);
	posix_spawnattr_destroy(&c->attr);
	free(c);
}
AUTO_DEFINE(child_free, struct child);

/* The host's descriptors are not for our programs, whether CLOEXEC or not. */
static int child_files(posix_spawn_file_actions_t *files, const struct child_start *start)
{
	int r = posix_spawn_file_actions_adddup2(files, start->in, STDIN_FILENO);

	if (r == 0)
		r = posix_spawn_file_actions_adddup2(files, start->out, STDOUT_FILENO);
	if (r == 0)
		r = posix_spawn_file_actions_adddup2(files, start->err, STDERR_FILENO);
	if (r == 0)
		r = posix_spawn_file_actions_addclosefrom_np(files, STDERR_FILENO + 1);
	return r;
}

/* A process group of its own unless it is to stay, no signal ignored, none blocked. */
static void child_attributes(posix_spawnattr_t *attr, bool stay)
{
	short group = stay ? 0 : POSIX_SPAWN_SETPGROUP;
	sigset_t all, none;

	sigfillset(&all);
	sigemptyset(&none);
	posix_spawnattr_setflags(attr, group | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
	posix_spawnattr_setpgroup(attr, 0);
	posix_spawnattr_setsigdefault(attr, &all);
	posix_spawnattr_setsigmask(attr, &none);
}

static struct child *child_new(const struct child_start *start)
{
	struct child *c = mem_new(sizeof(*c));

	*c = (struct child){ .start = start, .end_fd = -1, .stop_fd = -1 };
	posix_spawn_file_actions_init(&c->files);
	posix_spawnattr_init(&c->attr);
	child_attributes(&c->attr, start->stay);
	if (child_files(&c->files, start) != 0)
		mem_exhausted(); /* all the numbers are valid, so it can be nothing else */
	return c;
}

static void wait_for(pid_t pid, int options, int *ret_status)
{
	while (waitpid(pid, ret_status, options) < 0 && errno == EINTR)
		;
}

/*
 * Whether what was to be a program died before: the flags in /proc/PID/stat tell, whether or not the
 * kernel has finished with it. Return: false where that cannot be read
 */
static bool died_unborn(pid_t pid)
{
	const unsigned long exiting = 0x4, not_executed = 0x40; /* PF_EXITING, PF_FORKNOEXEC */
	char path[32], text[512];
	const char *field;
	ssize_t n = -1;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		n = read(fd, text, sizeof(text) - 1);
		close(fd);
	}
	text[n > 0 ? n : 0] = '\0';
	field = strrchr(text, ')');
	for (int i = 0; field && i < STAT_FLAGS; i++)
		field = strchr(field + 1, ' ');
	return field && (~strtoul(field, NULL, 10) & (exiting | not_executed)) == 0;
}

/* SIGCHLD, which says that the program has ended already, is none that ends it. */
static bool is_signalled(void)
{
	sigset_t came;

	return sigpending(&came) == 0 && sigdelset(&came, SIGCHLD) == 0 && !sigisemptyset(&came);
}

/*
 * Returns once the program is executed, or an errno, positive, when it cannot be. A Ctrl-C for our
 * process group is not meant for a program that leaves it, but ends it if it comes just before that.
 * We have got the same signal then; and the program is started again.
 */
static int child_spawn(const struct child *c, pid_t *ret_pid)
{
	const struct child_start *start = c->start;
	sigset_t all, before;
	int error;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	for (int i = 0; i < SPAWN_TRIES; i++) {
		error = posix_spawn(ret_pid, start->path, &c->files, &c->attr,
				    (char *const *)start->argv,
				    start->env ? (char *const *)start->env : environ);
		if (error || start->stay || !is_signalled() || !died_unborn(*ret_pid))
			break;
		wait_for(*ret_pid, 0, NULL);
		error = EINTR;
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return error;
}

/* One that left its group is still ours to kill. */
static void kill_program(const struct child *c, pid_t program)
{
	if (!c->start->stay)
		kill(-program, SIGKILL);
	kill(program, SIGKILL);
}

static bool is_alone(void)
{
	struct sigaction sa;

	return __libc_single_threaded && sigaction(SIGCHLD, NULL, &sa) == 0 &&
	       sa.sa_handler == SIG_DFL && !(sa.sa_flags & SA_NOCLDWAIT);
}

static int start_alone(struct child *c, struct hw_err *e)
{
	int r = child_spawn(c, &c->program);

	if (r > 0)
		return err_set(e, -r, "execute %s", c->start->path);
	c->end_fd = pidfd_open(c->program, 0);
	if (c->end_fd < 0) {
		r = err_set(e, -errno, "watch %s", c->start->path);
		kill_program(c, c->program);
		wait_for(c->program, 0, NULL);
		return r;
	}
	return 0;
}

/* ---- in the minder: no locks, no allocation ------------------------------------------------- */

static void mind(const struct child *c, pid_t program)
{
	int stop_fd = c->stop_fd;
	struct pollfd fds[2] = { { .fd = stop_fd, .events = POLLIN }, { .events = POLLIN } };

	/* none of the host's descriptors stays open here */
	if (stop_fd > 0)
		close_range(0, (unsigned)stop_fd - 1, 0);
	close_range((unsigned)stop_fd + 1, ~0U, 0);
	fds[1].fd = pidfd_open(program, 0);

	while (!fds[1].revents && fds[1].fd >= 0) {
		poll(fds, 2, -1);
		if (!fds[0].revents)
			continue;
		kill_program(c, program);
		fds[0] = (struct pollfd){ .fd = -1 };
	}
}

static int minder_main(void *arg)
{
	struct sigaction by_default = { .sa_handler = SIG_DFL };
	struct child *c = arg;
	pid_t program;
	int error;

	/* CLONE_VM without CLONE_SIGHAND: this is the minder's own disposition */
	sigaction(SIGCHLD, &by_default, NULL);
	error = child_spawn(c, &program);
	if (error == 0) {
		mind(c, program);
		wait_for(program, 0, &c->status);
	}
	c->error = error;
	return 0;
}

/* ---- in the thread -------------------------------------------------------------------------- */

static void *minder_thread(void *arg)
{
	_Alignas(16) char stack[MINDER_STACK];
	struct child *c = arg;
	pid_t minder;

	c->error = ECHILD; /* stands when somebody kills the minder */
	minder = __clone(minder_main, stack + sizeof(stack), CLONE_VM | CLONE_VFORK, c);
	if (minder < 0)
		c->error = errno;
	else
		wait_for(minder, __WALL, NULL);
	eventfd_write(c->end_fd, 1);
	return NULL;
}

/* ---- in the caller -------------------------------------------------------------------------- */

static int start_minded(struct child *c, struct hw_err *e)
{
	sigset_t all, before;
	int r;

	c->minded = true;
	c->end_fd = eventfd(0, EFD_CLOEXEC);
	c->stop_fd = eventfd(0, EFD_CLOEXEC);
	if (c->end_fd < 0 || c->stop_fd < 0)
		return err_set(e, -errno, "watch %s", c->start->path);

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	r = pthread_create(&c->thread, NULL, minder_thread, c);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return r > 0 ? err_set(e, -r, "start a thread to run %s", c->start->path) : 0;
}

/**
 * child_start() - start a program
 * @start: with what it points to, must last until child_wait()
 *
 * Return: 0, or a negative errno. That the program cannot be executed is said
 * here or by child_wait().
 */
int child_start(const struct child_start *start, struct child **ret_child, struct hw_err *e)
{
	AUTO(child_free) struct child *c = child_new(start);
	int r = is_alone() ? start_alone(c, e) : start_minded(c, e);

	if (r == 0)
		*ret_child = take_ptr(c);
	return r;
}

int child_fd(const struct child *c)
{
	return c->end_fd;
}

void child_kill(struct child *c)
{
	if (c->minded)
		eventfd_write(c->stop_fd, 1);
	else
		kill_program(c, c->program);
}

int child_wait(struct child *child, int *ret_status, struct hw_err *e)
{
	AUTO(child_free) struct child *c = child;

	if (c->minded)
		pthread_join(c->thread, NULL);
	else
		wait_for(c->program, 0, &c->status);
	if (c->error)
		return err_set(e, -c->error, "execute %s", c->start->path);
	*ret_status = c->status;
	return 0;
}
