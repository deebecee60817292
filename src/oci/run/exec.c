/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci/run/exec.c - commands in a running container
 *
 * How:   crun gets the command as a file, and writes the process ID of the command to another one once the
 *        command runs. So the command was started if and only if that file exists. The command is a child
 *        of crun; killing crun would not end it.
 *        A terminal is made by crun, which sends its descriptor to a socket.
 *        crun (1.8.1) makes the user of the command the owner of its standard input and output. A command
 *        that got the host's /dev/null could then change its mode, so it gets a node of its own.
 *        crun (1.8.1) ignores oomScoreAdj of a command's process, and the command inherits that of crun.
 */
#include "oci/run/exec.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/os/child.h"
#include "base/os/file.h"
#include "base/os/remove-tree.h"
#include "base/str.h"
#include "base/time.h"
#include "oci/oom-score.h"
#include "oci/run/pid.h"

#define PID_MS	(PROC_STOP_MS / 2) /* for crun to write the process ID */
#define LOG_MAX (64 << 10)
#define STEP_MS 1

/* ---- files of a command ------------------------------------------------------------------------ */

struct files {
	char *path; /* of the directory, in the bundle */
	int dir;
	char *program;		/* crun */
	struct hw_strings argv; /* of crun, with a NULL at the end */
	int oom_score;		/* of crun and the command */
	bool has_oom_score;	/* else they inherit that of this process */
};

static void files_done(struct files *f)
{
	struct hw_err ignored;
	char *slash = f->path ? strrchr(f->path, '/') : NULL;
	autoclose int bundle = -1;

	if (slash) {
		*slash = '\0';
		bundle = open(f->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (bundle >= 0) /* if that fails, it is removed with the bundle */
			remove_tree(bundle, slash + 1, &ignored);
	}
	mem_close_fd(&f->dir);
	free(f->path);
	free(f->program);
	hw_strings_free(&f->argv);
	*f = (struct files){ .dir = -1 };
}
AUTO_VALUE_DEFINE(files_done, struct files);

/* The process of the container, with other arguments, and with the terminal of this command. */
static int write_process(const struct files *f, const struct exec_command *x,
			 const struct exec_streams *streams, struct hw_err *e)
{
	struct oci_process process = *x->process;
	autofree char *json = NULL, *term = str_copy("TERM=xterm");
	autofree char **env = mem_new((process.env.n + 1) * sizeof(*env));
	bool has_term = false;

	process.args = *x->args;
	process.terminal = streams && streams->terminal;
	process.has_console = process.terminal && streams->height && streams->width;
	if (process.has_console) {
		process.console_height = streams->height;
		process.console_width = streams->width;
	}
	for (size_t i = 0; i < process.env.n; i++) {
		env[i] = process.env.v[i];
		has_term |= str_starts(env[i], "TERM=");
	}
	process.env.v = env;
	if (process.terminal && !has_term)
		env[process.env.n++] = term;
	json = hw_field_encode(spec_process_fields, &process, 0);
	return file_replace(f->dir, "process", json, strlen(json), 0600, 0, e);
}

static void add_file(struct files *f, const char *option, const char *name)
{
	autofree char *path = str_printf("%s/%s", f->path, name);

	strings_add(&f->argv, option);
	strings_add(&f->argv, path);
}

static void set_argv(struct files *f, const struct exec_command *x, bool terminal)
{
	strings_add(&f->argv, x->runtime->program);
	runtime_add_options(x->runtime, &f->argv);
	add_file(f, "--log", "log");
	strings_add(&f->argv, "exec");
	add_file(f, "--process", "process");
	add_file(f, "--pid-file", "pid");
	if (terminal) {
		strings_add(&f->argv, "--tty");
		add_file(f, "--console-socket", "console");
	}
	strings_add(&f->argv, x->id);
	f->argv.v = mem_resize(f->argv.v, f->argv.n + 1, sizeof(*f->argv.v));
	f->argv.v[f->argv.n] = NULL;
}

/* That of the container, as far as this process may set it. */
static int set_oom_score(struct files *f, const struct oci_process *process, struct hw_err *e)
{
	f->has_oom_score = process->has_oom_score_adj;
	return f->has_oom_score ? oom_score_clamp(process->oom_score_adj, &f->oom_score, e) : 0;
}

static const int *get_oom_score(const struct files *f)
{
	return f->has_oom_score ? &f->oom_score : NULL;
}

static int files_init(struct files *f, const struct exec_command *x,
		      const struct exec_streams *streams, struct hw_err *e)
{
	autofree char *path = str_printf("%s/exec.XXXXXX", x->bundle);
	int r;

	if (x->args->n == 0)
		return err_text(e, -EINVAL, "exec: no command");
	r = set_oom_score(f, x->process, e);
	if (r < 0)
		return r;
	if (!mkdtemp(path))
		return err_set(e, -errno, "create a directory in %s", x->bundle);
	f->path = take_ptr(path);
	f->program = str_copy(x->runtime->program);
	f->dir = open(f->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (f->dir < 0)
		return err_set(e, -errno, "open %s", f->path);
	set_argv(f, x, streams && streams->terminal);
	return write_process(f, x, streams, e);
}

/* ---- the end of a command ------------------------------------------------------------------------ */

/* A process that has ended meanwhile has no group. */
static void kill_group(pid_t pid)
{
	pid_t group = getpgid(pid);

	if (group > 1)
		kill(-group, SIGKILL);
}

/* Kills the process group of the command. If crun has not started it yet, waits for that, because a command
 * that is started after crun was killed would run on. */
static void kill_command(void *ctx, const struct child *crun)
{
	struct pollfd ended = { .fd = child_fd(crun), .events = POLLIN };
	int64_t deadline = time_deadline(PID_MS);
	const struct files *f = ctx;

	do {
		pid_t parent = child_pid(crun);
		struct hw_err ignored;
		int pid;

		/* before it has its own session, it is in the process group of crun */
		if (parent > 0 && pid_read_file(f->dir, "pid", &pid, &ignored) > 0 &&
		    pid_get_parent(pid) == parent && getsid(pid) != getsid(0)) {
			kill_group(pid);
			return;
		}
	} while (poll(&ended, 1, STEP_MS) == 0 && !time_has_passed(deadline));
}

static int get_code(const struct files *f, int status, int *ret_code, struct hw_err *e)
{
	AUTO(buf_done) struct buf log = { 0 };
	autofree char *text = NULL;
	struct hw_err ignored;
	char reason[64];

	if (WIFEXITED(status) && faccessat(f->dir, "pid", F_OK, 0) == 0) {
		*ret_code = WEXITSTATUS(status);
		return 0;
	}
	file_read_if_exists(f->dir, "log", LOG_MAX, &log, &ignored);
	text = runtime_error_text(log.data);
	return err_text(e, runtime_error_code(text), "%s exec: %s", f->program,
			*text ? text : proc_status_format(status, reason, sizeof(reason)));
}

/* ---- a command whose output is collected --------------------------------------------------------- */

int exec_sync(const struct exec_command *x, int cancel_fd, int64_t deadline,
	      struct exec_result *ret, struct hw_err *e)
{
	AUTO(proc_result_done) struct proc_result result = { 0 };
	AUTO(files_done) struct files f = { .dir = -1 };
	struct proc p = {
		.path = x->runtime->program,
		.env = runtime_env,
		.output_max = EXEC_OUTPUT_MAX,
		.drop_excess = true,
		.cancel_fd = cancel_fd,
		.deadline = deadline,
		.stop = kill_command,
		.stop_ctx = &f,
	};
	int r, code;

	r = files_init(&f, x, NULL, e);
	if (r < 0)
		return r;
	p.argv = (const char *const *)f.argv.v;
	p.oom_score = get_oom_score(&f);
	r = proc_run(&p, &result, e);
	if (r == 0)
		r = get_code(&f, result.status, &code, e);
	if (r < 0)
		return r;
	*ret = (struct exec_result){ code, result.output, result.errors };
	result = (struct proc_result){ 0 };
	return 0;
}

void exec_result_done(struct exec_result *r)
{
	buf_done(&r->output);
	buf_done(&r->errors);
}

/* ---- commands of an earlier process ------------------------------------------------------------- */

/* Whether a process is in the cgroup of a container, and in another session than its first process, as commands
 * are. */
static bool is_command(int bundle, const char *id, pid_t pid)
{
	autofree char *path = str_printf("/proc/%d/cgroup", pid);
	AUTO(buf_done) struct buf cgroups = { 0 };
	struct hw_err ignored;
	int first;

	return file_read(AT_FDCWD, path, LOG_MAX, &cgroups, &ignored) == 0 &&
	       strstr(cgroups.data, id) && pid_read_file(bundle, "pidfile", &first, &ignored) > 0 &&
	       getsid(pid) != getsid(first);
}

static int sweep_command(void *ctx, const struct file_entry *entry, struct hw_err *e)
{
	autoclose int dir = -1;
	struct hw_err ignored;
	int pid;

	if (!str_starts(entry->name, "exec."))
		return 0;
	dir = openat(entry->dir, entry->name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir >= 0 && pid_read_file(dir, "pid", &pid, &ignored) > 0 &&
	    is_command(entry->dir, ctx, pid))
		kill_group(pid);
	return remove_tree(entry->dir, entry->name, e);
}

int exec_sweep(const char *bundle, const char *id, struct hw_err *e)
{
	return file_walk(AT_FDCWD, bundle, sweep_command, (void *)id, e);
}

/* ---- a command with streams ---------------------------------------------------------------------- */

struct exec {
	struct files files;
	struct child_start start;
	struct child *child;
	int fds[3];  /* copies for the command; closed when it has them */
	int console; /* socket to which crun sends the terminal */
	int terminal;
};

static void close_copies(struct exec *x)
{
	for (size_t i = 0; i < ARRAY_SIZE(x->fds); i++)
		mem_close_fd(&x->fds[i]);
}

static void exec_free(struct exec *x)
{
	struct hw_err ignored;
	int status;

	if (!x)
		return;
	if (x->child) {
		kill_command(&x->files, x->child);
		child_kill(x->child);
		child_wait(x->child, &status, &ignored);
	}
	close_copies(x);
	mem_close_fd(&x->console);
	mem_close_fd(&x->terminal);
	files_done(&x->files);
	free(x);
}
AUTO_DEFINE(exec_free, struct exec);

/* A null device in a file system that is mounted nowhere: those of the host may be mounted nodev. */
static int open_null(int *ret_fd, struct hw_err *e)
{
	autoclose int context = -1, mount = -1;
	int fd = -1;

	context = fsopen("tmpfs", FSOPEN_CLOEXEC);
	if (context >= 0 && fsconfig(context, FSCONFIG_CMD_CREATE, NULL, NULL, 0) == 0)
		mount = fsmount(context, FSMOUNT_CLOEXEC, 0);
	if (mount >= 0 && mknodat(mount, "null", S_IFCHR | 0600, makedev(1, 3)) == 0)
		fd = openat(mount, "null", O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return err_set(e, -errno, "create a null device");
	*ret_fd = fd;
	return 0;
}

static int copy_descriptor(int fd, int *ret_fd, struct hw_err *e)
{
	autoclose int null = -1;
	int r = 0;

	if (fd < 0) {
		r = open_null(&null, e);
		fd = null;
	}
	if (r < 0)
		return r;
	*ret_fd = fcntl(fd, F_DUPFD_CLOEXEC, CHILD_FD_MIN);
	return *ret_fd < 0 ? err_set(e, -errno, "duplicate a descriptor") : 0;
}

/* The path of the socket may be too long for bind(). */
static int open_console(struct exec *x, struct hw_err *e)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/console",
		 x->files.dir);
	x->console = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (x->console < 0 || bind(x->console, (struct sockaddr *)&address, sizeof(address)) < 0 ||
	    listen(x->console, 1) < 0)
		return err_set(e, -errno, "create a socket for the terminal");
	return 0;
}

/* Waits until @fd is readable, or, without one, until crun is executed.
 * Return: 0; -ECHILD, without a message, if crun has ended; -ETIMEDOUT; or another negative errno */
static int wait_for_crun(const struct exec *x, int fd, int64_t deadline, struct hw_err *e)
{
	for (;;) {
		struct pollfd fds[] = {
			{ .fd = child_fd(x->child), .events = POLLIN },
			{ .fd = fd, .events = POLLIN },
		};
		int n;

		if (fd < 0 && child_pid(x->child) > 0)
			return 0;
		n = poll(fds, ARRAY_SIZE(fds), fd < 0 ? STEP_MS : time_left_ms(deadline));
		if (n < 0 && errno != EINTR)
			return err_set(e, -errno, "wait for %s", x->start.path);
		if (n > 0 && fds[1].revents)
			return 0;
		if (n > 0)
			return -ECHILD;
		if (time_has_passed(deadline))
			return err_text(e, -ETIMEDOUT, "%s exec: timed out, killed", x->start.path);
	}
}

/* Return: 0 with the descriptor that came with a message; -EIO if there was none */
static int receive_descriptor(int socket, int *ret_fd, struct hw_err *e)
{
	char data[256], control[CMSG_SPACE(sizeof(int))];
	struct iovec iov = { data, sizeof(data) };
	struct msghdr message = { .msg_iov = &iov,
				  .msg_iovlen = 1,
				  .msg_control = control,
				  .msg_controllen = sizeof(control) };
	struct cmsghdr *c;
	ssize_t n;

	n = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
	if (n < 0)
		return err_set(e, -errno, "receive the terminal");
	c = CMSG_FIRSTHDR(&message);
	if (!c || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS ||
	    c->cmsg_len != CMSG_LEN(sizeof(int)))
		return err_text(e, -EIO, "receive the terminal: no descriptor");
	memcpy(ret_fd, CMSG_DATA(c), sizeof(*ret_fd));
	return 0;
}

static int receive_terminal(struct exec *x, int64_t deadline, struct hw_err *e)
{
	autoclose int connection = -1;
	int r;

	r = wait_for_crun(x, x->console, deadline, e);
	if (r < 0)
		return r;
	connection = accept4(x->console, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (connection < 0)
		return err_set(e, -errno, "accept the terminal");
	r = wait_for_crun(x, connection, deadline, e);
	if (r == 0)
		r = receive_descriptor(connection, &x->terminal, e);
	if (r == 0 && fcntl(x->terminal, F_SETFL, O_NONBLOCK) < 0)
		return err_set(e, -errno, "use the terminal");
	return r;
}

static int start_crun(struct exec *x, const struct exec_streams *streams, int64_t deadline,
		      struct hw_err *e)
{
	const bool terminal = streams->terminal;
	int r;

	r = copy_descriptor(terminal ? -1 : streams->in, &x->fds[0], e);
	if (r == 0)
		r = copy_descriptor(terminal ? -1 : streams->out, &x->fds[1], e);
	if (r == 0)
		r = copy_descriptor(terminal ? -1 : streams->err, &x->fds[2], e);
	if (r == 0 && terminal)
		r = open_console(x, e);
	if (r < 0)
		return r;
	x->start = (struct child_start){
		.path = x->files.program,
		.argv = (const char *const *)x->files.argv.v,
		.env = runtime_env,
		.in = x->fds[0],
		.out = x->fds[1],
		.err = x->fds[2],
		.oom_score = get_oom_score(&x->files),
	};
	r = child_start(&x->start, &x->child, e);
	if (r == 0)
		r = wait_for_crun(x, -1, deadline, e);
	if (r == 0 && terminal)
		r = receive_terminal(x, deadline, e);
	return r;
}

int exec_open(const struct exec_command *command, const struct exec_streams *streams,
	      int64_t deadline, struct exec **ret, struct hw_err *e)
{
	AUTO(exec_free) struct exec *x = mem_new(sizeof(*x));
	int r, code;

	*x = (struct exec){ .files.dir = -1, .fds = { -1, -1, -1 }, .console = -1, .terminal = -1 };
	r = files_init(&x->files, command, streams, e);
	if (r == 0)
		r = start_crun(x, streams, deadline, e);
	if (r == -ECHILD && streams->terminal) { /* it ended without sending a terminal */
		r = exec_close(take_ptr(x), &code, e);
		return r < 0 ? r
			     : err_text(e, -EIO, "%s exec: exit status %d",
					command->runtime->program, code);
	}
	if (r < 0 && r != -ECHILD) /* a short command may have ended already */
		return r;
	close_copies(x);
	*ret = take_ptr(x);
	return 0;
}

int exec_fd(const struct exec *x)
{
	return child_fd(x->child);
}

int exec_terminal(const struct exec *x)
{
	return x->terminal;
}

int exec_resize(const struct exec *x, unsigned height, unsigned width, struct hw_err *e)
{
	struct winsize size = { .ws_row = (unsigned short)height, .ws_col = (unsigned short)width };

	if (ioctl(x->terminal, TIOCSWINSZ, &size) < 0)
		return err_set(e, -errno, "resize the terminal");
	return 0;
}

void exec_kill(const struct exec *x)
{
	kill_command((void *)&x->files, x->child);
}

int exec_close(struct exec *exec, int *ret_code, struct hw_err *e)
{
	AUTO(exec_free) struct exec *x = exec;
	int r, status;

	r = child_wait(take_ptr(x->child), &status, e);
	return r < 0 ? r : get_code(&x->files, status, ret_code, e);
}
