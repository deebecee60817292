/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image/pull/session.c - one pull or load: conversation with hawser-fetch
 *
 *	state         message          action
 *	WAIT_RESOLVED RESOLVED         check the digest
 *	WAIT_MANIFEST MANIFEST         index: keep it; manifest: next state
 *	WAIT_CONFIG   CONFIG           look up layers, create stages, send PLAN; if all layers
 *	                               are in the store: done
 *	WAIT_LAYERS   PROGRESS, LAYER  update the progress
 *	              (none waiting)   commit complete layers to the store
 *	              DONE             commit the last layers
 *	any           FAILED           return its error
 *
 * Layers are committed only when no message is waiting. So syncing to disk overlaps with the
 * download of other layers, and one sync covers many small layers.
 */
#include "image/pull/session.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#include "base/log.h"
#include "base/str.h"
#include "base/time.h"

#define ARCHIVE_MS                                                                                 \
	(10 * 60 * 1000)       /* timeout for reading a whole archive before the first message */
#define MESSAGE_MS (30 * 1000) /* timeout for sending a part of a message */
#define KNOWN_MAX  (48 << 10)  /* bytes; the job must fit into a socket buffer */

enum session_state { WAIT_RESOLVED, WAIT_MANIFEST, WAIT_CONFIG, WAIT_LAYERS, DONE };

struct session {
	const struct session_options *o;
	enum session_state state;
	struct helper *fetch;
	bool from_standby; /* fetch came from the standby */
	struct incoming *image;
	bool protocol_error;
};

static void session_done(struct session *s)
{
	helper_free(s->fetch);
	incoming_free(s->image);
}
AUTO_VALUE_DEFINE(session_done, struct session);

/* ---- messages -------------------------------------------------------------- */

static int handle_resolved(struct session *s, const struct job_message *m, struct hw_err *e)
{
	s->state = WAIT_MANIFEST;
	return incoming_receive_resolved(s->image, m, e);
}

static int handle_manifest(struct session *s, const struct job_message *m, struct hw_err *e)
{
	int r;

	r = incoming_receive_manifest(s->image, m, e);
	if (r > 0)
		s->state = WAIT_CONFIG;
	return r < 0 ? r : 0;
}

static int handle_config(struct session *s, const struct job_message *m, struct hw_err *e)
{
	AUTO(job_plan_done) struct job_plan plan = { 0 };
	int r;

	r = incoming_receive_config(s->image, m, &plan, e);
	if (r == 0 && incoming_is_complete(s->image)) {
		s->state = DONE;
		return 0;
	}
	s->state = WAIT_LAYERS;
	if (r == 0)
		r = job_send_table(helper_socket(s->fetch), JOB_PLAN, job_plan_fields, &plan, -1,
				   MESSAGE_MS, e);
	return r;
}

static int handle_progress(struct session *s, const struct job_message *m, struct hw_err *e)
{
	return incoming_receive_progress(s->image, m, e);
}

static int handle_layer(struct session *s, const struct job_message *m, struct hw_err *e)
{
	return incoming_receive_layer(s->image, m, e);
}

static int handle_done(struct session *s, const struct job_message *m, struct hw_err *e)
{
	(void)m;
	s->state = DONE;
	return incoming_receive_done(s->image, e);
}

static const struct {
	enum job_type type;
	enum session_state state; /* the state in which the message is allowed */
	int (*handle)(struct session *s, const struct job_message *m, struct hw_err *e);
} handlers[] = {
	{ JOB_RESOLVED, WAIT_RESOLVED, handle_resolved },
	{ JOB_MANIFEST, WAIT_MANIFEST, handle_manifest },
	{ JOB_CONFIG, WAIT_CONFIG, handle_config },
	{ JOB_PROGRESS, WAIT_LAYERS, handle_progress },
	{ JOB_LAYER, WAIT_LAYERS, handle_layer },
	{ JOB_DONE, WAIT_LAYERS, handle_done },
};

static int add_context(const struct session *s, const char *what, struct hw_err *e)
{
	const char *host = incoming_host(s->image);

	return err_ctx(e, "%s %s%s%s: %s", job_verb(s->o->job), s->o->job->reference,
		       host ? " from " : "", str_or(host, ""), what);
}

static int fail_protocol(struct session *s, struct hw_err *e)
{
	s->protocol_error = true;
	job_clean_text(e->msg);		   /* it may quote the message */
	err_replace(e, -EINVAL, -EBADMSG); /* the message is malformed, not the request */
	return add_context(s, "hawser-fetch: protocol error", e);
}

static int handle_message(struct session *s, const struct job_message *m, struct hw_err *e)
{
	size_t i = 0;

	if (m->type == JOB_FAILED)
		return job_decode_failed(m, e);
	while (i < ARRAY_SIZE(handlers) &&
	       (handlers[i].type != m->type || handlers[i].state != s->state))
		i++;
	if (i == ARRAY_SIZE(handlers)) {
		err_text(e, -EBADMSG, "unexpected message of type %d", m->type);
		return fail_protocol(s, e);
	}
	switch (handlers[i].handle(s, m, e)) {
	case 0:
		return 0;
	case -EBADMSG: /* the message is wrong; other errors come from our store */
	case -EINVAL:
	case -EOPNOTSUPP:
	case -EFBIG:
		return fail_protocol(s, e);
	default:
		return add_context(s, "write to the store", e);
	}
}

/* ---- process --------------------------------------------------------------- */

/* Adds documents that are in the store to the job, so that hawser-fetch need not fetch them again:
 * most tags have not changed. */
static void add_known_documents(struct store *store, struct fetch_job *job)
{
	AUTO(store_snapshot_put) const struct store_snapshot *snap = store_snapshot_get(store);
	AUTO(buf_done) struct buf manifest = { 0 }, config = { 0 };
	const struct store_image *image = NULL;
	struct hw_err ignored;

	if (store_snapshot_find(snap, job->reference, &image, &ignored) > 0 &&
	    store_image_read(store, image->id, &manifest, &config, &ignored) > 0 &&
	    manifest.len + config.len < KNOWN_MAX) {
		strings_add(&job->known_documents, manifest.data);
		strings_add(&job->known_documents, config.data);
	}
}

static int start_fetch(struct session *s, struct hw_err *e)
{
	int r = 0;

	s->fetch = s->o->standby && !s->from_standby ? standby_take(s->o->standby) : NULL;
	s->from_standby = s->fetch != NULL;
	if (!s->fetch)
		r = fetch_start(s->o->program, &s->fetch, e);
	/* now, while the process starts */
	if (r == 0 && s->o->job->image == 0 && s->o->job->known_documents.n == 0)
		add_known_documents(s->o->store, s->o->job);
	if (r == 0)
		r = job_send_table(helper_socket(s->fetch), JOB_JOB, job_fields, s->o->job,
				   s->o->archive, MESSAGE_MS, e);
	return r < 0 ? err_ctx(e, "%s %s", job_verb(s->o->job), s->o->job->reference) : 0;
}

/* How long hawser-fetch may send no message. For each registry and mirror hawser-fetch itself
 * applies and reports the shorter timeout idle_ms, so this one is reached only if it hangs. */
static int timeout_ms(const struct fetch_job *job)
{
	int64_t ms = 2 * (int64_t)job->idle_ms * (int64_t)(job->mirrors.n + 1);

	if (job->image > 0)
		return ARCHIVE_MS;
	return ms < INT_MAX ? (int)ms : INT_MAX;
}

/* @r: error of a wait for hawser-fetch */
static int fail_wait(const struct session *s, int r, struct hw_err *e)
{
	if (r == -ETIMEDOUT)
		err_text(e, r, "hawser-fetch stalled: no message for %d s",
			 (timeout_ms(s->o->job) + 999) / 1000);
	return err_ctx(e, "%s %s", job_verb(s->o->job), s->o->job->reference);
}

static int receive_message(struct session *s, int64_t deadline, struct hw_err *e)
{
	AUTO(job_message_done) struct job_message m = { .fd = -1 };
	int r;

	r = job_receive_from(s->fetch, s->o->cancel_fd, deadline, &m, e);
	if (r == -ECANCELED || r == -ETIMEDOUT)
		return fail_wait(s, r, e);
	if (r < 0)
		return fail_protocol(s, e);
	if (r > 0)
		return handle_message(s, &m, e);
	if (s->from_standby && s->state == WAIT_RESOLVED) {
		/* the standby process exited before it received the job: start another one */
		helper_free(take_ptr(s->fetch));
		return start_fetch(s, e);
	}
	helper_exit_error(s->fetch, "hawser-fetch", e);
	return err_ctx(e, "%s %s", job_verb(s->o->job), s->o->job->reference);
}

/* Wait for one event and handle it; if nothing is pending, commit complete layers instead. */
static int process_event(struct session *s, struct hw_err *e)
{
	int64_t deadline = time_deadline(timeout_ms(s->o->job));
	bool can_commit = incoming_has_complete_layers(s->image);
	int r;

	r = helper_wait(s->fetch, helper_socket(s->fetch), s->o->cancel_fd,
			can_commit ? time_now() : deadline, e);
	if (r == 0)
		return receive_message(s, deadline, e);
	if (r != -ETIMEDOUT || !can_commit)
		return fail_wait(s, r, e);
	if (incoming_commit_layers(s->image, e) < 0)
		return add_context(s, "write to the store", e);
	return 0;
}

/* After a failure, complete layers are still committed, so that the next attempt need not fetch
 * them again. If the disk is full, the layers of earlier failed pulls are removed; the layers of
 * this pull are held and stay. */
static void keep_layers(const struct session *s, const struct hw_err *why)
{
	struct hw_err e;
	int r;

	r = s->protocol_error ? 0 : incoming_commit_layers(s->image, &e);
	if (r == 0 && (why->code == -ENOSPC || why->code == -EDQUOT))
		r = store_trim(s->o->store, &e);
	if (r < 0)
		log_debug("%s %s: keep complete layers: %s", job_verb(s->o->job),
			  s->o->job->reference, e.msg);
}

int session_run(const struct session_options *o, struct incoming **ret_image,
		struct helper **ret_fetch, struct hw_err *e)
{
	AUTO(session_done) struct session s = { .o = o };
	int r;

	s.image = incoming_new(o->store, o->job, o->progress);
	r = start_fetch(&s, e);
	while (r == 0 && s.state != DONE)
		r = process_event(&s, e);
	if (r < 0) {
		keep_layers(&s, e);
		return r;
	}
	*ret_image = take_ptr(s.image);
	*ret_fetch = take_ptr(s.fetch);
	return 0;
}
