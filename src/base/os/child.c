/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/os/child.c - child processes that do not disturb the calling program
 *
 * The problem: the kernel gives an exit status to the first thread of the parent
 * process that waits, and discards it if the parent ignores SIGCHLD. The calling
 * program, which uses this library, may call waitpid(-1) in another thread or in a
 * signal handler, or may ignore SIGCHLD; the library must not change any of that.
 * A child created by clone() with exit signal 0 is not affected by any of these,
 * but execve() makes it an ordinary child again (execve(2): "the termination signal
 * is reset to SIGCHLD").
 *
 * So there are two modes:
 *
 *   direct   The process has no other thread, and SIGCHLD has its default
 *            disposition: nothing else can take the status. The program is a
 *            direct child of this process. All our short-lived programs use this
 *            mode, because it is faster. Not with .oom_score.
 *
 *   watched  Otherwise there is a watcher process between the calling program and
 *            the program to run. The watcher shares our memory, has exit signal
 *            0 and never calls execve(), so the calling program gets no signal
 *            for it, and waitpid() without __WALL does not reap it. It starts the
 *            program, waits for it and stores the status in memory.
 *
 *	caller ── pthread ─► thread ── clone(VM, VFORK) ─► watcher ── posix_spawn ─► program
 *	  ▲ end (eventfd) ◄──── resumes when the watcher exits ◄── waitpid ◄───────────┘
 *	  └ stop (eventfd) ─────────────────────────────────► kill(-program)
 *
 * Why sharing the memory is safe: CLONE_VFORK suspends the thread while the
 * watcher lives, so only the watcher uses that thread's stack, errno and other
 * thread-local data. It acquires no lock and allocates no memory, so it can be
 * killed at any time without harm. All signals are blocked in the thread and
 * therefore in the watcher: no signal handler of the calling program runs there,
 * and a Ctrl-C for the process group of the calling program does not affect it.
 * The watcher has a copy of the descriptor table and closes all descriptors except
 * the two that it uses, so it keeps no descriptor of the calling program open. No
 * memory is copied, however large the calling program is.
 *
 * With .oom_score, the watcher writes it to its own oom_score_adj, which the program
 * inherits, so that the program never runs with another one. For a process of CLONE_VFORK
 * the kernel does not copy the value to the processes that share its memory, and never
 * chooses such a process when memory runs out: the calling program is not affected.
 *
 * Killing by process group ID is safe in both modes: the ID cannot be reused
 * before the process that kills has waited for the program.
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
#include "base/os/raw-call.h"
#include "base/os/thread.h"

/* 2 KiB were used when measured with a fill pattern; posix_spawn() allocates the stack of its child */
#define WATCHER_STACK (32 << 10)
#define STAT_FLAGS    7	 /* number of fields from the name to the flags in /proc/PID/stat */
#define SPAWN_TRIES   32 /* retried only if a signal killed the new process before its exec */

/* ThreadSanitizer intercepts clone() and treats it as fork(). It does not intercept this name. */
int __clone(int (*fn)(void *arg), void *stack, int flags, void *arg, ...);

struct child {
	const struct child_start *start; /* borrowed until child_wait() */
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attr;
	int end_fd;    /* direct: a pidfd; watched: an eventfd */
	pid_t program; /* process ID of the program; watched: written by the watcher */

	bool watched;
	pthread_t thread;
	int stop_fd;	    /* an eventfd */
	int error;	    /* positive errno if there is no status */
	const char *action; /* what failed with .error */
	int status;
};

/* ---- limit of open files ------------------------------------------------------------------- */

/* Of programs and of this process, if they differ. Written before there are other threads. */
static struct rlimit program_files, own_files;
static bool files_differ;

void child_raise_files(rlim_t wanted)
{
	if (getrlimit(RLIMIT_NOFILE, &program_files) < 0 || program_files.rlim_cur >= wanted)
		return;
	own_files = program_files;
	own_files.rlim_cur = wanted < own_files.rlim_max ? wanted : own_files.rlim_max;
	files_differ = setrlimit(RLIMIT_NOFILE, &own_files) == 0;
}

static void set_files_limit(const struct rlimit *limit)
{
	if (files_differ)
		setrlimit(RLIMIT_NOFILE, limit);
}

/* ---- common parts of both modes ------------------------------------------------------------- */

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

static struct child *child_new(const struct child_start *start)
{
	struct child *c = mem_new(sizeof(*c));
	short group = start->stay ? 0 : POSIX_SPAWN_SETPGROUP;
	sigset_t all, none;
	int r;

	*c = (struct child){ .start = start, .end_fd = -1, .stop_fd = -1, .action = "execute" };
	posix_spawn_file_actions_init(&c->files);
	r = posix_spawn_file_actions_adddup2(&c->files, start->in, STDIN_FILENO);
	if (r == 0)
		r = posix_spawn_file_actions_adddup2(&c->files, start->out, STDOUT_FILENO);
	if (r == 0)
		r = posix_spawn_file_actions_adddup2(&c->files, start->err, STDERR_FILENO);
	for (size_t i = 0; r == 0 && i < start->n_keep; i++)
		r = posix_spawn_file_actions_adddup2(&c->files, start->keep[i],
						     STDERR_FILENO + 1 + (int)i);
	if (r == 0 && start->dir)
		r = posix_spawn_file_actions_addchdir_np(&c->files, start->dir);
	/* no other descriptor is inherited, with or without CLOEXEC */
	if (r == 0)
		r = posix_spawn_file_actions_addclosefrom_np(&c->files, STDERR_FILENO + 1 +
										(int)start->n_keep);
	if (r != 0)
		mem_exhausted(); /* no other error is possible: all descriptors are valid */

	sigfillset(&all);
	sigemptyset(&none);
	posix_spawnattr_init(&c->attr);
	posix_spawnattr_setflags(&c->attr, group | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
	posix_spawnattr_setpgroup(&c->attr, 0);
	posix_spawnattr_setsigdefault(&c->attr, &all);
	posix_spawnattr_setsigmask(&c->attr, &none);
	return c;
}

static void wait_for_exit(pid_t pid, int options, int *ret_status)
{
	while (waitpid(pid, ret_status, options) < 0 && errno == EINTR)
		;
}

/*
 * Return: true if the process died before it executed the program, according to the flags in
 * /proc/PID/stat, which are also valid while the process is exiting; false if they are unreadable
 */
static bool died_before_exec(pid_t pid)
{
	const unsigned long exiting = 0x4, not_executed = 0x40; /* PF_EXITING, PF_FORKNOEXEC */
	char path[32], text[512];
	const char *field;
	ssize_t n = -1;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
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

/* A pending SIGCHLD is not counted: it only means that the program has already ended. */
static bool has_pending_signal(void)
{
	sigset_t pending;

	return sigpending(&pending) == 0 && sigdelset(&pending, SIGCHLD) == 0 &&
	       !sigisemptyset(&pending);
}

/*
 * Return: 0 once the program is executed, or a positive errno
 *
 * A Ctrl-C for our process group must not affect a program that leads another group. But if it
 * arrives just before the new process leaves our group, it kills that process. As our own process
 * gets the same signal, it can detect this case, and starts the program again.
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
		if (error || start->stay || !has_pending_signal() || !died_before_exec(*ret_pid))
			break;
		wait_for_exit(*ret_pid, 0, NULL);
		error = EINTR;
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return error;
}

/* Kills the process group, and also the program itself, which may have changed to another group. */
static void kill_program(const struct child *c, pid_t program)
{
	if (!c->start->stay)
		kill(-program, SIGKILL);
	kill(program, SIGKILL);
}

static bool can_wait_directly(const struct child_start *start)
{
	struct sigaction sa;

	return !start->oom_score && __libc_single_threaded && sigaction(SIGCHLD, NULL, &sa) == 0 &&
	       sa.sa_handler == SIG_DFL && !(sa.sa_flags & SA_NOCLDWAIT);
}

static int start_direct(struct child *c, struct hw_err *e)
{
	int r;

	set_files_limit(&program_files);
	r = child_spawn(c, &c->program);
	set_files_limit(&own_files);
	if (r > 0)
		return err_set(e, -r, "execute %s", c->start->path);
	c->end_fd = pidfd_open(c->program, 0);
	if (c->end_fd < 0) {
		r = err_set(e, -errno, "open a pidfd of %s", c->start->path);
		kill_program(c, c->program);
		wait_for_exit(c->program, 0, NULL);
		return r;
	}
	return 0;
}

/* ---- in the watcher: no locks, no allocation ------------------------------------------------ */

/* Without the C library: ThreadSanitizer would take the descriptor for one of the calling program, which
 * may have another one with the same number. Return: 0 or a positive errno */
static int write_oom_score(int score)
{
	char text[16];
	int len = snprintf(text, sizeof(text), "%d", score);
	long fd, r;

	fd = raw_call4(__NR_openat, AT_FDCWD, "/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC, 0);
	if (fd < 0)
		return (int)-fd;
	r = raw_call3(__NR_write, fd, text, len);
	raw_call1(__NR_close, fd);
	return r < 0 ? (int)-r : 0;
}

static int watcher_main(void *arg)
{
	struct sigaction by_default = { .sa_handler = SIG_DFL };
	struct child *c = arg;
	int stop_fd = c->stop_fd;
	struct pollfd fds[2] = { { .fd = stop_fd, .events = POLLIN }, { .events = POLLIN } };
	pid_t program;
	int error = 0;

	/* all of these change the watcher only, as it was cloned without CLONE_SIGHAND and CLONE_THREAD */
	sigaction(SIGCHLD, &by_default, NULL);
	set_files_limit(&program_files);
	if (c->start->oom_score)
		error = write_oom_score(*c->start->oom_score);
	if (error)
		c->action = "set the oom_score_adj of";
	else
		error = child_spawn(c, &program);
	if (error) {
		c->error = error;
		return 0;
	}
	__atomic_store_n(&c->program, program, __ATOMIC_RELEASE);
	/* close the copies of the descriptors of the calling program */
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
	wait_for_exit(program, 0, &c->status);
	c->error = 0; /* set last: see watcher_thread() */
	return 0;
}

/* ---- in the thread -------------------------------------------------------------------------- */

static void *watcher_thread(void *arg)
{
	_Alignas(16) char stack[WATCHER_STACK];
	struct child *c = arg;
	pid_t watcher;

	c->error = ECHILD; /* this value remains if the watcher is killed */
	watcher = __clone(watcher_main, stack + sizeof(stack), CLONE_VM | CLONE_VFORK, c);
	if (watcher < 0)
		c->error = errno;
	else
		wait_for_exit(watcher, __WALL, NULL);
	eventfd_write(c->end_fd, 1);
	return NULL;
}

/* ---- in the caller -------------------------------------------------------------------------- */

static int start_watched(struct child *c, struct hw_err *e)
{
	int r;

	c->watched = true;
	c->end_fd = eventfd(0, EFD_CLOEXEC);
	c->stop_fd = eventfd(0, EFD_CLOEXEC);
	if (c->end_fd < 0 || c->stop_fd < 0)
		return err_set(e, -errno, "create an eventfd to watch %s", c->start->path);

	r = thread_start(watcher_thread, c, &c->thread, e);
	return r < 0 ? err_ctx(e, "run %s", c->start->path) : 0;
}

int child_start(const struct child_start *start, struct child **ret_child, struct hw_err *e)
{
	AUTO(child_free) struct child *c = child_new(start);
	int r;

	r = can_wait_directly(start) ? start_direct(c, e) : start_watched(c, e);
	if (r == 0)
		*ret_child = take_ptr(c);
	return r;
}

int child_fd(const struct child *c)
{
	return c->end_fd;
}

pid_t child_pid(const struct child *c)
{
	return __atomic_load_n(&c->program, __ATOMIC_ACQUIRE);
}

void child_kill(struct child *c)
{
	if (c->watched)
		eventfd_write(c->stop_fd, 1);
	else
		kill_program(c, c->program);
}

int child_wait(struct child *child, int *ret_status, struct hw_err *e)
{
	AUTO(child_free) struct child *c = child;

	if (c->watched)
		pthread_join(c->thread, NULL);
	else
		wait_for_exit(c->program, 0, &c->status);
	if (c->error)
		return err_set(e, -c->error, "%s %s", c->action, c->start->path);
	*ret_status = c->status;
	return 0;
}
