/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image/fetch/conductor.c - hawser-fetch's first process: who fetches, who unpacks, when
 *
 * How:   one loop over poll(). A layer goes through these, and through the last one
 *        in the order of layers, since folders inherit from those below (inherit.h):
 *
 *	state      meaning                                  next
 *	WAITING    not begun                                RUNNING, when there is room
 *	RUNNING    is fetched and unpacked at once          READY, when both have ended well
 *	READY      complete by itself                       DONE, when all below are
 *	DONE       the daemon knows
 */
#include "image/fetch/conductor.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/str.h"
#include "image/fetch/fetcher.h"
#include "image/fetch/inherit.h"
#include "image/fetch/layer-child.h"
#include "image/manifest.h"

enum state { WAITING, RUNNING, READY, DONE };

struct layer {
	const struct job_layer *plan;
	enum state state;
	bool fetched, unpacked;
	struct layer_child child;
	struct unpacked result;
};

struct conductor {
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
};

static void conductor_done(struct conductor *c)
{
	for (size_t i = 0; i < c->n; i++) {
		layer_child_done(&c->layers[i].child);
		unpacked_done(&c->layers[i].result);
	}
	if (c->fetcher_pid > 0) {
		kill(c->fetcher_pid, SIGKILL);
		while (waitpid(c->fetcher_pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	mem_close_fd(&c->fetcher);
	job_plan_done(&c->plan);
	free(c->layers);
	free(c->host);
}
AUTO_VALUE_DEFINE(conductor_done, struct conductor);

/* ---- the process that fetches ---------------------------------------------- */

/* Of the descriptors it keeps its socket, and where messages for people go. */
static void be_fetcher(const struct job *job, int socket)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	dup2(null, STDIN_FILENO);
	dup2(null, STDOUT_FILENO);
	dup2(socket, STDERR_FILENO + 1);
	close_range(STDERR_FILENO + 2, ~0U, 0);
	_exit(fetcher_run(STDERR_FILENO + 1, job));
}

static int start_fetcher(struct conductor *c, struct hw_err *e)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return err_set(e, -errno, "make a socket");
	c->fetcher = pair[0];
	c->fetcher_pid = fork();
	if (c->fetcher_pid == 0)
		be_fetcher(c->job, pair[1]);
	close(pair[1]);
	if (c->fetcher_pid < 0)
		return err_set(e, -errno, "fork");
	return 0;
}

/* ---- layers ---------------------------------------------------------------- */

static int layer_ctx(const struct conductor *c, const struct layer *l, struct hw_err *e)
{
	return err_ctx(e, "pull %s from %s: layer with diff id %s", c->job->reference,
		       str_or(c->host, "its registry"), l->plan->diff_id);
}

static int start_layer(struct conductor *c, size_t i, struct hw_err *e)
{
	struct layer *l = &c->layers[i];
	struct job_step step = { .layer = (int)i };
	autoclose int archive = -1;
	int r = layer_child_start(&l->child, c->job, l->plan, &archive, e);

	if (r == 0)
		r = job_send_table(c->fetcher, JOB_FETCH, job_step_fields, &step, archive,
				   c->job->idle_ms, e);
	l->state = RUNNING;
	c->running++;
	return r < 0 ? layer_ctx(c, l, e) : 0;
}

static int start_layers(struct conductor *c, struct hw_err *e)
{
	int r = 0;

	for (size_t i = c->done; r == 0 && i < c->n && c->running < c->job->parallel; i++)
		if (c->layers[i].state == WAITING)
			r = start_layer(c, i, e);
	return r;
}

static int *open_below(const struct conductor *c, size_t n, struct hw_err *e)
{
	int *below = mem_new((n + 1) * sizeof(*below));

	for (size_t i = 0; i < n; i++) {
		const char *path = c->layers[n - 1 - i].plan->root;

		below[i] = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (below[i] >= 0)
			continue;
		err_set(e, -errno, "open %s", path);
		while (i-- > 0)
			close(below[i]);
		free(below);
		return NULL;
	}
	return below;
}

static int inherit_layer(const struct conductor *c, size_t i, struct hw_err *e)
{
	struct layer *l = &c->layers[i];
	autoclose int root = -1;
	int *below, r;

	if (l->result.implied.n == 0 || i == 0)
		return 0;
	root = open(l->plan->root, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (root < 0)
		return err_set(e, -errno, "open %s", l->plan->root);
	below = open_below(c, i, e);
	if (!below)
		return e->code;
	r = inherit(root, &l->result.implied, below, i, e);
	for (size_t k = 0; k < i; k++)
		close(below[k]);
	free(below);
	if (r > 0)
		l->result.rebuildable = false;
	return r < 0 ? r : 0;
}

static int tell_layer(const struct conductor *c, size_t i, struct hw_err *e)
{
	autofree char *json = unpacked_encode(&c->layers[i].result);
	struct job_step step = { .layer = (int)i, .unpacked = json };

	return job_send_table(c->daemon, JOB_LAYER, job_step_fields, &step, -1, c->job->idle_ms, e);
}

static int finish_layers(struct conductor *c, struct hw_err *e)
{
	for (; c->done < c->n; c->done++) {
		struct layer *l = &c->layers[c->done];
		int r;

		if (l->state == DONE)
			continue;
		if (l->state != READY)
			return 0;
		r = inherit_layer(c, c->done, e);
		if (r < 0)
			return layer_ctx(c, l, e);
		r = tell_layer(c, c->done, e);
		if (r < 0)
			return r;
		l->state = DONE;
	}
	return 0;
}

static int go_on(struct conductor *c, struct layer *l, struct hw_err *e)
{
	int r = 0;

	if (l && l->state == RUNNING && l->fetched && l->unpacked) {
		l->state = READY;
		c->running--;
	}
	r = finish_layers(c, e);
	return r < 0 ? r : start_layers(c, e);
}

/* ---- what comes in --------------------------------------------------------- */

static int take_plan(struct conductor *c, const struct job_message *m, struct hw_err *e)
{
	const struct job_layer *v;
	int r;

	if (m->type != JOB_PLAN || c->planned)
		return err_text(e, -EBADMSG, "a message of type %d was not expected", m->type);
	r = job_decode(m, job_plan_fields, &c->plan, e);
	if (r < 0)
		return err_ctx(e, "plan");
	if (c->plan.layers.n > MANIFEST_ENTRIES_MAX)
		return err_text(e, -EFBIG, "a plan of %zu layers", c->plan.layers.n);
	c->planned = true;
	c->n = c->plan.layers.n;
	c->layers = mem_new((c->n + 1) * sizeof(*c->layers));
	v = c->plan.layers.v;
	for (size_t i = 0; i < c->n; i++) {
		c->layers[i].plan = &v[i];
		c->layers[i].state = v[i].have ? DONE : WAITING;
		layer_child_init(&c->layers[i].child);
	}
	return go_on(c, NULL, e);
}

/* Return: 0; -EPIPE when the daemon has gone */
static int from_daemon(struct conductor *c, struct hw_err *e)
{
	AUTO(job_message_done) struct job_message m = { .fd = -1 };
	int r = job_receive(c->daemon, c->job->idle_ms, &m, e);

	if (r == 0)
		return err_text(e, -EPIPE, "the daemon has gone");
	return r < 0 ? r : take_plan(c, &m, e);
}

static int take_fetched(struct conductor *c, const struct job_message *m, struct hw_err *e)
{
	AUTO(job_step_done) struct job_step step = { 0 };
	int r = job_decode(m, job_step_fields, &step, e);

	if (r < 0)
		return r;
	if ((size_t)step.layer >= c->n)
		return err_text(e, -EBADMSG, "there is no layer %d", step.layer);
	c->layers[step.layer].fetched = true;
	r = job_send(c->daemon, JOB_PROGRESS, m->data.data, m->data.len, -1, c->job->idle_ms, e);
	return r < 0 ? r : go_on(c, &c->layers[step.layer], e);
}

/* A broken pipe is the fault of the process that unpacks, and that one says why. */
static int take_failed(const struct job_message *m, struct hw_err *e)
{
	int r = job_decode_failed(m, e);

	return r == -EPIPE ? 0 : r;
}

static void remember_host(struct conductor *c, const struct job_message *m)
{
	AUTO(job_resolved_done) struct job_resolved resolved = { 0 };
	struct hw_err ignored;

	if (job_decode(m, job_resolved_fields, &resolved, &ignored) == 0 && !c->host)
		c->host = take_ptr(resolved.host);
}

static int take_message(struct conductor *c, const struct job_message *m, struct hw_err *e)
{
	switch (m->type) {
	case JOB_FETCHED:
		return take_fetched(c, m, e);
	case JOB_FAILED:
		return take_failed(m, e);
	case JOB_RESOLVED:
		remember_host(c, m);
		break;
	case JOB_MANIFEST:
	case JOB_CONFIG:
	case JOB_PROGRESS:
		break;
	default:
		return err_text(e, -EBADMSG, "a message of type %d was not expected", m->type);
	}
	return job_send(c->daemon, m->type, m->data.data, m->data.len, -1, c->job->idle_ms, e);
}

static int from_fetcher(struct conductor *c, struct hw_err *e)
{
	AUTO(job_message_done) struct job_message m = { .fd = -1 };
	int r = job_receive(c->fetcher, c->job->idle_ms, &m, e);

	if (r == 0)
		return err_text(e, -EIO, "pull %s: the process that fetches has died",
				c->job->reference);
	return r < 0 ? r : take_message(c, &m, e);
}

/* Why a layer could not be unpacked may be that it was not fetched to its end; that was said first,
 * and tells more. */
static int blame(struct conductor *c, const struct layer *l, struct hw_err *e)
{
	struct pollfd poller = { .fd = c->fetcher, .events = POLLIN };
	struct hw_err first;
	int r = layer_ctx(c, l, e);

	while (poll(&poller, 1, 0) > 0 && (poller.revents & POLLIN)) {
		if (from_fetcher(c, &first) < 0) {
			*e = first;
			return first.code;
		}
	}
	return r;
}

static int from_child(struct conductor *c, struct layer *l, struct hw_err *e)
{
	int r = layer_child_read(&l->child, &l->result, e);

	if (r < 0)
		return blame(c, l, e);
	l->unpacked = l->unpacked || r > 0;
	return go_on(c, l, e);
}

/* ---- the loop -------------------------------------------------------------- */

enum { AT_DAEMON, AT_FETCHER, AT_CHILDREN };

static size_t fill_polls(const struct conductor *c, struct pollfd *fds, struct layer **who)
{
	size_t n = AT_CHILDREN;

	fds[AT_DAEMON] = (struct pollfd){ .fd = c->daemon, .events = POLLIN };
	fds[AT_FETCHER] = (struct pollfd){ .fd = c->fetcher, .events = POLLIN };
	for (size_t i = c->done; i < c->n; i++) {
		if (c->layers[i].child.answer < 0)
			continue;
		fds[n] = (struct pollfd){ .fd = c->layers[i].child.answer, .events = POLLIN };
		who[n++] = &c->layers[i];
	}
	return n;
}

static int step(struct conductor *c, struct pollfd *fds, struct layer **who, struct hw_err *e)
{
	size_t n = fill_polls(c, fds, who);
	int r = 0;

	if (poll(fds, n, -1) < 0)
		return errno == EINTR ? 0 : err_set(e, -errno, "wait for messages");
	if (fds[AT_DAEMON].revents)
		r = from_daemon(c, e);
	if (r == 0 && fds[AT_FETCHER].revents)
		r = from_fetcher(c, e);
	for (size_t i = AT_CHILDREN; r == 0 && i < n; i++)
		if (fds[i].revents)
			r = from_child(c, who[i], e);
	return r;
}

/**
 * conductor_run() - do a job
 * @daemon: the socket to it
 *
 * Return: 0 when all layers are there and the daemon knows; else why not
 */
int conductor_run(int daemon, const struct job *job, struct hw_err *e)
{
	AUTO(conductor_done) struct conductor c = { .job = job, .daemon = daemon, .fetcher = -1 };
	autofree struct pollfd *fds = mem_new((MANIFEST_ENTRIES_MAX + AT_CHILDREN) * sizeof(*fds));
	autofree struct layer **who = mem_new((MANIFEST_ENTRIES_MAX + AT_CHILDREN) * sizeof(*who));
	int r = start_fetcher(&c, e);

	while (r == 0 && !(c.planned && c.done == c.n))
		r = step(&c, fds, who, e);
	return r;
}
