/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image/pull/session.c - one pull or load, from the job to the layers in the store
 *
 *	state      what may come        what is done
 *	ASKED      RESOLVED             its digest is what the reference says, if that says one
 *	RESOLVED   MANIFEST             an index: remembered; a manifest: MANIFESTED
 *	MANIFESTED CONFIG               layers are looked up, stages made, the PLAN is sent
 *	PLANNED    PROGRESS, LAYER      the board shows it
 *	           nothing, for now     layers that are complete are put into the store
 *	           DONE                 so are the last ones
 *	any        FAILED               that is the error
 *
 * So a layer waits for the disk while others are still fetched, and many small ones that come at
 * once wait together.
 */
#include "image/pull/session.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/os/proc.h"
#include "base/str.h"
#include "base/time.h"
#include "image/pull/incoming.h"

#define ARCHIVE_MS (10 * 60 * 1000) /* to read all of one, before there is something to say */
#define MESSAGE_MS (30 * 1000)	    /* for the rest of a message that has begun */
#define DEATH_MS   2000		    /* to be gone, after the socket was closed */

enum state { ASKED, RESOLVED, MANIFESTED, PLANNED, ENDED };

struct talk {
	const struct pull_run *p;
	enum state state;
	struct fetch_child *fetch;
	bool waited; /* it was kept ready */
	struct pull_image *image;
	bool distrusted;
};

static void talk_done(struct talk *t)
{
	fetch_child_free(t->fetch);
	pull_image_free(t->image);
}
AUTO_VALUE_DEFINE(talk_done, struct talk);

/* ---- what it says ---------------------------------------------------------- */

static int take_resolved(struct talk *t, const struct job_message *m, struct hw_err *e)
{
	t->state = RESOLVED;
	return pull_image_resolved(t->image, m, e);
}

static int take_manifest(struct talk *t, const struct job_message *m, struct hw_err *e)
{
	int r = pull_image_document(t->image, m, e);

	if (r > 0)
		t->state = MANIFESTED;
	return r < 0 ? r : 0;
}

static int take_config(struct talk *t, const struct job_message *m, struct hw_err *e)
{
	AUTO(job_plan_done) struct job_plan plan = { 0 };
	int r = pull_image_config(t->image, m, &plan, e);

	t->state = PLANNED;
	if (r == 0)
		r = job_send_table(t->fetch->socket, JOB_PLAN, job_plan_fields, &plan, -1,
				   MESSAGE_MS, e);
	return r;
}

static int take_progress(struct talk *t, const struct job_message *m, struct hw_err *e)
{
	return pull_image_progress(t->image, m, e);
}

static int take_layer(struct talk *t, const struct job_message *m, struct hw_err *e)
{
	return pull_image_layer(t->image, m, e);
}

static int take_done(struct talk *t, const struct job_message *m, struct hw_err *e)
{
	(void)m;
	t->state = ENDED;
	return pull_image_complete(t->image, e);
}

static const struct {
	enum job_type type;
	enum state state; /* in which it may come */
	int (*take)(struct talk *t, const struct job_message *m, struct hw_err *e);
} messages[] = {
	{ JOB_RESOLVED, ASKED, take_resolved },	 { JOB_MANIFEST, RESOLVED, take_manifest },
	{ JOB_CONFIG, MANIFESTED, take_config }, { JOB_PROGRESS, PLANNED, take_progress },
	{ JOB_LAYER, PLANNED, take_layer },	 { JOB_DONE, PLANNED, take_done },
};

static int fail(const struct talk *t, const char *what, struct hw_err *e)
{
	const char *host = pull_image_host(t->image);

	return err_ctx(e, "%s %s%s%s: %s", job_verb(t->p->job), t->p->job->reference,
		       host ? " from " : "", str_or(host, ""), what);
}

static int distrust(struct talk *t, struct hw_err *e)
{
	t->distrusted = true;
	return fail(t, "hawser-fetch does not do as it should", e);
}

/* What it said is wrong, or our own store has failed. */
static int blame(struct talk *t, struct hw_err *e)
{
	static const int theirs[] = { -EBADMSG, -EINVAL, -EOPNOTSUPP, -EFBIG };

	for (size_t i = 0; i < ARRAY_SIZE(theirs); i++)
		if (e->code == theirs[i])
			return distrust(t, e);
	return fail(t, "store it", e);
}

static int take(struct talk *t, const struct job_message *m, struct hw_err *e)
{
	if (m->type == JOB_FAILED)
		return job_decode_failed(m, e);
	for (size_t i = 0; i < ARRAY_SIZE(messages); i++)
		if (messages[i].type == m->type && messages[i].state == t->state)
			return messages[i].take(t, m, e) < 0 ? blame(t, e) : 0;
	err_text(e, -EBADMSG, "a message of type %d was not to be sent now", m->type);
	return distrust(t, e);
}

/* ---- the conversation ------------------------------------------------------ */

static int start(struct talk *t, struct hw_err *e)
{
	int r = 0;

	t->fetch = t->p->spare && !t->waited ? spare_take(t->p->spare) : NULL;
	t->waited = t->fetch != NULL;
	if (!t->fetch)
		r = fetch_child_start(t->p->program, &t->fetch, e);
	if (r == 0)
		r = job_send_table(t->fetch->socket, JOB_JOB, job_fields, t->p->job, t->p->archive,
				   MESSAGE_MS, e);
	return r < 0 ? err_ctx(e, "%s %s", job_verb(t->p->job), t->p->job->reference) : 0;
}

/* It has closed its socket: it ends, or is ended. */
static int has_died(struct talk *t, struct hw_err *e)
{
	struct pollfd poller = { .fd = child_fd(t->fetch->child), .events = POLLIN };
	char text[64];
	int status, r;

	if (poll(&poller, 1, DEATH_MS) <= 0)
		child_kill(t->fetch->child);
	r = child_wait(take_ptr(t->fetch->child), &status, e);
	if (r < 0)
		return err_ctx(e, "%s %s", job_verb(t->p->job), t->p->job->reference);
	return err_text(e, -EIO, "%s %s: hawser-fetch has died: %s", job_verb(t->p->job),
			t->p->job->reference, proc_status_format(status, text, sizeof(text)));
}

/* One that was kept ready has died before it could do anything. */
static int start_anew(struct talk *t, struct hw_err *e)
{
	fetch_child_free(take_ptr(t->fetch));
	return start(t, e);
}

static int read_one(struct talk *t, struct hw_err *e)
{
	AUTO(job_message_done) struct job_message m = { .fd = -1 };
	int r = job_receive(t->fetch->socket, MESSAGE_MS, &m, e);

	if (r == 0)
		return t->waited && t->state == ASKED ? start_anew(t, e) : has_died(t, e);
	return r < 0 ? distrust(t, e) : take(t, &m, e);
}

/* How long it may have nothing to say. It gives up each place that it asks after idle_ms itself, and
 * says why; so this is for one that is stuck. */
static int silence_ms(const struct job *job)
{
	int64_t ms = 2 * (int64_t)job->idle_ms * (int64_t)(job->mirrors.n + 1);

	if (job->image > 0)
		return ARCHIVE_MS;
	return ms < INT_MAX ? (int)ms : INT_MAX;
}

static int step(struct talk *t, struct hw_err *e)
{
	struct pollfd fds[] = {
		{ .fd = t->fetch->socket, .events = POLLIN },
		{ .fd = t->p->stop, .events = POLLIN },
		{ .fd = t->fetch->theirs < 0 ? -1 : child_fd(t->fetch->child), .events = POLLIN },
	};
	int silence = silence_ms(t->p->job);
	bool work = pull_image_has_more(t->image);
	int n = poll(fds, ARRAY_SIZE(fds), work ? 0 : silence);

	if (n < 0)
		return errno == EINTR ? 0 : err_set(e, -errno, "wait for hawser-fetch");
	if (n == 0 && work)
		return pull_image_keep(t->image, e) < 0 ? fail(t, "store it", e) : 0;
	if (n == 0)
		return err_text(e, -ETIMEDOUT, "%s %s: hawser-fetch has said nothing for %d s",
				job_verb(t->p->job), t->p->job->reference, (silence + 999) / 1000);
	if (fds[1].revents)
		return err_text(e, -ECANCELED, "%s %s: cancelled", job_verb(t->p->job),
				t->p->job->reference);
	if (fds[0].revents || fds[2].revents)
		fetch_child_runs(t->fetch);
	return fds[0].revents ? read_one(t, e) : 0;
}

/* What is complete need not be fetched again, whatever became of the rest. Where there is no room,
 * what earlier pulls have left goes; our own is held. */
static void keep_layers(const struct talk *t, const struct hw_err *why)
{
	struct hw_err e;
	int r = t->distrusted ? 0 : pull_image_keep(t->image, &e);

	if (r == 0 && (why->code == -ENOSPC || why->code == -EDQUOT))
		r = store_trim(t->p->store, &e);
	if (r < 0)
		log_debug("%s %s: keep its layers: %s", job_verb(t->p->job), t->p->job->reference,
			  e.msg);
}

/**
 * pull_run() - get an image and its layers
 *
 * Return: 0 when its layers are in the store, on disk; else why not
 */
int pull_run(const struct pull_run *p, struct pull_image **ret_image,
	     struct fetch_child **ret_fetch, struct hw_err *e)
{
	AUTO(talk_done) struct talk t = { .p = p };
	int r;

	t.image = pull_image_new(p->store, p->job, p->board);
	r = start(&t, e);
	while (r == 0 && t.state != ENDED)
		r = step(&t, e);
	if (r < 0) {
		keep_layers(&t, e);
		return r;
	}
	*ret_image = take_ptr(t.image);
	*ret_fetch = take_ptr(t.fetch);
	return 0;
}
