/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci/pause.c - start and kill hawser-pause
 *
 * How:   clone() with CLONE_VM and CLONE_VFORK: no memory is copied, however large the daemon is, and
 *        this thread continues after the exec. Like the watcher in base/os/child.c, the new process
 *        uses this thread's memory with all signals blocked, acquires no lock and allocates nothing.
 *        A process ID may be reused after the process has ended, also by a process of the host. So
 *        the process is killed through a pidfd, and only if its PID namespace is the right one.
 */
#include "oci/pause.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/os/namespace.h"
#include "base/os/thread.h"
#include "base/time.h"
#include "oci/oom-score.h"

#define CLONE_STACK (16 << 10)
#define FILES_MAX   32 /* there are fewer hierarchies of cgroups */
#define OOM_SCORE                                                                                  \
	(-998) /* that of kubelet's pause containers: killed last of all pods' processes */
/* Descriptors of hawser-pause: a socket; from FILES_FD on the files cgroup.procs. */
#define GO_FD	 0
#define FILES_FD 1

/* ThreadSanitizer intercepts clone() and treats it as fork(). It does not intercept this name. */
int __clone(int (*fn)(void *arg), void *stack, int flags, void *arg, ...);

struct pause_host {
	char *program;
	int mounts; /* an empty mount namespace */
};

/* ---- the empty mount namespace --------------------------------------------------------------- */

struct empty_mounts {
	int fd;
	int r;
	struct hw_err *e;
};

static int leave_root(struct hw_err *e)
{
	const unsigned long flags = MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC;

	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return err_set(e, -errno, "make the mounts private");
	/* any directory that exists */
	if (mount("hawser-pause", "/proc", "tmpfs", flags, "size=4k,nr_inodes=2,mode=0555") < 0 ||
	    chdir("/proc") < 0)
		return err_set(e, -errno, "mount an empty directory");
	if (syscall(SYS_pivot_root, ".", ".") < 0 || umount2(".", MNT_DETACH) < 0)
		return err_set(e, -errno, "change the root directory");
	return 0;
}

/* A thread, because unshare() changes only the calling thread */
static void *empty_mounts_thread(void *arg)
{
	struct empty_mounts *m = arg;
	autoclose int fd = -1;

	if (unshare(CLONE_NEWNS) < 0) {
		m->r = err_set(m->e, -errno, "create a mount namespace");
		return NULL;
	}
	fd = open("/proc/thread-self/ns/mnt", O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		m->r = err_set(m->e, -errno, "open /proc/thread-self/ns/mnt");
		return NULL;
	}
	m->r = leave_root(m->e);
	if (m->r == 0)
		m->fd = take_fd(fd);
	return NULL;
}

int pause_host_new(const char *program, struct pause_host **ret_host, struct hw_err *e)
{
	struct empty_mounts m = { .fd = -1, .e = e };
	struct pause_host *host;
	pthread_t thread;
	int r;

	r = thread_start(empty_mounts_thread, &m, &thread, e);
	if (r == 0) {
		pthread_join(thread, NULL);
		r = m.r;
	}
	if (r < 0)
		return err_ctx(e, "prepare for hawser-pause");
	host = mem_new(sizeof(*host));
	*host = (struct pause_host){ .program = str_copy(program), .mounts = m.fd };
	*ret_host = host;
	return 0;
}

void pause_host_free(struct pause_host *host)
{
	if (!host)
		return;
	free(host->program);
	mem_close_fd(&host->mounts);
	free(host);
}

/* ---- start ----------------------------------------------------------------------------------- */

struct exec_args {
	char *const *argv;
	int program, go, mounts, user; /* user: the user namespace; -1: that of the caller */
	int files[FILES_MAX];
	unsigned n_files;
	char *stack; /* end of a stack for the second process */
	int pid;     /* of the second process */
	int error;   /* positive errno of the new process */
};

/* Both functions are for new processes. They are not for ThreadSanitizer, to which they look like functions of the
 * calling thread that never return. It would also intercept dup3(), and not know that a process has its own
 * descriptors. */

/*
 * In the process 1 of the PID namespace. The descriptors are at least FILES_MAX + 1. A session of its own: a
 * Ctrl-C for the daemon's process group is not for pods.
 */
__attribute__((no_sanitize_thread)) static int exec_pause(void *arg)
{
	static char *const no_environment[] = { NULL };
	struct exec_args *args = arg;
	unsigned next = FILES_FD;
	bool ok = true;

	if (args->user < 0)
		ok = syscall(SYS_setns, args->mounts, CLONE_NEWNS) >= 0;
	ok = ok && syscall(SYS_dup3, args->go, GO_FD, 0) >= 0;
	for (unsigned i = 0; ok && i < args->n_files; i++)
		ok = syscall(SYS_dup3, args->files[i], next++, 0) >= 0;
	/* the program is closed by the exec */
	if (ok && syscall(SYS_dup3, args->program, next, O_CLOEXEC) >= 0 &&
	    syscall(SYS_close_range, next + 1, ~0U, 0) == 0 && syscall(SYS_setsid) >= 0)
		syscall(SYS_execveat, next, "", args->argv, no_environment, AT_EMPTY_PATH);
	args->error = errno;
	return 1;
}

/*
 * Enters the user namespace as its root, and creates process 1 of a PID namespace that belongs to it. The
 * mount namespace, which does not belong to it, must be entered before. This process has the memory of the daemon,
 * but the IDs of a user that may have other processes: these cannot trace it, because with the change of its rights
 * the kernel has made the memory not dumpable. It stays so, for the next process of this kind.
 */
__attribute__((no_sanitize_thread)) static int clone_in_user_namespace(void *arg)
{
	struct exec_args *args = arg;
	int r = -1;

	if (syscall(SYS_setns, args->mounts, CLONE_NEWNS) == 0 &&
	    syscall(SYS_setns, args->user, CLONE_NEWUSER) == 0 &&
	    syscall(SYS_setgroups, 0, NULL) == 0 && syscall(SYS_setresgid, 0, 0, 0) == 0 &&
	    syscall(SYS_setresuid, 0, 0, 0) == 0)
		r = __clone(exec_pause, args->stack,
			    CLONE_VM | CLONE_VFORK | CLONE_NEWPID | CLONE_PARENT, args);
	if (r < 0)
		args->error = errno;
	else
		args->pid = r;
	return 0;
}

static void reap(int pidfd)
{
	siginfo_t info;

	while (waitid(P_PIDFD, (id_t)pidfd, &info, WEXITED | __WALL) < 0 && errno == EINTR)
		;
}

/* The second process is a child of this one, too, and exists until it is reaped. */
static int open_second(struct exec_args *args, struct pause_process *process)
{
	reap(process->pidfd);
	mem_close_fd(&process->pidfd);
	process->pid = args->pid;
	if (args->pid > 0)
		process->pidfd = pidfd_open(args->pid, 0);
	return args->pid > 0 && process->pidfd < 0 ? -errno : 0;
}

/* Return: 0, or a negative errno */
static int clone_pause(struct exec_args *args, struct pause_process *process)
{
	_Alignas(16) char stack[CLONE_STACK], second[CLONE_STACK];
	bool in_user = args->user >= 0;
	sigset_t all, before;
	int r;

	args->stack = second + sizeof(second);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	r = __clone(in_user ? clone_in_user_namespace : exec_pause, stack + sizeof(stack),
		    CLONE_VM | CLONE_VFORK | CLONE_PIDFD | (in_user ? 0 : CLONE_NEWPID), args,
		    &process->pidfd);
	r = r < 0 ? -errno : r;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (r < 0)
		return r;
	process->pid = r;
	r = in_user ? open_second(args, process) : 0;
	if (r == 0 && args->error)
		r = -args->error;
	if (r < 0 && process->pidfd >= 0) {
		reap(process->pidfd);
		mem_close_fd(&process->pidfd);
	}
	return r;
}

/* The process exists until it is reaped, so its ID is not that of another process. */
static int set_oom_score(pid_t pid, struct hw_err *e)
{
	autofree char *path = str_printf("/proc/%d/oom_score_adj", (int)pid);
	autoclose int fd = -1;
	int r, score;

	r = oom_score_clamp(OOM_SCORE, &score, e);
	if (r < 0)
		return r;
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0 || dprintf(fd, "%d", score) < 0)
		return err_set(e, -errno, "write %d to %s", score, path);
	return 0;
}

/* A descriptor above those that the new process uses. */
static int open_high(const char *path, int flags)
{
	autoclose int fd = -1;

	fd = open(path, flags | O_CLOEXEC);
	return fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, FILES_FD + FILES_MAX + 1);
}

static int open_files(const struct pause_host *host, const struct hw_strings *files,
		      struct exec_args *args, struct hw_err *e)
{
	args->program = open_high(host->program, O_PATH);
	if (args->program < 0)
		return err_set(e, -errno, "execute %s", host->program);
	/* one that does not exist belongs to a cgroup that was removed, together with the pod */
	for (size_t i = 0; i < files->n && args->n_files < FILES_MAX; i++) {
		int fd;

		fd = open_high(files->v[i], O_WRONLY);
		if (fd >= 0)
			args->files[args->n_files++] = fd;
	}
	return 0;
}

static void close_files(struct exec_args *args)
{
	mem_close_fd(&args->program);
	for (unsigned i = 0; i < args->n_files; i++)
		mem_close_fd(&args->files[i]);
}
AUTO_VALUE_DEFINE(close_files, struct exec_args);

int pause_start(const struct pause_host *host, const struct hw_strings *cgroup_files, int user,
		struct pause_process *ret_process, struct hw_err *e)
{
	AUTO(pause_process_done) struct pause_process process = { .pidfd = -1, .go = -1 };
	char name[] = "hawser-pause", *argv[FILES_MAX + 2] = { name };
	AUTO(close_files)
	struct exec_args args = {
		.argv = argv, .program = -1, .mounts = host->mounts, .user = user
	};
	autoclose int theirs = -1;
	int pair[2], r;

	r = open_files(host, cgroup_files, &args, e);
	if (r < 0)
		return r;
	for (unsigned i = 0; i < args.n_files; i++)
		argv[i + 1] = name;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return err_set(e, -errno, "create a socket pair");
	process.go = pair[0];
	theirs = pair[1];
	args.go = fcntl(theirs, F_DUPFD_CLOEXEC, FILES_FD + FILES_MAX + 1);
	if (args.go < 0)
		return err_set(e, -errno, "copy a descriptor");
	r = clone_pause(&args, &process);
	mem_close_fd(&args.go);
	if (r < 0)
		return err_set(e, r, "execute %s", host->program);
	r = set_oom_score(process.pid, e);
	if (r < 0)
		return r;
	*ret_process = process;
	process = (struct pause_process){ .pidfd = -1, .go = -1 };
	return 0;
}

int pause_go(struct pause_process *process, struct hw_err *e)
{
	if (send(process->go, "", 1, MSG_NOSIGNAL) != 1)
		return err_set(e, -errno, "start hawser-pause %d", (int)process->pid);
	mem_close_fd(&process->go);
	process->go = -1;
	return 0;
}

void pause_process_done(struct pause_process *process)
{
	if (process->go >= 0 && process->pidfd >= 0) {
		pidfd_send_signal(process->pidfd, SIGKILL, NULL, 0);
		reap(process->pidfd);
	}
	mem_close_fd(&process->go);
	mem_close_fd(&process->pidfd);
	process->go = process->pidfd = -1;
}

/* ---- kill ------------------------------------------------------------------------------------ */

/* Waits for the end of the process, and reaps it if it is our child. */
static int wait_for_end(int pidfd, pid_t pid, int64_t deadline, struct hw_err *e)
{
	struct pollfd ended = { .fd = pidfd, .events = POLLIN };
	int n;

	do {
		n = poll(&ended, 1, time_left_ms(deadline));
		if (n < 0 && errno != EINTR)
			return err_set(e, -errno, "wait for process %d", (int)pid);
	} while (n <= 0 && !time_has_passed(deadline));
	if (n <= 0)
		return err_text(e, -ETIMEDOUT, "process %d does not end", (int)pid);
	reap(pidfd);
	return 0;
}

int pause_open(pid_t pid, const struct namespace_id *ns, int *ret_pidfd, struct hw_err *e)
{
	autofree char *path = str_printf("/proc/%d/ns/pid", (int)pid);
	autoclose int pidfd = -1;
	struct namespace_id found;
	int r;

	pidfd = pidfd_open(pid, 0);
	if (pidfd < 0 && errno == ESRCH)
		return 0;
	if (pidfd < 0)
		return err_set(e, -errno, "open process %d", (int)pid);
	r = namespace_get(path, &found, e);
	if (r <= 0)
		return r;
	if (found.dev != ns->dev || found.ino != ns->ino)
		return 0;
	*ret_pidfd = take_fd(pidfd);
	return 1;
}

int pause_kill(pid_t pid, const struct namespace_id *ns, int64_t deadline, struct hw_err *e)
{
	autoclose int pidfd = -1;
	int r;

	r = pause_open(pid, ns, &pidfd, e);
	if (r <= 0)
		return r;
	if (pidfd_send_signal(pidfd, SIGKILL, NULL, 0) < 0 && errno != ESRCH)
		return err_set(e, -errno, "kill process %d", (int)pid);
	return wait_for_end(pidfd, pid, deadline, e);
}
