/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/supervisor.c - the supervisor: hawser-fetch's first process
 *
 * How:   one loop over poll(). Each layer has a state:
 *
 *	state      meaning                                next state
 *	PENDING    not started                            RUNNING, when fewer than job.parallel run
 *	RUNNING    being fetched and unpacked             READY, when both have succeeded
 *	READY      unpacked                               DONE or REFETCH, when all layers below
 *	                                                  are DONE
 *	REFETCH    not rebuildable: being fetched again   REFETCHED, when it was fetched
 *	           to store its blob
 *	REFETCHED  the blob is stored                     DONE
 *	DONE       reported to the daemon
 *
 * Layers become DONE in order, since implied directories inherit from the layers below (implied.h).
 */
#include "fetch/supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/os/helper.h"
#include "base/str.h"
#include "base/time.h"
#include "confine/confine.h"
#include "fetch/fetcher.h"
#include "fetch/unpack-child.h"
#include "fetch/unpack/implied.h"
#include "image/manifest.h"
#include "image/protocol/job.h"
#include "image/protocol/layer-report.h"

/* how long to wait for the fetcher's error after an unpacker has failed */
#define FETCHER_ERROR_MS 2000

#define MEMORY ((size_t)256 << 20) /* limit in bytes; messages and plans need a few MiB */

enum layer_state { PENDING, RUNNING, READY, REFETCH, REFETCHED, DONE };

struct layer_task {
	const struct job_layer *plan;
	int root; /* file descriptor, since the daemon may rename the directory of a DONE layer */
	enum layer_state state;
	bool fetched, unpacked;
	bool has_blob;		 /* the fetcher has a file to store the blob in */
	struct helper *unpacker; /* NULL: not running */
	struct unpacked result;
};

struct supervisor {
	const struct fetch_job *job;
	int daemon;		/* socket; borrowed */
	struct helper *fetcher; /* NULL: not running */
	char *host;		/* where the image comes from; NULL: not known yet */
	bool has_plan;
	struct job_plan plan;
	struct layer_task *layers;
	size_t n;
	size_t done; /* number of DONE layers; all are below the other layers */
	int running;
	bool pipe_broke; /* a pipe to an unpacker broke; the unpacker will report the reason */
};

static void supervisor_done(struct supervisor *s)
{
	helper_free(s->fetcher);
	for (size_t i = 0; i < s->n; i++) {
		helper_free(s->layers[i].unpacker);
		unpacked_done(&s->layers[i].result);
		mem_close_fd(&s->layers[i].root);
	}
	job_plan_done(&s->plan);
	free(s->layers);
	free(s->host);
}
AUTO_VALUE_DEFINE(supervisor_done, struct supervisor);

/* ---- starting layers ------------------------------------------------------- */

static int add_layer_context(const struct supervisor *s, const struct layer_task *l,
			     struct hw_err *e)
{
	return err_ctx(e, "%s %s from %s: layer with diff ID %s", job_verb(s->job),
		       s->job->reference, str_or(s->host, "the registry"), l->plan->diff_id);
}

/* A closed socket is not an error here: the next read returns the fetcher's last message or EOF. */
static int send_to_fetcher(struct supervisor *s, enum job_type type, size_t i, int fd,
			   struct hw_err *e)
{
	struct job_step step = { .layer = (int)i };
	int r;

	r = job_send_table(helper_socket(s->fetcher), type, job_step_fields, &step, fd,
			   s->job->idle_ms, e);
	return r == -EPIPE ? 0 : r;
}

/* The fetcher writes the blob to the file when it fetches the layer the next time. */
static int send_blob_file(struct supervisor *s, size_t i, struct hw_err *e)
{
	struct layer_task *l = &s->layers[i];
	autoclose int fd = -1;

	fd = open(l->plan->blob, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return err_set(e, -errno, "create %s", l->plan->blob);
	l->has_blob = true;
	return send_to_fetcher(s, JOB_BLOB, i, fd, e);
}

static int start_layer(struct supervisor *s, size_t i, struct hw_err *e)
{
	struct layer_task *l = &s->layers[i];
	autoclose int archive = -1;
	int r;

	l->state = RUNNING;
	s->running++;
	r = unpack_child_start(s->job, l->plan, i, &l->unpacker, &archive, e);
	if (r == 0 && s->job->keep_blobs && l->plan->blob)
		r = send_blob_file(s, i, e);
	if (r == 0)
		r = send_to_fetcher(s, JOB_FETCH, i, archive, e);
	return r < 0 ? add_layer_context(s, l, e) : 0;
}

/* Only the blob is needed: the decompressed archive is written to /dev/null. */
static int refetch_layer(struct supervisor *s, size_t i, struct hw_err *e)
{
	autoclose int null = -1;
	int r;

	s->layers[i].fetched = false;
	s->layers[i].state = REFETCH;
	null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	if (null < 0)
		return err_set(e, -errno, "open /dev/null");
	r = send_blob_file(s, i, e);
	return r < 0 ? r : send_to_fetcher(s, JOB_FETCH, i, null, e);
}

/* ---- completing layers ----------------------------------------------------- */

static int inherit_implied(const struct supervisor *s, size_t i, struct hw_err *e)
{
	struct layer_task *l = &s->layers[i];
	autoclose int root = -1;
	autofree int *below = NULL;
	int r;

	if (l->result.implied.n == 0 || i == 0)
		return 0;
	root = open(l->plan->root, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (root < 0)
		return err_set(e, -errno, "open %s", l->plan->root);
	below = mem_new(i * sizeof(*below));
	for (size_t k = 0; k < i; k++)
		below[k] = s->layers[i - 1 - k].root;
	r = implied_inherit(root, &l->result.implied, below, i, e);
	if (r > 0)
		l->result.rebuildable = false;
	return r < 0 ? r : 0;
}

/* Return: 1 if the layer is DONE; 0 if it is not complete yet; or negative errno */
static int complete_layer(struct supervisor *s, size_t i, struct hw_err *e)
{
	struct layer_task *l = &s->layers[i];
	autofree char *json = NULL;
	struct job_step step = { .layer = (int)i };
	int r = 0;

	if (l->state == DONE)
		return 1;
	if (l->state == READY)
		r = inherit_implied(s, i, e);
	if (r == 0 && l->state == READY && !l->result.rebuildable && !l->has_blob && l->plan->blob)
		r = refetch_layer(s, i, e);
	if (r < 0)
		return add_layer_context(s, l, e);
	if (l->state != READY && l->state != REFETCHED)
		return 0;
	l->state = DONE;
	hw_strings_free(&l->result.implied); /* the daemon does not need these paths */
	step.unpacked = json = unpacked_encode(&l->result);
	r = job_send_table(s->daemon, JOB_LAYER, job_step_fields, &step, -1, s->job->idle_ms, e);
	return r < 0 ? r : 1;
}

/* Called after each event. @l: the layer that has changed, may be NULL. */
static int advance_layers(struct supervisor *s, struct layer_task *l, struct hw_err *e)
{
	int r;

	if (l && l->state == RUNNING && l->fetched && l->unpacked) {
		l->state = READY;
		s->running--;
	}
	if (l && l->state == REFETCH && l->fetched)
		l->state = REFETCHED;
	for (; s->done < s->n; s->done++) {
		r = complete_layer(s, s->done, e);
		if (r < 0)
			return r;
		if (r == 0)
			break;
	}
	for (size_t i = s->done; i < s->n && s->running < s->job->parallel; i++) {
		if (s->layers[i].state != PENDING)
			continue;
		r = start_layer(s, i, e);
		if (r < 0)
			return r;
	}
	return 0;
}

/* ---- the plan of the daemon -------------------------------------------------- */

/* Return: 0; -EPIPE: the daemon has closed the socket; or negative errno */
static int read_plan(struct supervisor *s, struct hw_err *e)
{
	AUTO(job_message_done) struct job_message m = { .fd = -1 };
	const struct job_layer *layers;
	int r;

	r = job_receive(s->daemon, s->job->idle_ms, &m, e);
	if (r == 0)
		return err_text(e, -EPIPE, "connection closed by the daemon");
	if (r < 0)
		return r;
	if (m.type != JOB_PLAN || s->has_plan)
		return err_text(e, -EBADMSG, "unexpected message of type %d", m.type);
	r = job_decode(&m, job_plan_fields, &s->plan, e);
	if (r < 0)
		return err_ctx(e, "plan");
	if (s->plan.layers.n > MANIFEST_ENTRIES_MAX)
		return err_text(e, -EFBIG, "plan has %zu layers, at most %d are supported",
				s->plan.layers.n, MANIFEST_ENTRIES_MAX);
	s->has_plan = true;
	s->layers = mem_new((s->plan.layers.n + 1) * sizeof(*s->layers));
	layers = s->plan.layers.v;
	while (s->n < s->plan.layers.n) {
		const struct job_layer *plan = &layers[s->n];
		struct layer_task *l = &s->layers[s->n++];

		l->plan = plan;
		l->state = plan->have ? DONE : PENDING;
		l->root = open(plan->root, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (l->root < 0)
			return err_set(e, -errno, "open %s", plan->root);
	}
	return advance_layers(s, NULL, e);
}

/* ---- messages of the fetcher ----------------------------------------------- */

static int on_fetched(struct supervisor *s, const struct job_message *m, struct hw_err *e)
{
	AUTO(job_step_done) struct job_step step = { 0 };
	int r;

	r = job_decode(m, job_step_fields, &step, e);
	if (r < 0)
		return r;
	if (!s->layers || (size_t)step.layer >= s->n)
		return err_text(e, -EBADMSG, "layer number %d out of range", step.layer);
	s->layers[step.layer].fetched = true;
	r = job_send(s->daemon, JOB_PROGRESS, m->data.data, m->data.len, -1, s->job->idle_ms, e);
	return r < 0 ? r : advance_layers(s, &s->layers[step.layer], e);
}

static void remember_host(struct supervisor *s, const struct job_message *m)
{
	AUTO(job_resolved_done) struct job_resolved resolved = { 0 };
	struct hw_err ignored;

	if (job_decode(m, job_resolved_fields, &resolved, &ignored) == 0 && !s->host)
		s->host = take_ptr(resolved.host);
}

static int read_fetcher(struct supervisor *s, struct hw_err *e)
{
	AUTO(job_message_done) struct job_message m = { .fd = -1 };
	int r;

	r = job_receive(helper_socket(s->fetcher), s->job->idle_ms, &m, e);
	if (r == 0)
		return err_text(e, -EIO, "%s %s: fetcher exited unexpectedly", job_verb(s->job),
				s->job->reference);
	if (r < 0)
		return r;
	switch (m.type) {
	case JOB_FETCHED:
		return on_fetched(s, &m, e);
	case JOB_FAILED:
		r = job_decode_failed(&m, e);
		if (r != -EPIPE)
			return r;
		s->pipe_broke = true;
		return 0;
	case JOB_RESOLVED:
		remember_host(s, &m);
		break;
	case JOB_MANIFEST:
	case JOB_CONFIG:
	case JOB_PROGRESS:
		break;
	default:
		return err_text(e, -EBADMSG, "unexpected message of type %d", m.type);
	}
	return job_send(s->daemon, m.type, m.data.data, m.data.len, -1, s->job->idle_ms, e);
}

/* ---- results of unpackers -------------------------------------------------- */

/*
 * An unpacker also fails if the layer was not fetched completely. Then the fetcher's error is
 * returned, since it is the cause: the fetcher has sent it before it closed the pipe, or has exited
 * (EOF). If the unpacker failed for another reason, the fetcher will only report the broken pipe.
 */
static int read_unpacker(struct supervisor *s, struct layer_task *l, struct hw_err *e)
{
	struct pollfd poller = { .fd = helper_socket(s->fetcher), .events = POLLIN };
	struct hw_err first;
	int64_t deadline;
	int r;

	r = unpack_child_read(l->unpacker, s->job, &l->result, e);
	helper_free(take_ptr(l->unpacker));
	if (r == 0) {
		l->unpacked = true;
		return advance_layers(s, l, e);
	}
	r = add_layer_context(s, l, e);
	deadline = time_deadline(FETCHER_ERROR_MS);
	while (!l->fetched && !s->pipe_broke) {
		int n;

		n = poll(&poller, 1, time_left_ms(deadline));
		if (n == 0 || (n < 0 && errno != EINTR)) /* EINTR: from SIGIO */
			break;
		if (n > 0 && read_fetcher(s, &first) < 0) {
			*e = first;
			return first.code;
		}
	}
	return r;
}

/* ---- the loop -------------------------------------------------------------- */

enum { AT_DAEMON, AT_FETCHER, AT_UNPACKERS, AT_END = AT_UNPACKERS + JOB_PARALLEL_MAX };

static int handle_events(struct supervisor *s, struct hw_err *e)
{
	struct pollfd fds[AT_END] = {
		[AT_DAEMON] = { .fd = s->daemon, .events = POLLIN },
		[AT_FETCHER] = { .fd = helper_socket(s->fetcher), .events = POLLIN },
	};
	struct layer_task *layers[AT_END] = { NULL }; /* layers of the unpackers in fds */
	size_t n = AT_UNPACKERS;
	int r = 0;

	for (size_t i = s->done; i < s->n && n < AT_END; i++) {
		if (!s->layers[i].unpacker)
			continue;
		fds[n] = (struct pollfd){ .fd = helper_socket(s->layers[i].unpacker),
					  .events = POLLIN };
		layers[n++] = &s->layers[i];
	}
	if (poll(fds, n, -1) < 0)
		return errno == EINTR ? 0 : err_set(e, -errno, "wait for messages");
	if (fds[AT_DAEMON].revents)
		r = read_plan(s, e);
	if (r == 0 && fds[AT_FETCHER].revents)
		r = read_fetcher(s, e);
	for (size_t i = AT_UNPACKERS; r == 0 && i < n; i++)
		if (fds[i].revents)
			r = read_unpacker(s, layers[i], e);
	return r;
}

/* A fetcher that exits before the job arrives is ignored: send_job() starts another fetcher. */
static int wait_for_job(struct supervisor *s, struct job_message *m, struct fetch_job *job,
			struct hw_err *e)
{
	for (;;) {
		struct pollfd fds[] = { { .fd = s->daemon, .events = POLLIN },
					{ .fd = s->fetcher ? helper_socket(s->fetcher) : -1,
					  .events = POLLIN } };

		if (poll(fds, ARRAY_SIZE(fds), -1) < 0 && errno != EINTR)
			return err_set(e, -errno, "wait for a job");
		if (fds[1].revents)
			helper_free(take_ptr(s->fetcher));
		else if (fds[0].revents)
			return receive_job(s->daemon, m, job, e);
	}
}

static int send_job(struct supervisor *s, const struct job_message *m, struct hw_err *e)
{
	int r = 0;

	if (!s->fetcher)
		r = helper_fork(fetcher_run, NULL, NULL, 0, &s->fetcher, e);
	if (r == 0)
		r = job_send(helper_socket(s->fetcher), m->type, m->data.data, m->data.len, m->fd,
			     s->job->idle_ms, e);
	return r < 0 ? err_ctx(e, "%s %s", job_verb(s->job), s->job->reference) : 0;
}

/* Return: 0: all layers are complete and reported; or negative errno */
static int run_job(struct supervisor *s, struct hw_err *e)
{
	int r;

	while (!(s->has_plan && s->done == s->n)) {
		r = handle_events(s, e);
		if (r < 0)
			return r;
	}
	return job_send(s->daemon, JOB_DONE, "", 0, -1, s->job->idle_ms, e);
}

int supervisor_run(int daemon)
{
	AUTO(job_message_done) struct job_message m = { .fd = -1 };
	AUTO(job_done) struct fetch_job job = { 0 };
	AUTO(supervisor_done)
	struct supervisor s = { .job = &job, .daemon = daemon };
	struct hw_err e, ignored;
	int r;

	helper_fork(fetcher_run, NULL, NULL, 0, &s.fetcher, &ignored);
	if (wait_for_job(&s, &m, &job, &e) < 0) {
		if (e.code != -EPIPE) /* -EPIPE: the daemon had no job */
			fprintf(stderr, "hawser-fetch: %s\n", e.msg);
		return 2;
	}
	r = send_job(&s, &m, &e);
	/* the unpackers are copies of this process and must not contain the credentials; the URL of a
	 * proxy may have some, too */
	erase_job_message(&m);
	job_wipe(&job);
	helper_erase_environment();
	if (r == 0)
		r = helper_limit_memory(MEMORY, &e);
	if (r == 0 && !job.unconfined)
		r = confine(CONFINE_SUPERVISOR, -1, &e);
	if (r == 0)
		r = run_job(&s, &e);
	if (r == 0)
		return 0;
	job_send_failed(daemon, &e, job.idle_ms, &ignored);
	return 1;
}
