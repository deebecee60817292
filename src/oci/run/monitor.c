/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci/run/monitor.c - the monitor of a container: conmon
 *
 * How:   the lock is one of an open file description. Unlike a flock(), it can be looked at without taking it,
 *        so that two threads that look at the same time do not see each other's lock.
 *        monitor_end() finds the processes that have the lock file open by looking at all processes'
 *        descriptors. That takes some ms, but it is exact, also for a conmon that has not written its
 *        process ID yet; it is done only when something has failed.
 */
#include "oci/run/monitor.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/os/file.h"
#include "base/str.h"
#include "base/time.h"
#include "oci/run/monitor-internal.h"
#include "oci/run/pid.h"

void monitor_done(struct monitor *m)
{
	mem_close_fd(&m->pidfd);
}

int monitor_open_bundle(const char *bundle, int *ret_dir, struct hw_err *e)
{
	int fd;

	fd = open(bundle, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return err_set(e, -errno, "open %s", bundle);
	*ret_dir = fd;
	return 0;
}

/* ---- the lock -------------------------------------------------------------------------------------- */

/* Return: 1 if the lock is held, 0 if not or if there is no lock file; or a negative errno */
static int is_held(int dir, struct hw_err *e)
{
	struct flock wanted = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	autoclose int fd = -1;

	fd = openat(dir, "lock", O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? 0 : err_set(e, -errno, "open the lock");
	if (fcntl(fd, F_OFD_GETLK, &wanted) < 0)
		return err_set(e, -errno, "ask for the lock");
	return wanted.l_type != F_UNLCK;
}

int monitor_is_alive(const char *bundle, struct hw_err *e)
{
	autoclose int dir = -1;
	int r;

	r = monitor_open_bundle(bundle, &dir, e);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	r = is_held(dir, e);
	return r < 0 ? err_ctx(e, "%s", bundle) : r;
}

/* The path of the lock file as the kernel shows it. Return: 1; 0 if there is no lock file; or a negative errno */
static int get_lock_path(int dir, char ret[PATH_MAX], struct hw_err *e)
{
	char link[64];
	autoclose int fd = -1;
	ssize_t n;

	fd = openat(dir, "lock", O_PATH | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? 0 : err_set(e, -errno, "open the lock");
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, ret, PATH_MAX - 1);
	if (n < 0)
		return err_set(e, -errno, "read %s", link);
	ret[n] = '\0';
	return 1;
}

/* A process that has the lock file open. The pidfd is opened first: a process with the same number that
 * starts later cannot be taken for it. Return: 1; 0 if it is another process, or has ended; or a negative
 * errno if that cannot be found out, for example for lack of descriptors */
static int open_holder(pid_t pid, const char *lock_path, int *ret_pidfd, struct hw_err *e)
{
	autoclose int fd = -1;
	int r;

	fd = pidfd_open(pid, 0);
	if (fd < 0 && (errno == ESRCH || errno == EINVAL)) /* EINVAL: it is a thread */
		return 0;
	if (fd < 0)
		return err_set(e, -errno, "open process %d", pid);
	r = pid_has_open(pid, str_equal, lock_path);
	if (r < 0)
		return err_set(e, r, "list the open files of process %d", pid);
	if (r == 0)
		return 0;
	if (pidfd_send_signal(fd, 0, NULL, 0) < 0)
		return errno == ESRCH ? 0 : err_set(e, -errno, "look for process %d", pid);
	*ret_pidfd = take_fd(fd);
	return 1;
}

/* A process that another thread is just starting has copies of all our descriptors until it executes its program.
 * It does not use this lock, and must not be killed. Asked first: a process that was executed has only
 * descriptors that were meant for it. */
static bool is_being_started(pid_t pid)
{
	struct stat own, other;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	return stat("/proc/self/exe", &own) == 0 && stat(path, &other) == 0 &&
	       own.st_dev == other.st_dev && own.st_ino == other.st_ino;
}

static int kill_holder(void *ctx, const struct file_entry *entry, struct hw_err *e)
{
	autoclose int pidfd = -1;
	long long pid;

	/* after an error, the next round tries again */
	if (str_to_int64(entry->name, 1, INT32_MAX, &pid) && !is_being_started((pid_t)pid) &&
	    open_holder((pid_t)pid, ctx, &pidfd, e) > 0)
		pidfd_send_signal(pidfd, SIGKILL, NULL, 0);
	return 0;
}

int monitor_end(const char *bundle, int64_t deadline, struct hw_err *e)
{
	char lock_path[PATH_MAX];
	autoclose int dir = -1;
	int r;

	r = monitor_open_bundle(bundle, &dir, e);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	for (int ms = 1;; ms = ms < 50 ? 2 * ms : ms) {
		r = is_held(dir, e);
		if (r <= 0)
			return r < 0 ? err_ctx(e, "%s", bundle) : 0;
		if (time_has_passed(deadline))
			return err_text(e, -ETIMEDOUT, "%s: conmon or crun cannot be killed",
					bundle);
		r = get_lock_path(dir, lock_path, e);
		if (r > 0)
			r = file_walk(AT_FDCWD, "/proc", kill_holder, lock_path, e);
		if (r < 0)
			return r;
		time_sleep(ms);
	}
}

/* ---- finding a monitor --------------------------------------------------------------------------- */

int monitor_find(int dir, struct monitor *ret, struct hw_err *e)
{
	AUTO(monitor_done) struct monitor m = { .pidfd = -1 };
	char lock_path[PATH_MAX];
	pid_t parent = 0;
	int r, pid;

	r = pid_read_file(dir, "conmon.pid", &m.pid, e);
	if (r > 0)
		r = get_lock_path(dir, lock_path, e);
	if (r > 0)
		r = open_holder(m.pid, lock_path, &m.pidfd, e);
	if (r <= 0)
		return r;
	r = pid_read_file(dir, "pidfile", &pid, e);
	if (r > 0)
		parent = pid_get_parent(pid);
	if (parent < 0)
		return err_set(e, parent, "read the parent of process %d", pid);
	if (r < 0)
		return r;
	if (r > 0 && parent == m.pid)
		m.container = pid;
	*ret = m;
	m.pidfd = -1;
	return 1;
}

int monitor_adopt(const char *bundle, struct monitor *ret, struct hw_err *e)
{
	autoclose int dir = -1;
	int r, alive;

	r = monitor_open_bundle(bundle, &dir, e);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	alive = is_held(dir, e);
	if (alive > 0)
		alive = monitor_find(dir, ret, e);
	if (alive < 0)
		return err_ctx(e, "%s", bundle);
	if (alive > 0)
		return 1;
	/* it may have ended meanwhile */
	r = is_held(dir, e);
	if (r > 0)
		return err_text(e, -EBUSY, "%s: a container is being created", bundle);
	return r < 0 ? err_ctx(e, "%s", bundle) : 0;
}

int monitor_get_exit(const char *bundle, struct monitor_exit *ret, struct hw_err *e)
{
	autoclose int dir = -1;
	struct stat st;
	int r, code;

	r = monitor_open_bundle(bundle, &dir, e);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	r = pid_read_file(dir, "exit", &code, e);
	if (r > 0 && fstatat(dir, "exit", &st, AT_SYMLINK_NOFOLLOW) < 0)
		r = err_set(e, -errno, "stat exit");
	if (r <= 0)
		return r < 0 ? err_ctx(e, "%s", bundle) : 0;
	*ret = (struct monitor_exit){
		.code = code,
		.time = st.st_mtim.tv_sec * INT64_C(1000000000) + st.st_mtim.tv_nsec,
		.oom = faccessat(dir, "oom", F_OK, 0) == 0,
	};
	return 1;
}

/* ---- commands ------------------------------------------------------------------------------------ */

static int send_command(int dir, const char *command, struct hw_err *e)
{
	autoclose int fd = -1;
	ssize_t n;

	fd = openat(dir, "ctl", O_WRONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 && (errno == ENXIO || errno == ENOENT))
		return err_text(e, -ESRCH, "the monitor does not run");
	if (fd < 0)
		return err_set(e, -errno, "open ctl");
	n = write(fd, command, strlen(command)); /* less than PIPE_BUF: all or nothing */
	return n < 0 ? err_set(e, -errno, "write to ctl") : 0;
}

/* conmon does not answer. It renames the new file to the path of the log. */
static int reopen(int dir, const char *log, int64_t deadline, struct hw_err *e)
{
	struct stat before = { 0 }, now;
	int r;

	if (stat(log, &before) < 0 && errno != ENOENT)
		return err_set(e, -errno, "stat %s", log);
	r = send_command(dir, "2 0 0\n", e);
	while (r == 0) {
		if (stat(log, &now) == 0 && now.st_ino != before.st_ino)
			return 0;
		r = is_held(dir, e);
		if (r == 0)
			return err_text(e, -ESRCH, "the monitor has ended");
		if (time_has_passed(deadline))
			return err_text(e, -ETIMEDOUT, "no new log file at %s", log);
		time_sleep(1);
		r = r < 0 ? r : 0;
	}
	return r;
}

int monitor_reopen_log(const char *bundle, const char *log, int64_t deadline, struct hw_err *e)
{
	autoclose int dir = -1;
	int r;

	r = monitor_open_bundle(bundle, &dir, e);
	if (r < 0)
		return r == -ENOENT ? err_replace(e, r, -ESRCH) : r;
	r = reopen(dir, log, deadline, e);
	return r < 0 ? err_ctx(e, "reopen the log of %s", bundle) : 0;
}

int monitor_resize(const char *bundle, unsigned height, unsigned width, struct hw_err *e)
{
	autoclose int dir = -1;
	char command[64];
	int r;

	r = monitor_open_bundle(bundle, &dir, e);
	if (r < 0)
		return r == -ENOENT ? err_replace(e, r, -ESRCH) : r;
	snprintf(command, sizeof(command), "1 %u %u\n", height, width);
	r = send_command(dir, command, e);
	return r < 0 ? err_ctx(e, "resize the terminal of %s", bundle) : 0;
}

/* The path of a socket has at most 107 bytes, and that of a bundle may be longer. */
int monitor_attach(const char *bundle, int *ret_fd, struct hw_err *e)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	autoclose int dir = -1, fd = -1;
	int r;

	r = monitor_open_bundle(bundle, &dir, e);
	if (r < 0)
		return r == -ENOENT ? err_replace(e, r, -ESRCH) : r;
	snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/attach", dir);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return err_set(e, -errno, "create a socket");
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
		if (errno == ENOENT || errno == ECONNREFUSED)
			return err_text(e, -ESRCH, "attach to %s: the monitor does not run",
					bundle);
		return err_set(e, -errno, "attach to %s", bundle);
	}
	*ret_fd = take_fd(fd);
	return 0;
}
