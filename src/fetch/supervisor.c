/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/supervisor.c - hawser-fetch's first process: who fetches, who unpacks, when
 *
 * How:   one loop over poll(). Each layer has a state:
 *
 *	state      meaning                                  next
 *	WAITING    not begun                                RUNNING, when there is room
 *	RUNNING    is fetched and unpacked at once          READY, when both have ended well
 *	READY      complete by itself                       DONE or AGAIN, when all below are
 *	AGAIN      cannot be rebuilt: fetched once more,    KEPT
 *	           for its blob to be kept
 *	KEPT       the blob is there                        DONE
 *	DONE       the daemon knows
 *
 * The last is gone to in the order of layers, since folders inherit from those below
 * (implied.h).
 */
#include "fetch/supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/str.h"
#include "base/time.h"
#include "fetch/fetcher.h"
#include "fetch/unpack-child.h"
#include "fetch/unpack/implied.h"
#include "image/manifest.h"
#include "image/protocol/job.h"
#include "image/protocol/unpacked.h"

#define BLAME_MS 2000 /* to hear what the process that fetches has to say */

enum layer_state { WAITING, RUNNING, READY, AGAIN, KEPT, DONE };

struct layer {
	const struct job_layer *plan;
	int root; /* O_PATH: once it is DONE, the daemon may give it another name */
	enum layer_state state;
	bool fetched, unpacked;
	bool has_blob; /* it is kept */
	struct unpack_child child;
	struct unpacked result;
};

struct supervisor {
	const struct job *job;
	int daemon;  /* borrowed */
	int fetcher; /* socket to the process that fetches */
	pid_t fetcher_pid;
	char *host; /* that the image comes from, once it is known */
	bool planned;
	struct job_plan plan;
	struct layer *layers;
	size_t n;
	size_t done; /* so many are DONE: the lowest ones */
	int running;
	bool broken; /* a pipe: a process that unpacks has failed */
};

/* Without its socket it ends by itself, should the kill fail; and without it so do those who
 * unpack. */
static void end_fetcher(struct supervisor *s)
{
	mem_close_fd(&s->fetcher);
	s->fetcher = -1;
	if (s->fetcher_pid > 0) {
		kill(s->fetcher_pid, SIGKILL);
		while (waitpid(s->fetcher_pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	s->fetcher_pid = 0;
}

static void supervisor_done(struct supervisor *s)
{
	end_fetcher(s);
	for (size_t i = 0; i < s->n; i++) {
		unpack_child_done(&s->layers[i].child);
		unpacked_done(&s->layers[i].result);
		mem_close_fd(&s->layers[i].root);
	}
	job_plan_done(&s->plan);
	free(s->layers);
	free(s->host);
}
AUTO_VALUE_DEFINE(supervisor_done, struct supervisor);

/* Which layer an error is about. */
static int add_layer_context(const struct supervisor *s, const struct layer *l, struct hw_err *e)
{
	return err_ctx(e, "%s %s from %s: layer with diff id %s", job_verb(s->job),
		       s->job->reference, str_or(s->host, "its registry"), l->plan->diff_id);
}

/* Where nobody listens any more, its last words say why, or that there are none. */
static int say_layer(struct supervisor *s, enum job_type type, size_t i, int along,
		     struct hw_err *e)
{
	struct job_step step = { .layer = (int)i };
	int r = job_send_table(s->fetcher, type, job_step_fields, &step, along, s->job->idle_ms, e);

	return r == -EPIPE ? 0 : r;
}

/* The next time that it is fetched, its blob is kept. */
static int keep_blob(struct supervisor *s, size_t i, struct hw_err *e)
{
	struct layer *l = &s->layers[i];
	autoclose int fd =
		open(l->plan->blob, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd < 0)
		return err_set(e, -errno, "make %s", l->plan->blob);
	l->has_blob = true;
	return say_layer(s, JOB_BLOB, i, fd, e);
}

static int start_layer(struct supervisor *s, size_t i, struct hw_err *e)
{
	struct layer *l = &s->layers[i];
	autoclose int archive = -1;
	int r = unpack_child_start(&l->child, s->job, l->plan, &archive, e);

	if (r == 0 && s->job->keep_blobs && l->plan->blob)
		r = keep_blob(s, i, e);
	if (r == 0)
		r = say_layer(s, JOB_FETCH, i, archive, e);
	l->state = RUNNING;
	s->running++;
	return r < 0 ? add_layer_context(s, l, e) : 0;
}

/* Only for the blob: nobody unpacks it this time. */
static int start_again(struct supervisor *s, size_t i, struct hw_err *e)
{
	autoclose int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	int r = null < 0 ? err_set(e, -errno, "open /dev/null") : keep_blob(s, i, e);

	s->layers[i].fetched = false;
	s->layers[i].state = AGAIN;
	return r < 0 ? r : say_layer(s, JOB_FETCH, i, null, e);
}

static int start_layers(struct supervisor *s, struct hw_err *e)
{
	int r = 0;

	for (size_t i = s->done; r == 0 && i < s->n && s->running < s->job->parallel; i++)
		if (s->layers[i].state == WAITING)
			r = start_layer(s, i, e);
	return r;
}

static int inherit_layer(const struct supervisor *s, size_t i, struct hw_err *e)
{
	struct layer *l = &s->layers[i];
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

static int tell_layer(const struct supervisor *s, size_t i, struct hw_err *e)
{
	autofree char *json = unpacked_encode(&s->layers[i].result);
	struct job_step step = { .layer = (int)i, .unpacked = json };

	return job_send_table(s->daemon, JOB_LAYER, job_step_fields, &step, -1, s->job->idle_ms, e);
}

/* Return: 1 when the daemon knows of it, 0 when it is not complete yet */
static int finish_layer(struct supervisor *s, size_t i, struct hw_err *e)
{
	struct layer *l = &s->layers[i];
	int r = 0;

	if (l->state == DONE)
		return 1;
	if (l->state == READY)
		r = inherit_layer(s, i, e);
	if (r == 0 && l->state == READY && !l->result.rebuildable && !l->has_blob && l->plan->blob)
		r = start_again(s, i, e);
	if (r < 0)
		return add_layer_context(s, l, e);
	if (l->state != READY && l->state != KEPT)
		return 0;
	l->state = DONE;
	hw_strings_free(&l->result.implied); /* the daemon has no use for them */
	r = tell_layer(s, i, e);
	return r < 0 ? r : 1;
}

static int finish_layers(struct supervisor *s, struct hw_err *e)
{
	for (; s->done < s->n; s->done++) {
		int r = finish_layer(s, s->done, e);

		if (r <= 0)
			return r;
	}
	return 0;
}

/* After anything has changed: finish what is ready, start what there is room for. @l, which may be
 * NULL, has come further. */
static int advance_layers(struct supervisor *s, struct layer *l, struct hw_err *e)
{
	int r = 0;

	if (l && l->state == RUNNING && l->fetched && l->unpacked) {
		l->state = READY;
		s->running--;
	}
	if (l && l->state == AGAIN && l->fetched)
		l->state = KEPT;
	r = finish_layers(s, e);
	return r < 0 ? r : start_layers(s, e);
}

/* ---- the process that fetches ---------------------------------------------- */

/* Of the descriptors it keeps its socket, and where messages for people go. */
static void be_fetcher(int socket)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	int high = fcntl(socket, F_DUPFD_CLOEXEC, STDERR_FILENO + 2);

	if (dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0 ||
	    dup2(high, STDERR_FILENO + 1) < 0 || close_range(STDERR_FILENO + 2, ~0U, 0) < 0)
		_exit(EXIT_FAILURE);
	_exit(fetcher_run(STDERR_FILENO + 1));
}

static int start_fetcher(struct supervisor *s, struct hw_err *e)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return err_set(e, -errno, "make a socket");
	s->fetcher = pair[0];
	s->fetcher_pid = fork();
	if (s->fetcher_pid == 0)
		be_fetcher(pair[1]);
	close(pair[1]);
	if (s->fetcher_pid >= 0)
		return 0;
	err_set(e, -errno, "fork");
	close(take_fd(s->fetcher));
	return e->code;
}

/* ---- what comes in --------------------------------------------------------- */

static int plan_layer(struct layer *l, const struct job_layer *plan, struct hw_err *e)
{
	l->plan = plan;
	l->state = plan->have ? DONE : WAITING;
	unpack_child_init(&l->child);
	l->root = open(plan->root, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return l->root < 0 ? err_set(e, -errno, "open %s", plan->root) : 0;
}

static int take_plan(struct supervisor *s, const struct job_message *m, struct hw_err *e)
{
	const struct job_layer *v;
	int r;

	if (m->type != JOB_PLAN || s->planned)
		return err_text(e, -EBADMSG, "a message of type %d was not expected", m->type);
	r = job_decode(m, job_plan_fields, &s->plan, e);
	if (r < 0)
		return err_ctx(e, "plan");
	if (s->plan.layers.n > MANIFEST_ENTRIES_MAX)
		return err_text(e, -EFBIG, "a plan of %zu layers", s->plan.layers.n);
	s->planned = true;
	s->layers = mem_new((s->plan.layers.n + 1) * sizeof(*s->layers));
	v = s->plan.layers.v;
	for (; r == 0 && s->n < s->plan.layers.n; s->n++)
		r = plan_layer(&s->layers[s->n], &v[s->n], e);
	return r < 0 ? r : advance_layers(s, NULL, e);
}

/* Return: 0; -EPIPE when the daemon has gone */
static int from_daemon(struct supervisor *s, struct hw_err *e)
{
	AUTO(job_message_done) struct job_message m = { .fd = -1 };
	int r = job_receive(s->daemon, s->job->idle_ms, &m, e);

	if (r == 0)
		return err_text(e, -EPIPE, "the daemon has gone");
	return r < 0 ? r : take_plan(s, &m, e);
}

static int take_fetched(struct supervisor *s, const struct job_message *m, struct hw_err *e)
{
	AUTO(job_step_done) struct job_step step = { 0 };
	int r = job_decode(m, job_step_fields, &step, e);

	if (r < 0)
		return r;
	if (!s->layers || (size_t)step.layer >= s->n)
		return err_text(e, -EBADMSG, "there is no layer %d", step.layer);
	s->layers[step.layer].fetched = true;
	r = job_send(s->daemon, JOB_PROGRESS, m->data.data, m->data.len, -1, s->job->idle_ms, e);
	return r < 0 ? r : advance_layers(s, &s->layers[step.layer], e);
}

/* A broken pipe is the fault of the process that unpacks, and that one says why. */
static int take_failed(struct supervisor *s, const struct job_message *m, struct hw_err *e)
{
	int r = job_decode_failed(m, e);

	if (r != -EPIPE)
		return r;
	s->broken = true;
	return 0;
}

static void remember_host(struct supervisor *s, const struct job_message *m)
{
	AUTO(job_resolved_done) struct job_resolved resolved = { 0 };
	struct hw_err ignored;

	if (job_decode(m, job_resolved_fields, &resolved, &ignored) == 0 && !s->host)
		s->host = take_ptr(resolved.host);
}

static int take_message(struct supervisor *s, const struct job_message *m, struct hw_err *e)
{
	switch (m->type) {
	case JOB_FETCHED:
		return take_fetched(s, m, e);
	case JOB_FAILED:
		return take_failed(s, m, e);
	case JOB_RESOLVED:
		remember_host(s, m);
		break;
	case JOB_MANIFEST:
	case JOB_CONFIG:
	case JOB_PROGRESS:
		break;
	default:
		return err_text(e, -EBADMSG, "a message of type %d was not expected", m->type);
	}
	return job_send(s->daemon, m->type, m->data.data, m->data.len, -1, s->job->idle_ms, e);
}

static int from_fetcher(struct supervisor *s, struct hw_err *e)
{
	AUTO(job_message_done) struct job_message m = { .fd = -1 };
	int r = job_receive(s->fetcher, s->job->idle_ms, &m, e);

	if (r == 0)
		return err_text(e, -EIO, "%s %s: the process that fetches has died",
				job_verb(s->job), s->job->reference);
	return r < 0 ? r : take_message(s, &m, e);
}

/* Why a layer could not be unpacked may be that it was not fetched to its end: who fetches has said
 * so before it closed the pipe, or has died. Else it is about to find the pipe broken. */
static int blame(struct supervisor *s, const struct layer *l, struct hw_err *e)
{
	struct pollfd poller = { .fd = s->fetcher, .events = POLLIN };
	int64_t deadline = time_deadline(BLAME_MS);
	struct hw_err first;
	int r = add_layer_context(s, l, e);

	while (!l->fetched && !s->broken && poll(&poller, 1, time_left_ms(deadline)) > 0) {
		if (from_fetcher(s, &first) < 0) {
			*e = first;
			return first.code;
		}
	}
	return r;
}

static int from_child(struct supervisor *s, struct layer *l, struct hw_err *e)
{
	int r = unpack_child_read(&l->child, &l->result, e);

	if (r < 0)
		return blame(s, l, e);
	l->unpacked = l->unpacked || r > 0;
	return advance_layers(s, l, e);
}

/* ---- the loop -------------------------------------------------------------- */

enum { AT_DAEMON, AT_FETCHER, AT_CHILDREN, AT_END = AT_CHILDREN + JOB_PARALLEL_MAX };

struct polls {
	struct pollfd fds[AT_END];
	struct layer *who[AT_END]; /* whose process it is */
	size_t n;
};

static void fill_polls(const struct supervisor *s, struct polls *p)
{
	p->n = AT_CHILDREN;
	p->fds[AT_DAEMON] = (struct pollfd){ .fd = s->daemon, .events = POLLIN };
	p->fds[AT_FETCHER] = (struct pollfd){ .fd = s->fetcher, .events = POLLIN };
	for (size_t i = s->done; i < s->n && p->n < AT_END; i++) {
		struct layer *l = &s->layers[i];

		if (l->child.answer < 0)
			continue;
		p->fds[p->n] = (struct pollfd){ .fd = l->child.answer, .events = POLLIN };
		p->who[p->n++] = l;
	}
}

static int step(struct supervisor *s, struct polls *p, struct hw_err *e)
{
	int r = 0;

	fill_polls(s, p);
	if (poll(p->fds, p->n, -1) < 0)
		return errno == EINTR ? 0 : err_set(e, -errno, "wait for messages");
	if (p->fds[AT_DAEMON].revents)
		r = from_daemon(s, e);
	if (r == 0 && p->fds[AT_FETCHER].revents)
		r = from_fetcher(s, e);
	for (size_t i = AT_CHILDREN; r == 0 && i < p->n; i++)
		if (p->fds[i].revents)
			r = from_child(s, p->who[i], e);
	return r;
}

/* Whoever fetched, or was to, is not needed before there is a job; if there is nobody then, another
 * one is started. */
static int wait_for_job(struct supervisor *s, struct job_message *m, struct job *job,
			struct hw_err *e)
{
	for (;;) {
		struct pollfd fds[] = { { .fd = s->daemon, .events = POLLIN },
					{ .fd = s->fetcher, .events = POLLIN } };

		if (poll(fds, ARRAY_SIZE(fds), -1) < 0 && errno != EINTR)
			return err_set(e, -errno, "wait for a job");
		if (fds[1].revents)
			end_fetcher(s);
		else if (fds[0].revents)
			return receive_job(s->daemon, m, job, e);
	}
}

static int hand_on(struct supervisor *s, struct job_message *m, struct hw_err *e)
{
	int r = s->fetcher < 0 ? start_fetcher(s, e) : 0;

	if (r == 0)
		r = job_send(s->fetcher, m->type, m->data.data, m->data.len, m->fd, s->job->idle_ms,
			     e);
	receive_job_forget(m);
	return r < 0 ? err_ctx(e, "%s %s", job_verb(s->job), s->job->reference) : 0;
}

/* Return: 0 when all layers are there and the daemon knows; else why not */
static int do_job(struct supervisor *s, struct job_message *m, struct hw_err *e)
{
	struct polls polls;
	int r = hand_on(s, m, e);

	while (r == 0 && !(s->planned && s->done == s->n))
		r = step(s, &polls, e);
	return r < 0 ? r : job_send(s->daemon, JOB_DONE, "", 0, -1, s->job->idle_ms, e);
}

/** supervisor_run() - wait for a job and do it */
int supervisor_run(int daemon)
{
	AUTO(job_message_done) struct job_message m = { .fd = -1 };
	AUTO(job_done) struct job job = { 0 };
	AUTO(supervisor_done)
	struct supervisor s = { .job = &job, .daemon = daemon, .fetcher = -1 };
	struct hw_err e, ignored;

	start_fetcher(&s, &ignored);
	if (wait_for_job(&s, &m, &job, &e) < 0) {
		if (e.code != -EPIPE) /* that nobody has one is no error */
			fprintf(stderr, "hawser-fetch: %s\n", e.msg);
		return 2;
	}
	if (do_job(&s, &m, &e) == 0)
		return 0;
	job_send_failed(daemon, &e, job.idle_ms, &ignored);
	return 1;
}
