/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/fetcher.c - the fetcher: the process that talks to registries, or reads an archive
 */
#include "fetch/fetcher.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/os/file.h"
#include "base/os/helper.h"
#include "base/os/thread.h"
#include "base/str.h"
#include "base/time.h"
#include "confine/confine.h"
#include "fetch/codec/decompress.h"
#include "fetch/http/http.h"
#include "fetch/source/source.h"
#include "fetch/unpack/disk-space.h"

#define PROGRESS_NS (200 * INT64_C(1000000)) /* minimum time between progress messages */

struct fetcher {
	int socket;
	struct fetch_job job;
	int archive; /* file with the image; -1: the image comes from a registry */
	struct source *source;
	struct resolved_image image;
	pthread_mutex_t lock; /* held while a message is sent */
	/* for each layer: file to store its blob in, until the layer is fetched; -1: none */
	int *blobs;
};

/* A layer that is being fetched. Each layer has its own thread. */
struct layer_fetch {
	struct fetcher *fetcher;
	int layer;
	int pipe; /* pipe to the unpacker */
	int blob; /* file to store the blob in; -1: none */
	struct disk_space space;
	int64_t received, reported_at;
	struct decompress *decompress;
};

/* ---- the job --------------------------------------------------------------- */

int receive_job(int socket, struct job_message *ret_message, struct fetch_job *ret_job,
		struct hw_err *e)
{
	int r;

	r = job_receive(socket, 0, ret_message, e);
	if (r == 0)
		return err_text(e, -EPIPE, "connection closed before a job was received");
	if (r < 0)
		return err_ctx(e, "job");
	if (ret_message->type != JOB_JOB)
		return err_text(e, -EBADMSG, "job: unexpected message of type %d",
				ret_message->type);
	r = job_decode(ret_message, job_fields, ret_job, e);
	if (r < 0)
		return err_ctx(e, "job");
	if (ret_job->image > 0 && ret_message->fd < 0)
		return err_text(e, -EBADMSG, "job: missing file descriptor of the archive");
	if (ret_job->image <= 0 && ret_message->fd >= 0)
		return err_text(e, -EBADMSG,
				"job: unexpected file descriptor: the image is not in an archive");
	return 0;
}

void erase_job_message(struct job_message *m)
{
	if (m->data.data)
		explicit_bzero(m->data.data, m->data.len);
}

/* ---- privileges ------------------------------------------------------------ */

static int set_limit(int resource, rlim_t max, struct hw_err *e)
{
	struct rlimit l = { max, max };

	if (setrlimit(resource, &l) < 0)
		return err_set(e, -errno, "set a resource limit");
	return 0;
}

/* Switching from root to another user drops all capabilities, permanently. */
static int drop_privileges(const struct fetch_job *job, struct hw_err *e)
{
	uint32_t uid = job->uid;
	pid_t parent = getppid();
	int r;

	r = set_limit(RLIMIT_CORE, 0, e);
	if (r == 0)
		r = helper_limit_memory(FETCHER_MEMORY(job->parallel), e);
	if (r < 0)
		return r;
	if (geteuid() == 0 && (setgroups(0, NULL) < 0 || setresgid(uid, uid, uid) < 0 ||
			       setresuid(uid, uid, uid) < 0))
		return err_set(e, -errno, "switch to user %u", uid);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return err_set(e, -errno, "drop privileges");
	/* again, as the new user: the change has cleared the parent-death signal */
	r = helper_end_with_parent(parent, e);
	if (r == 0)
		r = helper_end_on_eof(HELPER_SOCKET, e);
	if (r < 0 || job->unconfined)
		return r;
	return confine(job->image > 0 ? CONFINE_READER : CONFINE_CLIENT, -1, e);
}

/* ---- messages -------------------------------------------------------------- */

static int send_message(struct fetcher *f, enum job_type type, const struct hw_field *table,
			const void *in, struct hw_err *e)
{
	int r;

	pthread_mutex_lock(&f->lock);
	r = job_send_table(f->socket, type, table, in, -1, f->job.idle_ms, e);
	pthread_mutex_unlock(&f->lock);
	return r;
}

/* If the error cannot be sent, the process exits, which the supervisor notices. */
static void send_error(struct fetcher *f, const struct hw_err *error)
{
	struct hw_err ignored;

	pthread_mutex_lock(&f->lock);
	if (job_send_failed(f->socket, error, f->job.idle_ms, &ignored) < 0)
		_exit(EXIT_FAILURE);
	pthread_mutex_unlock(&f->lock);
}

static const struct descriptor *descriptor_of(const struct layer_fetch *l)
{
	return manifest_layer(l->fetcher->image.manifest, (size_t)l->layer);
}

/* @type: JOB_PROGRESS or JOB_FETCHED */
static int report(struct layer_fetch *l, enum job_type type, struct hw_err *e)
{
	struct job_step step = { .layer = l->layer,
				 .bytes = l->received,
				 .size = descriptor_of(l)->size };

	l->reported_at = time_now();
	return send_message(l->fetcher, type, job_step_fields, &step, e);
}

static int report_progress(struct layer_fetch *l, struct hw_err *e)
{
	return time_now() - l->reported_at < PROGRESS_NS ? 0 : report(l, JOB_PROGRESS, e);
}

/* ---- one layer ------------------------------------------------------------- */

/* Also reports progress, because unpacking a few compressed bytes may take long. */
static int write_pipe(void *ctx, const void *data, size_t len, struct hw_err *e)
{
	struct layer_fetch *l = ctx;
	int idle_ms = l->fetcher->job.idle_ms;
	const char *p = data;

	while (len > 0) {
		struct pollfd poller = { .fd = l->pipe, .events = POLLOUT };
		ssize_t n;

		n = write(l->pipe, p, len);
		if (n < 0 && errno == EAGAIN) {
			if (poll(&poller, 1, idle_ms) == 0)
				return err_text(e, -ETIMEDOUT, "unpacker stalled for %d ms",
						idle_ms);
			continue;
		}
		if (n < 0 && errno != EINTR)
			return err_set(e, -errno, "write to the unpacker");
		p += n > 0 ? n : 0;
		len -= n > 0 ? (size_t)n : 0;
	}
	return report_progress(l, e);
}

static int on_blob_data(void *ctx, const void *data, size_t len, struct hw_err *e)
{
	struct layer_fetch *l = ctx;
	int r = 0;

	if (l->blob >= 0)
		r = disk_space_use(&l->space, (int64_t)len, e);
	if (r == 0 && l->blob >= 0)
		r = file_write_fd(l->blob, data, len, e);
	if (r == 0)
		r = decompress_feed(l->decompress, data, len, e);
	l->received += (int64_t)len;
	return r < 0 ? r : report_progress(l, e);
}

/* Body of the thread that fetches a layer. An error is sent before the pipe is closed
 * (fetcher.h). */
static void *run_layer_fetch(void *arg)
{
	struct layer_fetch *l = arg;
	const struct fetcher *f = l->fetcher;
	struct hw_err e;
	int r;

	l->decompress = decompress_new(write_pipe, l);
	r = f->source->fetch_blob(f->source, &f->image, descriptor_of(l), on_blob_data, l, &e);
	if (r == 0 && decompress_finish(l->decompress, &e) < 0)
		r = err_ctx(&e, "%s %s from %s: layer %s", job_verb(&f->job), f->job.reference,
			    f->image.host, descriptor_of(l)->digest);
	if (r == 0)
		r = report(l, JOB_FETCHED, &e);
	decompress_free(l->decompress);
	if (r < 0)
		send_error(l->fetcher, &e);
	close(l->pipe);
	mem_close_fd(&l->blob);
	free(l);
	return NULL;
}

/* ---- requests of the supervisor --------------------------------------------- */

/* Takes over @pipe. */
static int start_layer_fetch(struct fetcher *f, int layer, int pipe, struct hw_err *e)
{
	struct layer_fetch *l = mem_new(sizeof(*l));
	int r;

	fcntl(pipe, F_SETFL, O_NONBLOCK);
	*l = (struct layer_fetch){
		.fetcher = f, .layer = layer, .pipe = pipe, .blob = take_fd(f->blobs[layer])
	};
	l->space = (struct disk_space){ .fd = l->blob, .reserve = f->job.reserve };
	r = thread_start(run_layer_fetch, l, NULL, e);
	if (r < 0) {
		close(l->pipe);
		mem_close_fd(&l->blob);
		free(l);
		return err_ctx(e, "layer %d", layer);
	}
	return 0;
}

static int serve_requests(struct fetcher *f, struct hw_err *e)
{
	for (;;) {
		AUTO(job_message_done) struct job_message m = { .fd = -1 };
		AUTO(job_step_done) struct job_step step = { 0 };
		int r;

		r = job_receive(f->socket, 0, &m, e);
		if (r <= 0)
			return r;
		if (m.type != JOB_FETCH && m.type != JOB_BLOB)
			return err_text(e, -EBADMSG, "unexpected message of type %d", m.type);
		r = job_decode(&m, job_step_fields, &step, e);
		if (r < 0)
			return r;
		if ((size_t)step.layer >= f->image.manifest->layers.n)
			return err_text(e, -EBADMSG, "layer number %d out of range", step.layer);
		if (m.fd < 0)
			return err_text(e, -EBADMSG, "layer %d: message without a file descriptor",
					step.layer);
		if (m.type == JOB_BLOB) {
			mem_close_fd(&f->blobs[step.layer]);
			f->blobs[step.layer] = take_fd(m.fd);
			continue;
		}
		r = start_layer_fetch(f, step.layer, take_fd(m.fd), e);
		if (r < 0)
			return r;
	}
}

/* ---- the process ----------------------------------------------------------- */

static int get_job(struct fetcher *f, struct hw_err *e)
{
	AUTO(job_message_done) struct job_message m = { .fd = -1 };
	int r;

	r = receive_job(f->socket, &m, &f->job, e);
	erase_job_message(&m);
	f->archive = r < 0 ? -1 : take_fd(m.fd);
	if (r < 0 && f->job.reference)
		return err_ctx(e, "%s %s", job_verb(&f->job), f->job.reference);
	return r;
}

static int send_image(struct fetcher *f, struct hw_err *e)
{
	const struct resolved_image *image = &f->image;
	struct job_resolved resolved = { .digest = (char *)image->digest,
					 .host = (char *)image->host,
					 .names = image->names,
					 .images = image->images };
	int r;

	r = send_message(f, JOB_RESOLVED, job_resolved_fields, &resolved, e);
	for (size_t i = 0; r == 0 && i < image->n_documents; i++)
		r = job_send(f->socket, JOB_MANIFEST, image->documents[i].data,
			     image->documents[i].len, -1, f->job.idle_ms, e);
	if (r < 0)
		return r;
	return job_send(f->socket, JOB_CONFIG, image->config.data, image->config.len, -1,
			f->job.idle_ms, e);
}

/* Reads the host's files before it drops privileges, and uses the network only afterwards. */
static int resolve_and_send_image(struct fetcher *f, struct hw_err *e)
{
	int64_t largest = 0;
	size_t n;
	int r = 0;

	if (f->job.image == 0)
		r = registry_source_new(&f->job, &f->source, e);
	else
		f->source = archive_source_new(&f->job, f->archive);
	if (r < 0)
		return r;
	r = drop_privileges(&f->job, e);
	if (r < 0)
		return err_replace(e, -EINVAL, -EIO); /* the request is not wrong */
	r = f->source->resolve(f->source, &f->image, e);
	if (r < 0)
		return r;
	n = f->image.manifest->layers.n;
	f->blobs = mem_new((n + 1) * sizeof(*f->blobs));
	for (size_t i = 0; i < n; i++) {
		int64_t size = manifest_layer(f->image.manifest, i)->size;

		f->blobs[i] = -1;
		largest = size > largest ? size : largest;
	}
	r = set_limit(RLIMIT_FSIZE, (rlim_t)largest, e); /* no blob may be larger */
	return r < 0 ? r : send_image(f, e);
}

int fetcher_run(void *unused)
{
	static struct fetcher f;
	struct hw_err e;

	(void)unused;
	f.socket = HELPER_SOCKET;
	pthread_mutex_init(&f.lock, NULL);
	http_preload();
	if (get_job(&f, &e) == 0 && resolve_and_send_image(&f, &e) == 0 &&
	    serve_requests(&f, &e) == 0)
		return 0;
	if (f.job.reference) /* without a job there is no receiver for the error */
		send_error(&f, &e);
	return 1;
}
