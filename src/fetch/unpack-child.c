/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/unpack-child.c - starts an unpacker and reads its result
 */
#include "fetch/unpack-child.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "fetch/codec/sha256.h"
#include "fetch/unpacker.h"

#define PIPE_SIZE (1 << 20)
#define MEMORY	  ((size_t)64 << 20) /* limit in bytes; unpacking needs less than 16 MiB */

/* descriptors of the child */
enum { FD_ARCHIVE = HELPER_KEPT, FD_ROOT, FD_RECIPE };

/* ---- in the child ---------------------------------------------------------- */

struct unpack_task {
	const struct fetch_job *job;
	const struct job_layer *layer;
	size_t i;
};

static int send_layer(const struct unpack_task *t, const struct unpacked *unpacked,
		      struct hw_err *e)
{
	autofree char *json = unpacked_encode(unpacked);
	const struct job_step step = { .layer = (int)t->i, .unpacked = json };

	return job_send_table(HELPER_SOCKET, JOB_LAYER, job_step_fields, &step, -1, t->job->idle_ms,
			      e);
}

/* Return: exit status of the process */
static int run_unpacker(void *arg)
{
	const struct unpack_task *t = arg;
	AUTO(unpacked_done) struct unpacked result = { 0 };
	struct unpacker p = {
		.archive = FD_ARCHIVE,
		.chunk = UNPACKER_CHUNK,
		.idle_ms = 0, /* no timeout: the fetcher has one, and reports a better error */
		.open = t->job->unconfined,
		.diff_id = t->layer->diff_id,
		.unpack = { .root = FD_ROOT,
			    .recipe = FD_RECIPE,
			    .bytes = t->job->layer_bytes_max,
			    .entries = t->job->layer_entries_max,
			    .reserve = t->job->reserve },
	};
	struct hw_err e, ignored;

	if (helper_limit_memory(MEMORY, &e) == 0 && unpacker_run(&p, &result, &e) == 0 &&
	    send_layer(t, &result, &e) == 0)
		return 0;
	job_send_failed(HELPER_SOCKET, &e, t->job->idle_ms, &ignored);
	return 1;
}

/* ---- in the supervisor ------------------------------------------------------ */

int unpack_child_start(const struct fetch_job *job, const struct job_layer *layer, size_t i,
		       struct helper **ret_unpacker, int *ret_archive, struct hw_err *e)
{
	struct unpack_task task = { job, layer, i };
	autoclose int archive = -1, root = -1, recipe = -1, write_end = -1;
	int pair[2], r;

	/* OpenSSL reads its configuration file here, instead of in each unpacker */
	sha256_free(sha256_new());
	if (pipe2(pair, O_CLOEXEC) < 0)
		return err_set(e, -errno, "create a pipe");
	archive = pair[0];
	write_end = pair[1];
	fcntl(write_end, F_SETPIPE_SZ, PIPE_SIZE); /* for speed only: failure is ignored */
	root = open(layer->root, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (root < 0)
		return err_set(e, -errno, "open %s", layer->root);
	recipe = open(str_or(layer->recipe, ""),
		      O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (recipe < 0)
		return err_set(e, -errno, "create %s", str_or(layer->recipe, "the recipe"));
	const int keep[] = { archive, root, recipe };
	r = helper_fork(run_unpacker, &task, keep, ARRAY_SIZE(keep), ret_unpacker, e);
	if (r < 0)
		return r;
	*ret_archive = take_fd(write_end);
	return 0;
}

int unpack_child_read(const struct helper *unpacker, const struct fetch_job *job,
		      struct unpacked *ret_unpacked, struct hw_err *e)
{
	AUTO(job_message_done) struct job_message m = { .fd = -1 };
	AUTO(job_step_done) struct job_step step = { 0 };
	const char *json;
	int r;

	r = job_receive(helper_socket(unpacker), job->idle_ms, &m, e);
	if (r == 0)
		return err_text(e, -EIO, "unpacker exited unexpectedly");
	if (r < 0)
		return err_ctx(e, "result of the unpacker");
	if (m.type == JOB_FAILED)
		return job_decode_failed(&m, e);
	if (m.type != JOB_LAYER)
		return err_text(e, -EBADMSG, "unpacker: unexpected message of type %d", m.type);
	r = job_decode(&m, job_step_fields, &step, e);
	json = str_or(step.unpacked, "");
	if (r == 0)
		r = unpacked_decode(json, strlen(json), ret_unpacked, e);
	if (r == 0)
		return 0;
	return err_ctx(e, "result of the unpacker");
}
