/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image/archive/load.c - load images from an archive into the store
 */
#include "image/archive/load.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/os/file.h"
#include "base/str.h"
#include "image/pull/incoming.h"
#include "image/pull/make-job.h"
#include "image/pull/session.h"

#define IMAGES_MAX 256

struct load {
	struct store *store;
	const struct pull_options *options;
	int write, read; /* file descriptors of the archive */
};

/* An image whose layers are in the store, with the job and the progress that it borrows. */
struct loaded_image {
	struct fetch_job job;
	struct pull_progress progress;
	struct incoming *image;
};

struct loaded_images {
	struct loaded_image *v[IMAGES_MAX];
	size_t n;
};

/* ---- archive --------------------------------------------------------------- */

int load_new(struct store *store, const struct pull_options *options, struct load **ret_load,
	     struct hw_err *e)
{
	AUTO(load_free) struct load *l = mem_new(sizeof(*l));
	AUTO(store_stage_free) struct store_stage *stage = NULL;

	*l = (struct load){ .store = store, .options = options, .write = -1, .read = -1 };
	if (store_layer_begin(store, &stage, e) < 0)
		return err_ctx(e, "load an archive");
	/* freeing the stage deletes the name of the file; the descriptors keep its content */
	l->write = openat(stage->dir, "archive", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	l->read = openat(stage->dir, "archive", O_RDONLY | O_CLOEXEC);
	if (l->write < 0 || l->read < 0)
		return err_set(e, -errno, "load an archive: create a file in %s/tmp",
			       store_root(store));
	*ret_load = take_ptr(l);
	return 0;
}

void load_free(struct load *l)
{
	if (!l)
		return;
	mem_close_fd(&l->write);
	mem_close_fd(&l->read);
	free(l);
}

int load_add(struct load *l, const void *data, size_t len, struct hw_err *e)
{
	struct file_space fs;

	if (file_space(l->write, &fs, e) < 0)
		return err_ctx(e, "load an archive");
	if (len + (uint64_t)l->options->reserve > fs.bytes_free)
		return err_text(e, -ENOSPC,
				"load an archive: not enough disk space for the archive: %llu "
				"bytes available, %lld bytes reserved",
				(unsigned long long)fs.bytes_free, (long long)l->options->reserve);
	if (file_write_fd(l->write, data, len, e) < 0)
		return err_ctx(e, "load an archive");
	return 0;
}

/* ---- images ---------------------------------------------------------------- */

static void loaded_images_done(struct loaded_images *images)
{
	for (size_t i = 0; i < images->n; i++) {
		incoming_free(images->v[i]->image);
		job_done(&images->v[i]->job);
		pull_progress_done(&images->v[i]->progress);
		free(images->v[i]);
	}
}
AUTO_VALUE_DEFINE(loaded_images_done, struct loaded_images);

static int load_next_image(struct load *l, const struct pull_settings *settings,
			   const struct load_request *request, struct loaded_images *images,
			   struct hw_err *e)
{
	AUTO(helper_free) struct helper *fetch = NULL;
	struct loaded_image *next = mem_new(sizeof(*next));
	struct session_options options = { .store = l->store,
					   .program = settings->program,
					   .job = &next->job,
					   .archive = l->read,
					   .cancel_fd = request->cancel_fd,
					   .progress = &next->progress };
	int r;

	pull_progress_init(&next->progress);
	images->v[images->n++] = next;
	make_load_job(settings, (int)images->n, request->format, &next->job);
	r = session_run(&options, &next->image, &fetch, e);
	/* the next image may have the same layers */
	return r < 0 ? r : incoming_commit_layers(next->image, e);
}

static int store_images(const struct loaded_images *images, struct load_result *result,
			struct hw_err *e)
{
	struct incoming *incoming[IMAGES_MAX];
	autofree struct pull_result *stored = mem_new(images->n * sizeof(*stored));
	int r;

	for (size_t i = 0; i < images->n; i++)
		incoming[i] = images->v[i]->image;
	r = incoming_store(incoming, images->n, stored, e);
	if (r < 0)
		return r;
	result->images = mem_new(images->n * sizeof(*result->images));
	for (; result->n < images->n; result->n++) {
		const struct hw_strings *names = incoming_names(incoming[result->n]);
		struct load_image *ret = &result->images[result->n];

		memcpy(ret->id, stored[result->n].id, sizeof(ret->id));
		for (size_t i = 0; i < names->n; i++)
			strings_add(&ret->names, names->v[i]);
	}
	return 0;
}

/* Images are added to the store only after the layers of all images are complete, in one change. */
static int load_images(struct load *l, const struct load_request *request,
		       struct load_result *result, struct hw_err *e)
{
	AUTO(pull_settings_done) struct pull_settings settings = { 0 };
	AUTO(loaded_images_done) struct loaded_images images = { 0 };
	int n, r;

	pull_settings_copy(l->options, &settings);
	r = load_next_image(l, &settings, request, &images, e);
	if (r < 0)
		return r;
	n = incoming_archive_images(
		images.v[0]->image); /* the number is known after the first image */
	if (n > IMAGES_MAX)
		return err_text(e, -EFBIG,
				"load an archive: too many images: got %d, want at most %d", n,
				IMAGES_MAX);
	while (images.n < (size_t)n) {
		r = load_next_image(l, &settings, request, &images, e);
		if (r < 0)
			return r;
	}
	if (request->n_names > 0 && images.n > 1)
		r = err_text(e, -EINVAL, "cannot set a name: the archive has %zu images, want 1",
			     images.n);
	else if (request->n_names > 0)
		r = incoming_set_names(images.v[0]->image, request->names, request->n_names, e);
	if (r < 0)
		return r;
	return store_images(&images, result, e);
}

int load_run(struct load *l, const struct load_request *request, struct load_result *ret_result,
	     struct hw_err *e)
{
	AUTO(load_result_done) struct load_result result = { 0 };
	struct hw_err trim;
	int r;

	r = load_images(l, request, &result, e);
	if (r < 0) {
		/* remove the layers that this load added to the store before it failed */
		if (store_trim(l->store, &trim) < 0)
			log_debug("remove the layers of a failed load: %s", trim.msg);
		return r;
	}
	*ret_result = result;
	result = (struct load_result){ 0 };
	return 0;
}

void load_result_done(struct load_result *result)
{
	for (size_t i = 0; i < result->n; i++)
		hw_strings_free(&result->images[i].names);
	free(result->images);
}
