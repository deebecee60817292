/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/unpack-child.c - starts an unpacker and reads its result
 */
#include "fetch/unpack-child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/os/file.h"
#include "base/str.h"
#include "fetch/unpacker.h"

#define PIPE_SIZE	(1 << 20)
#define READ_SIZE	(64 << 10)
#define RESULT_UNPACKED 'u'
#define RESULT_FAILED	'f'

/* Descriptors of the child besides 0 to 2; all others are closed. */
enum { FD_ARCHIVE = 3, FD_RESULT, FD_ROOT, FD_RECIPE, FD_END };

void unpack_child_init(struct unpack_child *c)
{
	*c = (struct unpack_child){ .result = -1 };
}

void unpack_child_done(struct unpack_child *c)
{
	if (c->pid > 0) {
		kill(c->pid, SIGKILL);
		while (waitpid(c->pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	mem_close_fd(&c->result);
	buf_done(&c->received);
	unpack_child_init(c);
}

/* ---- in the child ---------------------------------------------------------- */

static bool move_descriptors(const int from[FD_END - FD_ARCHIVE])
{
	int high[FD_END - FD_ARCHIVE];
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	bool ok = true;

	for (int i = 0; i < FD_END - FD_ARCHIVE; i++)
		high[i] = fcntl(from[i], F_DUPFD_CLOEXEC, FD_END);
	for (int i = 0; i < FD_END - FD_ARCHIVE; i++)
		ok = ok && dup2(high[i], FD_ARCHIVE + i) >= 0;
	return ok && dup2(null, STDIN_FILENO) >= 0 && dup2(null, STDOUT_FILENO) >= 0 &&
	       close_range(FD_END, ~0U, 0) == 0;
}

static int send_result(char type, const char *json)
{
	AUTO(buf_done) struct buf b = { 0 };
	struct hw_err ignored;

	buf_putc(&b, type);
	buf_puts(&b, json);
	return file_write_fd(FD_RESULT, b.data, b.len, &ignored) < 0;
}

/* Return: exit status of the process */
static int run_unpacker(const struct fetch_job *job, const struct job_layer *layer)
{
	AUTO(unpacked_done) struct unpacked result = { 0 };
	struct unpacker p = {
		.archive = FD_ARCHIVE,
		.chunk = UNPACKER_CHUNK,
		.idle_ms = 0, /* no timeout: the fetcher has one, and reports a better error */
		.open = job->unconfined,
		.diff_id = layer->diff_id,
		.unpack = { .root = FD_ROOT,
			    .recipe = FD_RECIPE,
			    .bytes = job->layer_bytes_max,
			    .entries = job->layer_entries_max,
			    .reserve = job->reserve },
	};
	autofree char *json = NULL;
	struct hw_err e;

	if (unpacker_run(&p, &result, &e) == 0) {
		json = unpacked_encode(&result);
		return send_result(RESULT_UNPACKED, json);
	}
	json = hw_field_encode(job_failed_fields, &(struct job_failed){ -e.code, e.msg }, 0);
	send_result(RESULT_FAILED, json);
	return 1;
}

/* ---- in the supervisor ------------------------------------------------------ */

struct child_fds {
	int archive[2], result[2], root, recipe;
};

static void child_fds_done(struct child_fds *f)
{
	mem_close_fd(&f->archive[0]);
	mem_close_fd(&f->archive[1]);
	mem_close_fd(&f->result[0]);
	mem_close_fd(&f->result[1]);
	mem_close_fd(&f->root);
	mem_close_fd(&f->recipe);
}
AUTO_VALUE_DEFINE(child_fds_done, struct child_fds);

int unpack_child_start(struct unpack_child *c, const struct fetch_job *job,
		       const struct job_layer *layer, int *ret_archive, struct hw_err *e)
{
	AUTO(child_fds_done) struct child_fds f = { { -1, -1 }, { -1, -1 }, -1, -1 };

	if (pipe2(f.archive, O_CLOEXEC) < 0 || pipe2(f.result, O_CLOEXEC) < 0)
		return err_set(e, -errno, "create a pipe");
	fcntl(f.archive[1], F_SETPIPE_SZ, PIPE_SIZE); /* for speed only: failure is ignored */
	f.root = open(layer->root, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (f.root < 0)
		return err_set(e, -errno, "open %s", layer->root);
	f.recipe = open(str_or(layer->recipe, ""),
			O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (f.recipe < 0)
		return err_set(e, -errno, "create %s", str_or(layer->recipe, "the recipe"));
	c->pid = fork();
	if (c->pid < 0)
		return err_set(e, -errno, "fork");
	if (c->pid == 0) {
		const int kept[] = { f.archive[0], f.result[1], f.root, f.recipe };

		prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
		_exit(move_descriptors(kept) ? run_unpacker(job, layer) : EXIT_FAILURE);
	}
	fcntl(f.result[0], F_SETFL, O_NONBLOCK);
	c->result = take_fd(f.result[0]);
	*ret_archive = take_fd(f.archive[1]);
	return 0;
}

static int decode_result(const struct buf *received, struct unpacked *ret_unpacked,
			 struct hw_err *e)
{
	struct job_message m = { .fd = -1 };

	if (received->len == 0)
		return err_text(e, -EIO, "unpacker exited unexpectedly");
	m.data = (struct buf){ .data = received->data + 1, .len = received->len - 1 };
	if (received->data[0] == RESULT_FAILED)
		return job_decode_failed(&m, e);
	if (unpacked_decode(m.data.data, m.data.len, ret_unpacked, e) < 0)
		return err_ctx(e, "result of the unpacker");
	return 1;
}

int unpack_child_read(struct unpack_child *c, struct unpacked *ret_unpacked, struct hw_err *e)
{
	ssize_t n;
	int r;

	n = read(c->result, buf_reserve(&c->received, READ_SIZE), READ_SIZE);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n < 0)
		return err_set(e, -errno, "read from the unpacker");
	buf_commit(&c->received, (size_t)n);
	if (c->received.len > JOB_MESSAGE_MAX)
		return err_text(e, -EFBIG, "result of the unpacker is larger than %d bytes",
				JOB_MESSAGE_MAX);
	if (n > 0)
		return 0;
	r = decode_result(&c->received, ret_unpacked, e);
	unpack_child_done(c);
	return r;
}
