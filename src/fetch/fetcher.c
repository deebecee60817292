/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/fetcher.c - the process that talks to registries, or reads an archive
 */
#include "fetch/fetcher.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/os/file.h"
#include "base/str.h"
#include "base/time.h"
#include "fetch/codec/decompress.h"
#include "fetch/http/http.h"
#include "fetch/source/source.h"
#include "fetch/unpack/disk-space.h"

#define PROGRESS_NS (200 * INT64_C(1000000)) /* between two messages about a layer */

struct fetcher {
	int socket;
	struct job job;
	int archive; /* that the image is in; -1: none */
	struct source *source;
	struct resolved_image found;
	pthread_mutex_t lock; /* of sending */
	int *blobs;	      /* files for layers, not yet in work; -1: none */
};

/* A layer that is being fetched. */
struct work {
	struct fetcher *fetcher;
	int layer;
	int pipe;
	int blob; /* a file for it as it comes; -1: none */
	struct disk_space space;
	int64_t got, told_at;
	struct decompress *expand;
};

/* ---- the job --------------------------------------------------------------- */

static int decode_job(const struct job_message *m, struct job *job, struct hw_err *e)
{
	int r;

	if (m->type != JOB_JOB)
		return err_text(e, -EBADMSG, "a message of type %d is no job", m->type);
	r = job_decode(m, job_fields, job, e);
	if (r == 0 && (job->image > 0) != (m->fd >= 0))
		r = err_text(e, -EINVAL,
			     "an image of an archive, and none, or the other way round");
	return r;
}

/** receive_job() - from the daemon, or from the supervisor */
int receive_job(int socket, struct job_message *ret_message, struct job *ret_job, struct hw_err *e)
{
	int r = job_receive(socket, 0, ret_message, e);

	if (r == 0)
		return err_text(e, -EPIPE, "nobody has a job");
	if (r > 0)
		r = decode_job(ret_message, ret_job, e);
	return r < 0 ? err_ctx(e, "job") : 0;
}

/** receive_job_forget() - the text of it */
void receive_job_forget(struct job_message *m)
{
	if (m->data.data)
		explicit_bzero(m->data.data, m->data.len);
}

/* ---- the user -------------------------------------------------------------- */

static int limit(int resource, rlim_t most, struct hw_err *e)
{
	struct rlimit l = { most, most };

	if (setrlimit(resource, &l) < 0)
		return err_set(e, -errno, "set a limit");
	return 0;
}

/* From root to anyone else all capabilities are lost, and nothing brings them back. */
static int become(uint32_t uid, struct hw_err *e)
{
	int r = limit(RLIMIT_CORE, 0, e);

	if (r < 0)
		return r;
	if (geteuid() == 0 && (setgroups(0, NULL) < 0 || setresgid(uid, uid, uid) < 0 ||
			       setresuid(uid, uid, uid) < 0))
		return err_set(e, -errno, "become user %u", uid);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 ||
	    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
		return err_set(e, -errno, "give up what is not needed");
	return 0;
}

/* ---- messages -------------------------------------------------------------- */

static int say(struct fetcher *f, enum job_type type, const struct hw_field *table, const void *in,
	       struct hw_err *e)
{
	int r;

	pthread_mutex_lock(&f->lock);
	r = job_send_table(f->socket, type, table, in, -1, f->job.idle_ms, e);
	pthread_mutex_unlock(&f->lock);
	return r;
}

/* Who cannot say it ends: that is seen, too. */
static void say_failed(struct fetcher *f, const struct hw_err *why)
{
	struct hw_err ignored;

	pthread_mutex_lock(&f->lock);
	if (job_send_failed(f->socket, why, f->job.idle_ms, &ignored) < 0)
		_exit(EXIT_FAILURE);
	pthread_mutex_unlock(&f->lock);
}

static const struct descriptor *descriptor_of(const struct work *w)
{
	return manifest_layer(w->fetcher->found.manifest, (size_t)w->layer);
}

static int say_progress(struct work *w, enum job_type type, struct hw_err *e)
{
	struct job_step step = { .layer = w->layer,
				 .bytes = w->got,
				 .size = descriptor_of(w)->size };

	w->told_at = time_now();
	return say(w->fetcher, type, job_step_fields, &step, e);
}

/* Every now and then. */
static int tell(struct work *w, struct hw_err *e)
{
	return time_now() - w->told_at < PROGRESS_NS ? 0 : say_progress(w, JOB_PROGRESS, e);
}

/* ---- one layer ------------------------------------------------------------- */

/* A little that is fetched may be much to be unpacked: that is progress, too. */
static int write_pipe(void *ctx, const void *data, size_t len, struct hw_err *e)
{
	struct work *w = ctx;
	const char *p = data;

	while (len > 0) {
		struct pollfd poller = { .fd = w->pipe, .events = POLLOUT };
		ssize_t n = write(w->pipe, p, len);

		if (n < 0 && errno == EAGAIN) {
			if (poll(&poller, 1, w->fetcher->job.idle_ms) == 0)
				return err_text(e, -ETIMEDOUT, "nobody unpacks it");
			continue;
		}
		if (n < 0 && errno != EINTR)
			return err_set(e, -errno, "pass it on");
		p += n > 0 ? n : 0;
		len -= n > 0 ? (size_t)n : 0;
	}
	return tell(w, e);
}

static int keep_bytes(struct work *w, const void *data, size_t len, struct hw_err *e)
{
	int r = disk_space_use(&w->space, (int64_t)len, e);

	return r < 0 ? r : file_write_fd(w->blob, data, len, e);
}

static int take_bytes(void *ctx, const void *data, size_t len, struct hw_err *e)
{
	struct work *w = ctx;
	int r = w->blob < 0 ? 0 : keep_bytes(w, data, len, e);

	if (r == 0)
		r = decompress_feed(w->expand, data, len, e);
	w->got += (int64_t)len;
	return r < 0 ? r : tell(w, e);
}

static int fetch_layer(struct work *w, struct hw_err *e)
{
	const struct fetcher *f = w->fetcher;
	AUTO(decompress_free) struct decompress *expand = decompress_new(write_pipe, w);
	int r;

	w->expand = expand;
	r = f->source->blob(f->source, &f->found, descriptor_of(w), take_bytes, w, e);
	if (r == 0 && decompress_finish(expand, e) < 0)
		r = err_ctx(e, "%s %s from %s: layer %s", job_verb(&f->job), f->job.reference,
			    f->found.host, descriptor_of(w)->digest);
	return r < 0 ? r : say_progress(w, JOB_FETCHED, e);
}

static void *work_run(void *arg)
{
	struct work *w = arg;
	struct hw_err e;

	if (fetch_layer(w, &e) < 0)
		say_failed(w->fetcher, &e);
	close(w->pipe);
	mem_close_fd(&w->blob);
	free(w);
	return NULL;
}

/* Which layer a message is about, that has a descriptor for it. */
static int layer_of(const struct fetcher *f, const struct job_message *m, int *ret_layer,
		    struct hw_err *e)
{
	AUTO(job_step_done) struct job_step step = { 0 };
	int r = job_decode(m, job_step_fields, &step, e);

	if (r < 0)
		return r;
	if (m->fd < 0 || (size_t)step.layer >= f->found.manifest->layers.n)
		return err_text(e, -EINVAL, "there is no layer %d, or nowhere to put it",
				step.layer);
	*ret_layer = step.layer;
	return 0;
}

static int take_blob(struct fetcher *f, struct job_message *m, struct hw_err *e)
{
	int layer = 0, r = layer_of(f, m, &layer, e);

	if (r < 0)
		return r;
	mem_close_fd(&f->blobs[layer]);
	f->blobs[layer] = take_fd(m->fd);
	return 0;
}

static int work_start(struct fetcher *f, struct job_message *m, struct hw_err *e)
{
	struct work *w;
	pthread_t thread;
	int layer = 0, r = layer_of(f, m, &layer, e);

	if (r < 0)
		return r;
	fcntl(m->fd, F_SETFL, O_NONBLOCK);
	w = mem_new(sizeof(*w));
	*w = (struct work){ .fetcher = f,
			    .layer = layer,
			    .pipe = take_fd(m->fd),
			    .blob = take_fd(f->blobs[layer]) };
	w->space = (struct disk_space){ .fd = w->blob, .reserve = f->job.reserve };
	r = -pthread_create(&thread, NULL, work_run, w);
	if (r < 0) {
		close(w->pipe);
		mem_close_fd(&w->blob);
		free(w);
		return err_set(e, r, "start a thread");
	}
	pthread_detach(thread);
	return 0;
}

/* ---- the process ----------------------------------------------------------- */

static int say_found(struct fetcher *f, struct hw_err *e)
{
	const struct resolved_image *found = &f->found;
	struct job_resolved resolved = { .digest = (char *)found->digest,
					 .host = (char *)found->host,
					 .names = found->names,
					 .images = found->images };
	int r = say(f, JOB_RESOLVED, job_resolved_fields, &resolved, e);

	for (size_t i = 0; r == 0 && i < found->n_documents; i++)
		r = job_send(f->socket, JOB_MANIFEST, found->documents[i].data,
			     found->documents[i].len, -1, f->job.idle_ms, e);
	if (r == 0)
		r = job_send(f->socket, JOB_CONFIG, found->config.data, found->config.len, -1,
			     f->job.idle_ms, e);
	return r;
}

/* From here on no file is written that is larger than a layer. */
static int prepare(struct fetcher *f, struct hw_err *e)
{
	size_t n = f->found.manifest->layers.n;
	int64_t most = 0;

	f->blobs = mem_new((n + 1) * sizeof(*f->blobs));
	for (size_t i = 0; i < n; i++) {
		int64_t size = manifest_layer(f->found.manifest, i)->size;

		f->blobs[i] = -1;
		most = size > most ? size : most;
	}
	return limit(RLIMIT_FSIZE, (rlim_t)most, e);
}

/* Files of the host are read before the process becomes somebody else. */
static int open_source(struct fetcher *f, struct hw_err *e)
{
	if (f->job.image == 0)
		return registry_source_new(&f->job, &f->source, e);
	f->source = archive_source_new(&f->job, f->archive);
	return 0;
}

static int find(struct fetcher *f, struct hw_err *e)
{
	int r = open_source(f, e);

	if (r == 0)
		r = become(f->job.uid, e);
	if (r == 0)
		r = f->source->find(f->source, &f->found, e);
	if (r == 0)
		r = prepare(f, e);
	return r < 0 ? r : say_found(f, e);
}

static int serve(struct fetcher *f, struct hw_err *e)
{
	for (;;) {
		AUTO(job_message_done) struct job_message m = { .fd = -1 };
		int r = job_receive(f->socket, 0, &m, e);

		if (r <= 0)
			return r;
		if (m.type != JOB_FETCH && m.type != JOB_BLOB)
			return err_text(e, -EBADMSG, "a message of type %d is not for us", m.type);
		r = m.type == JOB_FETCH ? work_start(f, &m, e) : take_blob(f, &m, e);
		if (r < 0)
			return r;
	}
}

static int get_job(struct fetcher *f, struct hw_err *e)
{
	AUTO(job_message_done) struct job_message m = { .fd = -1 };
	int r = receive_job(f->socket, &m, &f->job, e);

	receive_job_forget(&m);
	f->archive = r < 0 ? -1 : take_fd(m.fd);
	if (r < 0 && f->job.reference)
		return err_ctx(e, "%s %s", job_verb(&f->job), f->job.reference);
	return r;
}

/**
 * fetcher_run() - be the process that fetches, until the socket is closed
 *
 * Threads may still run when it returns: what they work with is not freed, and the
 * process ends.
 */
int fetcher_run(int socket)
{
	static struct fetcher f;
	struct hw_err e;

	f.socket = socket;
	pthread_mutex_init(&f.lock, NULL);
	http_preload();
	if (get_job(&f, &e) == 0 && find(&f, &e) == 0 && serve(&f, &e) == 0)
		return 0;
	if (f.job.reference) /* else nobody has a job, and nobody listens */
		say_failed(&f, &e);
	return 1;
}
