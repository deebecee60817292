/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/serve.c - hawser-plugin serve: run plugins for a daemon
 *
 * What:  one small process without threads, a helper of the daemon (cni/serve-message.h has the
 *        protocol). Each call has a process of its own, which is a fork of this one: a plugin of
 *        this binary is called there as a function, and any other program is executed. A plugin
 *        that crashes affects only its call.
 * How:   one fork waits for the next call, so that no call has to wait for a fork. It receives the
 *        socket of the call itself, and passes a copy on to serve, which then forks the next one.
 *        serve keeps that copy until the process has ended: if there is no reply, serve reports
 *        how the process ended.
 *
 *	daemon ──────── call ────────► process that waits ── runs the plugin ──► reply
 *	                                  │ the call's socket
 *	                                  ▼
 *	                               serve: fork the next one; wait for the end of this one
 *
 * Rules: the process of a call leads a process group, in which everything stays that the plugin
 *        starts: a delegated plugin, the programs of a shell script. When the daemon ends the call
 *        or dies, the whole group is killed. Nothing is killed after the plugin has ended by
 *        itself: it may leave a daemon running on purpose.
 *        Every process of a call holds the daemon's lock, which serve has inherited, and the
 *        call's socket; executed programs do not. A process that kills its group keeps both until
 *        the group is empty. So nothing of a call runs any more when the lock is free or the daemon
 *        gets EOF, even if serve was killed before.
 */
#include "plugins/serve.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/os/boot.h"
#include "base/os/child.h"
#include "base/os/file.h"
#include "base/os/helper.h"
#include "base/os/pass-fd.h"
#include "base/time.h"
#include "cni/plugin/program.h"
#include "cni/plugin/record.h"
#include "cni/runtime/exec.h"
#include "cni/serve-message.h"

#define FILES_WANTED 65536			    /* open files: two for each running call */
#define RETRY_MS     100			    /* after a failed fork */
#define GROUP_MS     10000			    /* timeout for the end of a killed group */
#define ERRORS_MAX   (PROC_OUTPUT_MAX + (64 << 10)) /* size of a memory file for standard error */

/* A process, while it waits for a call and then until it ends. */
struct call {
	pid_t pid;
	int socket; /* -1 while it waits */
	int errors; /* a memory file, its standard error */
};

struct serve {
	const struct hw_plugin *const *plugins;
	struct stat self; /* the file of this program */
	int null;
	/* On this socket pair a process reports that it has a call. In the process itself, the first
	 * one is its memory file for standard error: it must not keep sockets alive that are on
	 * their way to serve. */
	int taken[2];
	int first_free; /* all descriptors from this one on belong to calls */
	struct call *calls;
	size_t n_calls;
	pid_t waiting; /* the process that waits; 0: none */
};

static void do_nothing(int number)
{
	(void)number;
}

static void set_handler(int number, void (*handler)(int number))
{
	const struct sigaction action = { .sa_handler = handler };

	sigaction(number, &action, NULL);
}

/* ---- the process of a call: its end ------------------------------------------------ */

/* A second process kills the group, because it must outlive it. It inherits lock and socket. If it is killed
 * before that, this process kills the group. Only functions that a signal handler may call are used here. */
static void end_call(void)
{
	const pid_t group = getpid();
	int64_t deadline = time_deadline(GROUP_MS);
	pid_t pid;

	pid = _Fork();
	if (pid > 0)
		waitpid(pid, NULL, 0);
	if (pid != 0)
		kill(-group, SIGKILL); /* also this process */
	setsid();
	kill(-group, SIGKILL);
	while (kill(-group, 0) == 0 && !time_has_passed(deadline))
		time_sleep(1);
	_exit(EXIT_SUCCESS);
}

static void send_reply(int socket, const struct serve_reply *reply)
{
	AUTO(buf_done) struct buf message = { 0 };
	size_t offset = 0;
	struct hw_err e;

	serve_reply_encode(reply, &message);
	(void)serve_send(socket, &message, &offset, 0, &e); /* the daemon may be gone */
}

static void send_failure(int socket, const struct hw_err *why)
{
	send_reply(socket, &(struct serve_reply){ .error = why->code,
						  .errors = why->msg,
						  .errors_len = strlen(why->msg) });
}

/* ---- the process of a call: the plugin --------------------------------------------- */

/* The file has a fixed size, so that a program that prints without end does not fill the memory: writing
 * beyond the end fails. What is not written uses no memory. */
static int create_errors_file(struct hw_err *e)
{
	autoclose int fd = -1;

	fd = memfd_create("errors", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0 || ftruncate(fd, ERRORS_MAX) < 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK) < 0)
		return err_set(e, -errno, "create a memory file");
	return take_fd(fd);
}

/* Return: 0; -EFBIG; or another negative errno */
static int read_errors(int fd, struct buf *errors, struct hw_err *e)
{
	off_t end;

	end = lseek(fd, 0, SEEK_HOLE); /* a page may be written only in part */
	if (end < 0)
		return err_set(e, -errno, "read standard error");
	if (end > PROC_OUTPUT_MAX)
		return err_set(e, -EFBIG, "read standard error");
	if (pread(fd, buf_reserve(errors, (size_t)end), (size_t)end, 0) != end)
		return err_set(e, -EIO, "read standard error");
	buf_commit(errors, (size_t)end);
	while (errors->len > 0 && !errors->data[errors->len - 1])
		errors->len--;
	return 0;
}

/* What a process does that executes the plugin's file: environment, standard error, result. */
static int call_plugin(const struct serve *s, const struct hw_plugin *plugin, int socket,
		       const struct serve_request *request, struct hw_err *e)
{
	AUTO(skel_reply_done) struct skel_reply answer = { 0 };
	AUTO(buf_done) struct buf errors = { 0 };
	int64_t started = time_now();
	char **own_environ = environ;
	struct skel_request call;
	size_t len;
	int r;

	if (!request->stderr_through && dup2(s->taken[0], STDERR_FILENO) < 0)
		return err_set(e, -errno, "redirect standard error");
	environ = (char **)request->env;
	call = program_request(s->plugins);
	call.self = &s->self;
	call.input = request->input;
	call.input_len = request->input_len;
	r = helper_watch_eof(socket, end_call, e);
	if (r < 0)
		return r;
	(void)skel_call(plugin, &call, &answer, e);
	set_handler(SIGIO, SIG_IGN); /* from here on nothing is killed */
	environ = own_environ;
	if (answer.notice)
		r = file_write_fd(STDERR_FILENO, answer.notice, strlen(answer.notice), e);
	len = answer.output ? strlen(answer.output) : 0;
	if (r == 0 && !request->stderr_through)
		r = read_errors(s->taken[0], &errors, e);
	if (r < 0 || len > PROC_OUTPUT_MAX)
		return exec_run_error(r < 0 ? r : -EFBIG, started, e);
	send_reply(socket, &(struct serve_reply){ .status = W_EXITCODE(answer.status, 0),
						  .output = answer.output,
						  .output_len = len,
						  .errors = errors.data,
						  .errors_len = errors.len });
	return 0;
}

static int execute_plugin(int socket, const struct serve_request *request, struct hw_err *e)
{
	const struct hw_run run = {
		.size = sizeof(run),
		.plugin = request->plugin,
		.env = request->env,
		.input = request->input,
		.input_len = request->input_len,
		.stderr_through = request->stderr_through,
		.cancel_fd = socket,
	};
	struct hw_ran ran = { .size = sizeof(ran) };
	int r;

	r = exec_run(&run, true, &ran, e);
	if (r < 0)
		return r;
	send_reply(socket, &(struct serve_reply){ .status = ran.status,
						  .output = ran.output,
						  .output_len = ran.output_len,
						  .errors = ran.errors,
						  .errors_len = ran.errors_len });
	free(ran.output);
	free(ran.errors);
	return 0;
}

static int run_call(const struct serve *s, int socket, struct hw_err *e)
{
	AUTO(serve_request_done) struct serve_request request = { 0 };
	AUTO(buf_done) struct buf message = { 0 };
	const struct hw_plugin *plugin = NULL;
	int r;

	do {
		r = serve_receive(socket, &message, 0, e);
	} while (r == 0);
	if (r < 0)
		return r;
	r = serve_request_decode(&message, &request, e);
	if (r < 0)
		return r;
	if (request.input_len <= VALUE_SIZE_MAX) /* a larger one is an error in program.c */
		plugin = program_find(s->plugins, &s->self, basename(request.plugin),
				      request.plugin);
	return plugin ? call_plugin(s, plugin, socket, &request, e)
		      : execute_plugin(socket, &request, e);
}

/* ---- the process of a call: its start ---------------------------------------------- */

/* Closes what belongs to other calls, and leaves the state of a process that was just executed. */
static void init_process(const struct serve *s, int errors)
{
	sigset_t none;

	setpgid(0, 0);
	sigemptyset(&none);
	set_handler(SIGCHLD, SIG_DFL);
	sigprocmask(SIG_SETMASK, &none, NULL);
	dup3(errors, s->taken[0], O_CLOEXEC);
	close_range((unsigned)s->first_free, ~0U, 0);
}

/* Return: the socket of a call; -1 on EOF */
static int wait_for_call(void)
{
	int socket = -1;
	ssize_t n;
	char byte;

	do {
		n = pass_fd_receive(HELPER_SOCKET, &byte, 1, &socket, 0);
	} while ((n < 0 && errno == EINTR) || (n > 0 && socket < 0));
	return socket;
}

static int process_main(const struct serve *s, int errors)
{
	struct iovec byte = { (char[]){ 't' }, 1 };
	autoclose int socket = -1;
	struct hw_err e;

	init_process(s, errors);
	socket = wait_for_call();
	if (socket < 0)
		return EXIT_SUCCESS;
	/* serve may have been killed: the call does not depend on it */
	(void)pass_fd_send(s->taken[1], &byte, 1, socket, MSG_DONTWAIT);
	dup2(s->null, STDIN_FILENO);
	dup2(s->null, STDOUT_FILENO);
	if (run_call(s, socket, &e) < 0) {
		send_failure(socket, &e);
		end_call();
	}
	return EXIT_SUCCESS;
}

/* ---- serve ------------------------------------------------------------------------- */

/* Forks the process for the next call. */
static int start_process(struct serve *s, struct hw_err *e)
{
	autoclose int errors = -1;
	pid_t pid;

	errors = create_errors_file(e);
	if (errors < 0)
		return errors;
	pid = fork();
	if (pid < 0)
		return err_set(e, -errno, "fork");
	if (pid == 0)
		exit(process_main(s, take_fd(errors)));
	s->calls = mem_resize(s->calls, s->n_calls + 1, sizeof(*s->calls));
	s->calls[s->n_calls++] = (struct call){ pid, -1, take_fd(errors) };
	s->waiting = pid;
	return 0;
}

/* Without a process for it, the next call fails at once. */
static void refuse_call(const struct hw_err *why)
{
	struct pollfd poller = { .fd = HELPER_SOCKET, .events = POLLIN };
	autoclose int socket = -1;
	char byte;

	if (poll(&poller, 1, RETRY_MS) > 0 &&
	    pass_fd_receive(HELPER_SOCKET, &byte, 1, &socket, MSG_DONTWAIT) > 0 && socket >= 0)
		send_failure(socket, why);
}

static struct call *find_call(struct serve *s, pid_t pid)
{
	for (size_t i = 0; i < s->n_calls; i++)
		if (s->calls[i].pid == pid)
			return &s->calls[i];
	return NULL;
}

static void receive_taken(struct serve *s)
{
	struct call *c = find_call(s, s->waiting);
	char byte;

	if (c && pass_fd_receive(s->taken[0], &byte, 1, &c->socket, MSG_DONTWAIT) > 0)
		s->waiting = 0;
}

/* The daemon gets this only if there was no reply: else it has closed its end. */
static void report_end(const struct call *c, int status)
{
	AUTO(buf_done) struct buf errors = { 0 }, message = { 0 };
	struct hw_err e;

	if (c->socket < 0 || status == 0)
		return;
	(void)read_errors(c->errors, &errors, &e); /* without it the report is still useful */
	serve_reply_encode(&(struct serve_reply){ .status = status,
						  .errors = errors.data,
						  .errors_len = errors.len },
			   &message);
	(void)serve_send_died(c->socket, &message, &e);
}

/* The group of a process that was killed is killed, too: no other process would end it. The process is
 * waited for after that, because its ID, which is that of the group, could be used again. */
static void reap_processes(struct serve *s)
{
	for (;;) {
		siginfo_t info = { 0 };
		struct call *c;
		int status = 0;

		if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) < 0 || info.si_pid == 0)
			return;
		receive_taken(s); /* this process may have sent it just before its end */
		if (info.si_code != CLD_EXITED)
			kill(-info.si_pid, SIGKILL);
		waitpid(info.si_pid, &status, 0);
		if (s->waiting == info.si_pid)
			s->waiting = 0;
		c = find_call(s, info.si_pid);
		if (!c)
			continue;
		report_end(c, status);
		mem_close_fd(&c->socket);
		mem_close_fd(&c->errors);
		*c = s->calls[--s->n_calls];
	}
}

static int serve_init(struct serve *s, struct hw_err *e)
{
	struct stat st;
	sigset_t child;

	if (fstat(HELPER_SOCKET, &st) < 0 || !S_ISSOCK(st.st_mode))
		return err_text(e, -EINVAL,
				"serve is a helper of hawser-cri: standard input is "
				"not its socket");
	if (stat("/proc/self/exe", &s->self) < 0)
		return err_set(e, -errno, "stat /proc/self/exe");
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	sigprocmask(SIG_BLOCK, &child, NULL);
	set_handler(SIGCHLD, do_nothing); /* ends ppoll() */
	s->null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (s->null < 0)
		return err_set(e, -errno, "open /dev/null");
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, s->taken) < 0)
		return err_set(e, -errno, "create a socket pair");
	s->first_free = 1 + (s->taken[0] > s->taken[1] ? s->taken[0] : s->taken[1]);
	helper_reset_oom_score();
	child_raise_files(FILES_WANTED);
	program_init();
	(void)boot_id(); /* read once for all calls */
	if (send(HELPER_SOCKET, "r", 1, MSG_NOSIGNAL) < 0)
		return err_set(e, -errno, "send to the daemon");
	return 0;
}

int serve_run(const struct hw_plugin *const *plugins, struct hw_err *e)
{
	struct serve s = { .plugins = plugins };
	struct hw_err why;
	sigset_t none;
	int r;

	sigemptyset(&none);
	r = serve_init(&s, e);
	while (r == 0) {
		struct pollfd fds[] = {
			{ .fd = HELPER_SOCKET, .events = POLLRDHUP },
			{ .fd = s.taken[0], .events = POLLIN },
		};

		if (!s.waiting && start_process(&s, &why) < 0)
			refuse_call(&why);
		/* SIGCHLD is delivered only here */
		ppoll(fds, ARRAY_SIZE(fds), s.waiting ? NULL : &(struct timespec){ 0 }, &none);
		if (fds[0].revents)
			break;
		receive_taken(&s);
		reap_processes(&s);
	}
	free(s.calls);
	return r;
}
