/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/unpack-child.c - a process that unpacks one layer, seen from outside
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

#define PIPE_SIZE     (1 << 20)
#define READ_SIZE     (64 << 10)
#define SAID_UNPACKED 'u'
#define SAID_FAILED   'f'

/* The child's descriptors, from here on; beyond them all are closed. */
enum { FD_ARCHIVE = 3, FD_ANSWER, FD_ROOT, FD_RECIPE, FD_END };

/** unpack_child_init() - not started */
void unpack_child_init(struct unpack_child *c)
{
	*c = (struct unpack_child){ .answer = -1 };
}

/** unpack_child_done() - end it, whatever it does */
void unpack_child_done(struct unpack_child *c)
{
	if (c->pid > 0) {
		kill(c->pid, SIGKILL);
		while (waitpid(c->pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	mem_close_fd(&c->answer);
	buf_done(&c->said);
	unpack_child_init(c);
}

/* ---- in the child ---------------------------------------------------------- */

static bool take_descriptors(const int from[FD_END - FD_ARCHIVE])
{
	int high[FD_END - FD_ARCHIVE];
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	bool taken = true;

	for (int i = 0; i < FD_END - FD_ARCHIVE; i++)
		high[i] = fcntl(from[i], F_DUPFD_CLOEXEC, FD_END);
	for (int i = 0; i < FD_END - FD_ARCHIVE; i++)
		taken = taken && dup2(high[i], FD_ARCHIVE + i) >= 0;
	return taken && dup2(null, STDIN_FILENO) >= 0 && dup2(null, STDOUT_FILENO) >= 0 &&
	       close_range(FD_END, ~0U, 0) == 0;
}

static int answer(char what, const char *json)
{
	AUTO(buf_done) struct buf b = { 0 };
	struct hw_err ignored;

	buf_putc(&b, what);
	buf_puts(&b, json);
	return file_write_fd(FD_ANSWER, b.data, b.len, &ignored) < 0;
}

static int unpack(const struct job *job, const struct job_layer *layer)
{
	AUTO(unpacked_done) struct unpacked result = { 0 };
	struct unpacker p = {
		.archive = FD_ARCHIVE,
		.chunk = UNPACKER_CHUNK,
		.idle_ms = 0, /* whoever fetches has a limit, and says what is wrong */
		.open = job->keep_open,
		.diff_id = layer->diff_id,
		.unpack = { .root = FD_ROOT,
			    .recipe = FD_RECIPE,
			    .bytes = job->bytes,
			    .entries = job->entries,
			    .reserve = job->reserve },
	};
	autofree char *json = NULL;
	struct hw_err e;

	if (unpacker_run(&p, &result, &e) == 0) {
		json = unpacked_encode(&result);
		return answer(SAID_UNPACKED, json);
	}
	json = hw_field_encode(job_failed_fields, &(struct job_failed){ -e.code, 13, e.msg }, 0);
	answer(SAID_FAILED, json);
	return 1;
}

/* ---- from outside ---------------------------------------------------------- */

struct ends {
	int archive[2], answer[2], root, recipe;
};

static void ends_done(struct ends *s)
{
	mem_close_fd(&s->archive[0]);
	mem_close_fd(&s->archive[1]);
	mem_close_fd(&s->answer[0]);
	mem_close_fd(&s->answer[1]);
	mem_close_fd(&s->root);
	mem_close_fd(&s->recipe);
}
AUTO_VALUE_DEFINE(ends_done, struct ends);

static int ends_open(struct ends *s, const struct job_layer *layer, struct hw_err *e)
{
	if (pipe2(s->archive, O_CLOEXEC) < 0 || pipe2(s->answer, O_CLOEXEC) < 0)
		return err_set(e, -errno, "make a pipe");
	fcntl(s->archive[1], F_SETPIPE_SZ, PIPE_SIZE); /* faster, where it is allowed */
	s->root = open(layer->root, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (s->root < 0)
		return err_set(e, -errno, "open %s", layer->root);
	s->recipe = open(str_or(layer->recipe, ""),
			 O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (s->recipe < 0)
		return err_set(e, -errno, "make %s", str_or(layer->recipe, "the recipe"));
	return 0;
}

/**
 * unpack_child_start() - start it
 *
 * Return: 0, or negative errno
 */
int unpack_child_start(struct unpack_child *c, const struct job *job, const struct job_layer *layer,
		       int *ret_archive, struct hw_err *e)
{
	AUTO(ends_done) struct ends s = { { -1, -1 }, { -1, -1 }, -1, -1 };
	int r = ends_open(&s, layer, e);

	if (r < 0)
		return r;
	c->pid = fork();
	if (c->pid < 0)
		return err_set(e, -errno, "fork");
	if (c->pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
		const int mine[] = { s.archive[0], s.answer[1], s.root, s.recipe };

		_exit(take_descriptors(mine) ? unpack(job, layer) : EXIT_FAILURE);
	}
	fcntl(s.answer[0], F_SETFL, O_NONBLOCK);
	c->answer = take_fd(s.answer[0]);
	*ret_archive = take_fd(s.archive[1]);
	return 0;
}

static int decode(const struct unpack_child *c, struct unpacked *ret_unpacked, struct hw_err *e)
{
	struct job_message m = { .fd = -1 };

	if (c->said.len == 0)
		return err_text(e, -EIO, "the process that unpacks it has died");
	m.data = (struct buf){ .data = c->said.data + 1, .len = c->said.len - 1 };
	if (c->said.data[0] == SAID_FAILED) {
		int r = job_decode_failed(&m, e);

		e->domain = HW_DOMAIN_NONE; /* what it means is seen from errno */
		return r;
	}
	if (unpacked_decode(m.data.data, m.data.len, ret_unpacked, e) < 0)
		return err_ctx(e, "what the process that unpacks it says");
	return 1;
}

/** unpack_child_read() - take what it says */
int unpack_child_read(struct unpack_child *c, struct unpacked *ret_unpacked, struct hw_err *e)
{
	ssize_t n = read(c->answer, buf_reserve(&c->said, READ_SIZE), READ_SIZE);
	int r;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n < 0)
		return err_set(e, -errno, "read from the process that unpacks");
	buf_added(&c->said, (size_t)n);
	if (c->said.len > JOB_MESSAGE_MAX)
		return err_text(e, -EFBIG, "the process that unpacks says too much");
	if (n > 0)
		return 0;
	r = decode(c, ret_unpacked, e);
	unpack_child_done(c);
	return r;
}
