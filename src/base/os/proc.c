/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/os/proc.c - run a program and wait for it, within bounds
 *
 * How:   standard input is a memory file that holds all of the input, so it
 *        can neither block us nor raise SIGPIPE. The two outputs are pipes, read
 *        until the program ends; what is in them at that moment is still read,
 *        and what a grandchild may write later is not waited for.
 *
 *	what happens while it runs	what is done		outcome
 *	it ends				read the rest		0, its status
 *	the deadline passes		kill the group, wait	-ETIMEDOUT
 *	cancel_fd is readable		kill the group, wait	-ECANCELED
 *	too much on an output		kill the group, wait	-EFBIG
 *
 * Not:   whose child it is, and how its status reaches us: child.c.
 */
#include "base/os/proc.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/os/child.h"
#include "base/os/file.h"
#include "base/time.h"

#define PROC_READ_STEP (16 << 10)

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U /* Linux 6.3 */
#endif

/* One of the two outputs. */
struct sink {
	const char *name;
	int read_fd, write_fd;
	struct buf buf;
};

/* The program's ends of the pipes stay open here until it has ended: child.h wants them to last,
 * and the end of the output is not what we wait for. */
struct run {
	const struct proc *p;
	const char *argv[2];
	size_t max;
	int input_fd;
	struct sink output, errors;
	struct child_start start;
	struct child *child;
};

static void sink_done(struct sink *sink)
{
	mem_close_fd(&sink->read_fd);
	mem_close_fd(&sink->write_fd);
	buf_done(&sink->buf);
}

static void run_done(struct run *run)
{
	mem_close_fd(&run->input_fd);
	sink_done(&run->output);
	sink_done(&run->errors);
}
AUTO_VALUE_DEFINE(run_done, struct run);

/* A host that has closed its standard descriptors gets low numbers for new ones. */
static int fd_move_up(int *fd)
{
	int up;

	if (*fd < 0 || *fd >= CHILD_FD_MIN)
		return *fd;
	up = fcntl(*fd, F_DUPFD_CLOEXEC, CHILD_FD_MIN);
	mem_close_fd(fd);
	*fd = up;
	return up;
}

static int input_open(const struct proc *p, int *ret_fd, struct hw_err *e)
{
	autoclose int fd = memfd_create("input", MFD_CLOEXEC | MFD_NOEXEC_SEAL);
	int r = 0;

	if (fd < 0 && errno == EINVAL)
		fd = memfd_create("input", MFD_CLOEXEC);
	if (fd_move_up(&fd) < 0)
		return err_set(e, -errno, "make the input of %s", p->path);
	if (p->input_len > 0)
		r = file_write_fd(fd, p->input, p->input_len, e);
	if (r < 0)
		return err_ctx(e, "make the input of %s", p->path);
	lseek(fd, 0, SEEK_SET);
	*ret_fd = take_fd(fd);
	return 0;
}

/* Only our end is non-blocking: the program would notice. */
static int sink_open(struct sink *sink, struct hw_err *e)
{
	int fds[2];

	if (pipe2(fds, O_CLOEXEC) < 0)
		return err_set(e, -errno, "make a pipe");
	sink->read_fd = fds[0];
	sink->write_fd = fds[1];
	if (fcntl(sink->read_fd, F_SETFL, O_NONBLOCK) < 0 || fd_move_up(&sink->write_fd) < 0)
		return err_set(e, -errno, "make a pipe");
	return 0;
}

/* At most @len bytes. Return: how many were there, or a negative errno. */
static int sink_read(struct sink *sink, size_t len, const struct run *run, struct hw_err *e)
{
	ssize_t n = read(sink->read_fd, buf_reserve(&sink->buf, len), len);

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return 0;
	if (n < 0)
		return err_set(e, -errno, "read the %s of %s", sink->name, run->p->path);
	buf_added(&sink->buf, (size_t)n);
	if (sink->buf.len > run->max)
		return err_text(e, -EFBIG, "%s wrote more than %zu bytes to its %s", run->p->path,
				run->max, sink->name);
	return (int)n;
}

/* What the program left in the pipe; what comes after that is a grandchild's. */
static int sink_drain(struct sink *sink, const struct run *run, struct hw_err *e)
{
	int left = 0, r;

	if (sink->read_fd < 0 || ioctl(sink->read_fd, FIONREAD, &left) < 0)
		return 0;
	for (; left > 0; left -= r) {
		r = sink_read(sink, (size_t)left, run, e);
		if (r <= 0)
			return r;
	}
	return 0;
}

enum { AT_END, AT_OUTPUT, AT_ERRORS, AT_CANCEL, AT_COUNT };

/* Return: 1 when the program has ended, 0 to go on, negative to kill it. */
static int run_step(struct run *run, struct hw_err *e)
{
	struct pollfd fds[AT_COUNT] = {
		[AT_END] = { .fd = child_fd(run->child), .events = POLLIN },
		[AT_OUTPUT] = { .fd = run->output.read_fd, .events = POLLIN },
		[AT_ERRORS] = { .fd = run->errors.read_fd, .events = POLLIN },
		[AT_CANCEL] = { .fd = run->p->cancel_fd, .events = POLLIN },
	};
	int r = poll(fds, AT_COUNT, time_left_ms(run->p->deadline));

	if (r < 0)
		return errno == EINTR ? 0 : err_set(e, -errno, "wait for %s", run->p->path);
	if (fds[AT_END].revents)
		return 1;
	if (fds[AT_CANCEL].revents)
		return err_text(e, -ECANCELED, "%s was killed: cancelled", run->p->path);
	if (time_is_over(run->p->deadline))
		return err_text(e, -ETIMEDOUT, "%s was killed: it did not end in the time allowed",
				run->p->path);
	if (fds[AT_OUTPUT].revents)
		r = sink_read(&run->output, PROC_READ_STEP, run, e);
	if (r >= 0 && fds[AT_ERRORS].revents)
		r = sink_read(&run->errors, PROC_READ_STEP, run, e);
	return r < 0 ? r : 0;
}

/* Until the program has ended by itself or was killed. */
static int run_until_end(struct run *run, int *ret_status, struct hw_err *e)
{
	struct hw_err ignored;
	int r = 0;

	while (r == 0)
		r = run_step(run, e);
	if (r < 0) {
		child_kill(run->child);
		child_wait(run->child, ret_status, &ignored);
		return r;
	}
	r = child_wait(run->child, ret_status, e);
	if (r == 0)
		r = sink_drain(&run->output, run, e);
	if (r == 0)
		r = sink_drain(&run->errors, run, e);
	return r;
}

/* Nothing is started after the deadline or when it is already cancelled. */
static int run_may_start(const struct proc *p, struct hw_err *e)
{
	struct pollfd cancel = { .fd = p->cancel_fd, .events = POLLIN };

	if (time_is_over(p->deadline))
		return err_text(e, -ETIMEDOUT, "%s was not started: the time allowed is over",
				p->path);
	if (p->cancel_fd >= 0 && poll(&cancel, 1, 0) > 0)
		return err_text(e, -ECANCELED, "%s was not started: cancelled", p->path);
	return 0;
}

static int run_start(struct run *run, struct hw_err *e)
{
	const struct proc *p = run->p;
	int r = input_open(p, &run->input_fd, e);

	if (r == 0)
		r = sink_open(&run->output, e);
	if (r == 0 && !p->stderr_through)
		r = sink_open(&run->errors, e);
	if (r < 0)
		return r;
	run->start = (struct child_start){
		.path = p->path,
		.argv = p->argv ? p->argv : run->argv,
		.env = p->env,
		.in = run->input_fd,
		.out = run->output.write_fd,
		.err = p->stderr_through ? STDERR_FILENO : run->errors.write_fd,
		.stay = p->stay,
	};
	return child_start(&run->start, &run->child, e);
}

/**
 * proc_run() - run a program to its end
 * @ret: overwritten, on success only; end it with proc_result_done()
 */
int proc_run(const struct proc *p, struct proc_result *ret, struct hw_err *e)
{
	AUTO(run_done)
	struct run run = {
		.p = p,
		.argv = { p->path, NULL },
		.max = p->output_max ? p->output_max : PROC_OUTPUT_MAX,
		.input_fd = -1,
		.output = { .name = "standard output", .read_fd = -1, .write_fd = -1 },
		.errors = { .name = "standard error", .read_fd = -1, .write_fd = -1 },
	};
	int status, r = run_may_start(p, e);

	if (r == 0)
		r = run_start(&run, e);
	if (r == 0)
		r = run_until_end(&run, &status, e);
	if (r < 0)
		return r;
	*ret = (struct proc_result){ status, run.output.buf, run.errors.buf };
	run.output.buf = run.errors.buf = (struct buf){ 0 };
	return 0;
}

void proc_result_done(struct proc_result *r)
{
	buf_done(&r->output);
	buf_done(&r->errors);
}

/**
 * proc_status_format() - an exit status in Go's words
 *
 * Return: @buf with "exit status 1", "signal: killed" or
 * "signal: segmentation fault (core dumped)"
 */
const char *proc_status_format(int status, char *buf, size_t size)
{
	const char *name;

	if (!WIFSIGNALED(status)) {
		snprintf(buf, size, "exit status %d", WEXITSTATUS(status));
		return buf;
	}
	name = sigdescr_np(WTERMSIG(status));
	if (name)
		snprintf(buf, size, "signal: %s", name);
	else
		snprintf(buf, size, "signal: signal %d", WTERMSIG(status));
	for (char *c = buf; *c; c++)
		*c = (char)tolower((unsigned char)*c);
	if (WCOREDUMP(status))
		snprintf(buf + strlen(buf), size - strlen(buf), " (core dumped)");
	return buf;
}
