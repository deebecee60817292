/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci/run/monitor-create.c - the creation of a container by conmon
 *
 * How:   conmon (2.1) forks; its first process writes conmon.pid and exits, and the second one runs `crun
 *        create` and then writes a line of JSON to the pipe that _OCI_SYNCPIPE names: {"data": PID}, or
 *        {"data": -1, "message": "text of crun"}.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/os/child.h"
#include "base/os/file.h"
#include "base/str.h"
#include "base/time.h"
#include "oci/run/grace.h"
#include "oci/run/monitor-internal.h"

#define SYNC_MAX   (64 << 10) /* bytes of conmon's line */
#define CLEANUP_MS 10000
/* The descriptors that conmon inherits get these numbers in conmon. In this process they must be
 * FD_MIN or higher. */
enum { LOCK_NUMBER = CHILD_FD_MIN, SYNC_NUMBER, FD_MIN };

struct creation {
	const struct monitor_create *c;
	int dir;
	int lock, sync_write; /* inherited by conmon; -1 when it has them */
	int keep[2];	      /* the same */
	int sync_read, null, errors;
	struct hw_strings argv;
	char sync_env[32];
	const char *env[3];
	struct child_start start;
	struct child *child; /* conmon's first process; NULL when it has exited */
	struct buf line;
};

static void creation_done(struct creation *n)
{
	struct hw_err ignored;
	int status;

	if (n->child) {
		child_kill(n->child);
		child_wait(n->child, &status, &ignored);
	}
	mem_close_fd(&n->lock);
	mem_close_fd(&n->sync_write);
	mem_close_fd(&n->sync_read);
	mem_close_fd(&n->null);
	mem_close_fd(&n->errors);
	mem_close_fd(&n->dir);
	hw_strings_free(&n->argv);
	buf_done(&n->line);
}
AUTO_VALUE_DEFINE(creation_done, struct creation);

/* Moves a descriptor so high that it is not overwritten while others get their numbers in conmon. */
static int move_up(int *fd)
{
	int up = fcntl(*fd, F_DUPFD_CLOEXEC, FD_MIN);

	mem_close_fd(fd);
	*fd = up;
	return up;
}

static int open_descriptors(struct creation *n, struct hw_err *e)
{
	struct flock shared = { .l_type = F_RDLCK, .l_whence = SEEK_SET };
	int fds[2], r;

	r = monitor_open_bundle(n->c->bundle, &n->dir, e);
	if (r < 0)
		return r;
	n->lock = openat(n->dir, "lock", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (n->lock < 0 || fcntl(n->lock, F_OFD_SETLK, &shared) < 0)
		return err_set(e, -errno, "lock %s", n->c->bundle);
	if (pipe2(fds, O_CLOEXEC) < 0)
		return err_set(e, -errno, "create a pipe");
	n->sync_read = fds[0];
	n->sync_write = fds[1];
	n->null = open("/dev/null", O_RDWR | O_CLOEXEC);
	n->errors = memfd_create("conmon-errors", MFD_CLOEXEC);
	if (n->null < 0 || n->errors < 0 || move_up(&n->lock) < 0 || move_up(&n->sync_write) < 0 ||
	    move_up(&n->null) < 0 || move_up(&n->errors) < 0 ||
	    fcntl(n->sync_read, F_SETFL, O_NONBLOCK) < 0)
		return err_set(e, -errno, "open descriptors for conmon");
	return 0;
}

static void add_words(struct hw_strings *argv, const char *option, const char *value)
{
	strings_add(argv, option);
	if (value)
		strings_add(argv, value);
}

static void add_path(struct hw_strings *argv, const char *option, const char *directory,
		     const char *name)
{
	autofree char *path = str_printf("%s/%s", directory, name);

	add_words(argv, option, path);
}

static void add_arguments(struct creation *n)
{
	AUTO(hw_strings_free) struct hw_strings options = { 0 };
	const struct monitor_create *c = n->c;
	struct hw_strings *argv = &n->argv;
	autofree char *log = c->log ? str_printf("k8s-file:%s", c->log) : str_copy("none");

	add_words(argv, c->program, NULL);
	add_words(argv, "--api-version", "1");
	add_words(argv, "--cid", c->id);
	add_words(argv, "--cuuid", c->id);
	add_words(argv, "--name", c->id);
	add_words(argv, "--runtime", c->runtime->program);
	runtime_add_options(c->runtime, &options);
	for (size_t i = 0; i < options.n; i++) {
		autofree char *word = str_printf("--runtime-arg=%s", options.v[i]);

		strings_add(argv, word);
	}
	add_words(argv, "--bundle", c->bundle);
	add_path(argv, "--container-pidfile", c->bundle, "pidfile");
	add_path(argv, "--conmon-pidfile", c->bundle, "conmon.pid");
	add_words(argv, "--persist-dir", c->bundle);
	add_words(argv, "--exit-dir", c->exits);
	add_words(argv, "--log-path", log);
	add_words(argv, "--log-level", "error");
	/* else the exit code is written after fsync() of the log, which may take longer than conmon has */
	add_words(argv, "--no-sync-log", NULL);
	add_words(argv, "--full-attach", NULL);
	if (c->terminal)
		add_words(argv, "--terminal", NULL);
	if (c->open_stdin || c->user_namespace)
		add_words(argv, "--stdin", NULL);
	if (c->open_stdin && !c->stdin_once)
		add_words(argv, "--leave-stdin-open", NULL);
	argv->v = mem_resize(argv->v, argv->n + 1, sizeof(*argv->v));
	argv->v[argv->n] = NULL;
}

static int start_conmon(struct creation *n, struct hw_err *e)
{
	add_arguments(n);
	n->keep[0] = n->lock;
	n->keep[1] = n->sync_write;
	snprintf(n->sync_env, sizeof(n->sync_env), "_OCI_SYNCPIPE=%d", SYNC_NUMBER);
	n->env[0] = runtime_env[0];
	n->env[1] = n->sync_env;
	n->start = (struct child_start){
		.path = n->c->program,
		.argv = (const char *const *)n->argv.v,
		.env = n->env,
		.dir = n->c->bundle, /* it creates the file oom in its working directory, too */
		.in = n->null,
		.out = n->null,
		.err = n->errors,
		.keep = n->keep,
		.n_keep = ARRAY_SIZE(n->keep),
	};
	return child_start(&n->start, &n->child, e);
}

/* What conmon printed before it started to serve. */
static int conmon_error(struct creation *n, const char *what, struct hw_err *e)
{
	AUTO(buf_done) struct buf printed = { 0 };
	autofree char *text = NULL;
	struct hw_err ignored;

	if (lseek(n->errors, 0, SEEK_SET) == 0)
		file_read_fd(n->errors, SYNC_MAX, &printed, &ignored);
	text = runtime_error_text(printed.data);
	return err_text(e, -EIO, "%s%s%s", what, *text ? ": " : "", text);
}

/* conmon's first process has exited: the second one, if there is one, has inherited everything. */
static int first_process_exited(struct creation *n, struct hw_err *e)
{
	int r, status;

	r = child_wait(take_ptr(n->child), &status, e);
	mem_close_fd(&n->lock);
	mem_close_fd(&n->sync_write);
	if (r == 0 && status != 0) {
		char text[64];

		return conmon_error(n, proc_status_format(status, text, sizeof(text)), e);
	}
	return r;
}

/* Return: 1 when the line is complete, 0 to continue, or a negative errno */
static int read_sync(struct creation *n, struct hw_err *e)
{
	ssize_t got;

	got = read(n->sync_read, buf_reserve(&n->line, 4096), 4096);
	if (got < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : err_set(e, -errno, "read");
	if (got == 0)
		return conmon_error(n, "exited unexpectedly", e);
	buf_commit(&n->line, (size_t)got);
	if (n->line.len > SYNC_MAX)
		return err_text(e, -EBADMSG, "answer is too large");
	return n->line.data[n->line.len - 1] == '\n';
}

/* Waits for the line, and for the exit of the first process: it writes conmon.pid. */
static int wait_for_line(struct creation *n, struct hw_err *e)
{
	bool complete = false;
	int r;

	while (!complete || n->child) {
		struct pollfd fds[] = {
			{ .fd = complete ? -1 : n->sync_read, .events = POLLIN },
			{ .fd = n->child ? child_fd(n->child) : -1, .events = POLLIN },
			{ .fd = n->c->cancel_fd, .events = POLLIN },
		};

		r = poll(fds, ARRAY_SIZE(fds), time_left_ms(n->c->deadline));
		if (r < 0 && errno != EINTR)
			return err_set(e, -errno, "wait");
		if (r <= 0 && time_has_passed(n->c->deadline))
			return err_text(e, -ETIMEDOUT, "timed out, killed");
		if (r <= 0)
			continue;
		r = 0;
		if (fds[2].revents)
			return err_text(e, -ECANCELED, "cancelled, killed");
		if (fds[1].revents)
			r = first_process_exited(n, e);
		if (r == 0 && fds[0].revents)
			r = read_sync(n, e);
		if (r < 0)
			return r;
		complete |= r > 0;
	}
	return 0;
}

struct answer {
	int pid;
	char *message;
};

static const struct hw_field answer_fields[] = {
	{ "data", HW_INT, HW_AT(struct answer, pid) },
	{ "message", HW_STRING, HW_AT(struct answer, message) },
	{ 0 },
};

static int parse_answer(const struct creation *n, struct hw_err *e)
{
	struct answer answer;
	int r;

	r = hw_field_decode(answer_fields, n->line.data, n->line.len, &answer, e);
	if (r < 0)
		return err_replace(e, -EINVAL, -EBADMSG);
	if (answer.pid <= 0) {
		autofree char *text = runtime_error_text(answer.message);

		r = err_text(e, runtime_error_code(text), "%s create: %s", n->c->runtime->program,
			     *text ? text : "failed");
	}
	hw_field_clear(answer_fields, &answer);
	return r;
}

/* conmon closes standard input of the container when the first client has closed it. */
static int end_stdin(const struct creation *n, struct hw_err *e)
{
	int fd, r;

	r = monitor_attach(n->c->bundle, &fd, e);
	if (r == 0)
		close(fd);
	return r;
}

static int run_creation(struct creation *n, struct monitor *ret, struct hw_err *e)
{
	int r;

	r = start_conmon(n, e);
	if (r == 0)
		r = wait_for_line(n, e);
	if (r < 0)
		return err_ctx(e, "%s", n->c->program);
	r = parse_answer(n, e);
	if (r < 0)
		return r;
	r = monitor_find(n->dir, ret, e);
	if (r == 0)
		return err_text(e, -EIO, "%s ended unexpectedly", n->c->program);
	if (r > 0 && n->c->user_namespace && !n->c->open_stdin)
		r = end_stdin(n, e);
	return r < 0 ? r : 0;
}

/* conmon has created the log file, and nothing was written to it. */
static void remove_empty_log(const char *log)
{
	struct stat st;

	if (log && stat(log, &st) == 0 && S_ISREG(st.st_mode) && st.st_size == 0)
		unlink(log);
}

static void clean_up(const struct monitor_create *c, struct hw_err *e)
{
	int64_t deadline = time_deadline(CLEANUP_MS);
	struct hw_err undo;

	if (monitor_end(c->bundle, deadline, &undo) < 0 ||
	    runtime_delete(c->runtime, c->id, deadline, &undo) < 0)
		err_text(e, e->code, "%.900s; and then: %.900s", e->msg, undo.msg);
	remove_empty_log(c->log);
}

int monitor_create(const struct monitor_create *c, struct monitor *ret, struct hw_err *e)
{
	struct creation n = { .c = c,
			      .dir = -1,
			      .lock = -1,
			      .sync_write = -1,
			      .sync_read = -1,
			      .null = -1,
			      .errors = -1 };
	AUTO(grace_end) struct grace grace = { 0 };
	int r;

	if (c->fs)
		grace_start(&grace, c->fs);
	r = open_descriptors(&n, e);
	if (r == 0)
		r = run_creation(&n, ret, e);
	creation_done(&n); /* before the clean-up: this process must not hold the lock */
	if (r < 0)
		clean_up(c, e);
	return r;
}
