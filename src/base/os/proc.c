/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/os/proc.c - run a program to its end, with bounded time and output
 *
 * How:   standard input is a memory file that contains the whole input, so that
 *        writing it can neither block nor raise SIGPIPE. The two outputs are
 *        pipes, read until the program ends. Then the bytes that are already in
 *        the pipes are read; later output of a grandchild is not waited for.
 *
 *	event while the program runs	action			result
 *	the program ends		read the rest		0 and its status
 *	the deadline passes		kill the group, wait	-ETIMEDOUT
 *	cancel_fd is readable		kill the group, wait	-ECANCELED
 *	too much output			kill the group, wait	-EFBIG
 *	the same with .drop_excess	drop it, continue
 *	With .stop, that is called before the group is killed.
 *
 * Not:   child.c creates the child and gets its status.
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
#define MFD_NOEXEC_SEAL 0x0008U /* since Linux 6.3 */
#endif

#define FD_MIN (CHILD_FD_MIN + 1) /* one descriptor may be kept */

struct output_pipe {
	const char *name;
	int read_fd, write_fd;
	struct buf buf;
};

/* The program's ends of the pipes stay open in this process until the program has ended: they are
 * borrowed by child_start(). That does no harm, because proc_run() does not wait for EOF. */
struct proc_run {
	const struct proc *p;
	const char *argv[2];
	size_t max;
	int input_fd, lock_fd;
	struct output_pipe output, errors;
	struct child_start start;
	struct child *child;
};

static void output_done(struct output_pipe *out)
{
	mem_close_fd(&out->read_fd);
	mem_close_fd(&out->write_fd);
	buf_done(&out->buf);
}

static void run_done(struct proc_run *run)
{
	mem_close_fd(&run->input_fd);
	mem_close_fd(&run->lock_fd);
	output_done(&run->output);
	output_done(&run->errors);
}
AUTO_VALUE_DEFINE(run_done, struct proc_run);

/* If the calling program has closed its standard descriptors, new descriptors get the numbers 0, 1
 * and 2. Moves such a descriptor to a higher number. Return: the new number, or -1 with errno */
static int move_above_stdio(int *fd)
{
	int up;

	if (*fd < 0 || *fd >= FD_MIN)
		return *fd;
	up = fcntl(*fd, F_DUPFD_CLOEXEC, FD_MIN);
	mem_close_fd(fd);
	*fd = up;
	return up;
}

static int input_open(const struct proc *p, int *ret_fd, struct hw_err *e)
{
	autoclose int fd = -1;
	int r = 0;

	fd = memfd_create("input", MFD_CLOEXEC | MFD_NOEXEC_SEAL);
	if (fd < 0 && errno == EINVAL)
		fd = memfd_create("input", MFD_CLOEXEC);
	if (move_above_stdio(&fd) < 0)
		return err_set(e, -errno, "create the standard input of %s", p->path);
	if (p->input_len > 0)
		r = file_write_fd(fd, p->input, p->input_len, e);
	if (r < 0)
		return err_ctx(e, "create the standard input of %s", p->path);
	lseek(fd, 0, SEEK_SET);
	*ret_fd = take_fd(fd);
	return 0;
}

/* Only the end that is read here is non-blocking: programs expect blocking output. */
static int output_open(struct output_pipe *out, const struct proc *p, struct hw_err *e)
{
	int fds[2];

	if (pipe2(fds, O_CLOEXEC) < 0)
		return err_set(e, -errno, "create a pipe for the %s of %s", out->name, p->path);
	out->read_fd = fds[0];
	out->write_fd = fds[1];
	if (fcntl(out->read_fd, F_SETFL, O_NONBLOCK) < 0 || move_above_stdio(&out->write_fd) < 0)
		return err_set(e, -errno, "create a pipe for the %s of %s", out->name, p->path);
	return 0;
}

/* Reads at most @len bytes. Return: the number of bytes, or a negative errno; -EFBIG if the output
 * exceeds the limit */
static int output_read(struct output_pipe *out, size_t len, const struct proc_run *run,
		       struct hw_err *e)
{
	size_t room = run->max - out->buf.len;
	ssize_t n;

	n = read(out->read_fd, buf_reserve(&out->buf, len), len);
	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return 0;
	if (n < 0)
		return err_set(e, -errno, "read the %s of %s", out->name, run->p->path);
	if ((size_t)n > room && !run->p->drop_excess)
		return err_text(e, -EFBIG, "%s: more than %zu bytes on %s", run->p->path, run->max,
				out->name);
	buf_commit(&out->buf, (size_t)n < room ? (size_t)n : room);
	return (int)n;
}

/* Reads the bytes that are in the pipe after the program has ended. Only a grandchild can write
 * more. */
static int output_drain(struct output_pipe *out, const struct proc_run *run, struct hw_err *e)
{
	int left = 0, r;

	if (out->read_fd < 0 || ioctl(out->read_fd, FIONREAD, &left) < 0)
		return 0;
	for (; left > 0; left -= r) {
		r = output_read(out, (size_t)left, run, e);
		if (r <= 0)
			return r;
	}
	return 0;
}

enum { FDS_END, FDS_OUTPUT, FDS_ERRORS, FDS_CANCEL, FDS_COUNT };

/* Return: 1 if the program has ended, 0 to continue, a negative errno if it must be killed */
static int poll_once(struct proc_run *run, struct hw_err *e)
{
	struct pollfd fds[FDS_COUNT] = {
		[FDS_END] = { .fd = child_fd(run->child), .events = POLLIN },
		[FDS_OUTPUT] = { .fd = run->output.read_fd, .events = POLLIN },
		[FDS_ERRORS] = { .fd = run->errors.read_fd, .events = POLLIN },
		[FDS_CANCEL] = { .fd = run->p->cancel_fd, .events = POLLIN },
	};
	int r;

	r = poll(fds, FDS_COUNT, time_left_ms(run->p->deadline));
	if (r < 0)
		return errno == EINTR ? 0 : err_set(e, -errno, "wait for %s", run->p->path);
	if (fds[FDS_END].revents)
		return 1;
	if (fds[FDS_CANCEL].revents)
		return err_text(e, -ECANCELED, "%s: cancelled, killed", run->p->path);
	if (time_has_passed(run->p->deadline))
		return err_text(e, -ETIMEDOUT, "%s: timed out, killed", run->p->path);
	if (fds[FDS_OUTPUT].revents)
		r = output_read(&run->output, PROC_READ_STEP, run, e);
	if (r >= 0 && fds[FDS_ERRORS].revents)
		r = output_read(&run->errors, PROC_READ_STEP, run, e);
	return r < 0 ? r : 0;
}

static int start_program(struct proc_run *run, struct hw_err *e)
{
	const struct proc *p = run->p;
	struct pollfd cancel = { .fd = p->cancel_fd, .events = POLLIN };
	int r;

	if (time_has_passed(p->deadline))
		return err_text(e, -ETIMEDOUT, "%s: timed out, not started", p->path);
	if (p->cancel_fd >= 0 && poll(&cancel, 1, 0) > 0)
		return err_text(e, -ECANCELED, "%s: cancelled, not started", p->path);
	r = input_open(p, &run->input_fd, e);
	if (r < 0)
		return r;
	r = output_open(&run->output, p, e);
	if (r < 0)
		return r;
	if (!p->stderr_through)
		r = output_open(&run->errors, p, e);
	if (r < 0)
		return r;
	if (p->lock) {
		run->lock_fd = fcntl(p->lock, F_DUPFD_CLOEXEC, FD_MIN);
		if (run->lock_fd < 0)
			return err_set(e, -errno, "copy a descriptor for %s", p->path);
	}
	run->start = (struct child_start){
		.path = p->path,
		.argv = p->argv ? p->argv : run->argv,
		.env = p->env,
		.in = run->input_fd,
		.out = run->output.write_fd,
		.err = p->stderr_through ? STDERR_FILENO : run->errors.write_fd,
		.keep = &run->lock_fd,
		.n_keep = p->lock != 0,
		.stay = p->stay,
		.oom_score = p->oom_score,
	};
	return child_start(&run->start, &run->child, e);
}

static void stop_program(const struct proc_run *run)
{
	struct pollfd end = { .fd = child_fd(run->child), .events = POLLIN };

	if (run->p->stop) {
		run->p->stop(run->p->stop_ctx, run->child);
		poll(&end, 1, PROC_STOP_MS);
	}
	child_kill(run->child);
}

int proc_run(const struct proc *p, struct proc_result *ret, struct hw_err *e)
{
	AUTO(run_done)
	struct proc_run run = {
		.p = p,
		.argv = { p->path, NULL },
		.max = p->output_max ? p->output_max : PROC_OUTPUT_MAX,
		.input_fd = -1,
		.lock_fd = -1,
		.output = { .name = "standard output", .read_fd = -1, .write_fd = -1 },
		.errors = { .name = "standard error", .read_fd = -1, .write_fd = -1 },
	};
	struct hw_err ignored;
	int status, r;

	r = start_program(&run, e);
	if (r < 0)
		return r;
	while (r == 0)
		r = poll_once(&run, e);
	if (r < 0) {
		stop_program(&run);
		child_wait(run.child, &status, &ignored);
		return r;
	}
	r = child_wait(run.child, &status, e);
	if (r < 0)
		return r;
	r = output_drain(&run.output, &run, e);
	if (r < 0)
		return r;
	r = output_drain(&run.errors, &run, e);
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
