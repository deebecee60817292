/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image/archive/load.c - images out of an archive, into the store
 */
#include "image/archive/load.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/log.h"
#include "base/os/file.h"
#include "base/str.h"
#include "image/pull/incoming.h"
#include "image/pull/make-job.h"
#include "image/pull/session.h"

#define IMAGES_MAX	 256
#define INVALID_ARGUMENT 3 /* gRPC's */

struct load {
	struct store *store;
	const struct pull_options *options;
	int write, read; /* the archive */
};

/* An image that is complete, and what it was made with. */
struct part {
	struct job job;
	struct board board;
	struct pull_image *image;
};

struct parts {
	struct part *v[IMAGES_MAX];
	size_t n;
};

/* ---- the archive ----------------------------------------------------------- */

/* A stage's folder is removed at once: what is open stays as long as it is open. */
static int open_archive(struct load *l, struct hw_err *e)
{
	AUTO(store_stage_free) struct store_stage *stage = NULL;
	int r = store_layer_begin(l->store, &stage, e);

	if (r < 0)
		return r;
	l->write = openat(stage->dir, "archive", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	l->read = openat(stage->dir, "archive", O_RDONLY | O_CLOEXEC);
	if (l->write < 0 || l->read < 0)
		return err_set(e, -errno, "make a file in %s/tmp", store_root(l->store));
	return 0;
}

/** load_new() - an archive of which nothing has come yet */
int load_new(struct store *store, const struct pull_options *options, struct load **ret_load,
	     struct hw_err *e)
{
	AUTO(load_free) struct load *l = mem_new(sizeof(*l));
	int r;

	*l = (struct load){ .store = store, .options = options, .write = -1, .read = -1 };
	r = open_archive(l, e);
	if (r < 0)
		return err_ctx(e, "load an archive");
	*ret_load = take_ptr(l);
	return 0;
}

/** load_free() - with the archive; NULL is fine */
void load_free(struct load *l)
{
	if (!l)
		return;
	mem_close_fd(&l->write);
	mem_close_fd(&l->read);
	free(l);
}

static int check_space(const struct load *l, size_t need, struct hw_err *e)
{
	struct statvfs fs;
	uint64_t room;

	if (fstatvfs(l->write, &fs) < 0)
		return err_set(e, -errno, "look for free space");
	if (__builtin_mul_overflow((uint64_t)fs.f_bavail, (uint64_t)fs.f_frsize, &room))
		room = UINT64_MAX;
	if (need + (uint64_t)l->options->reserve <= room)
		return 0;
	return err_text(e, -ENOSPC,
			"there is no space for it: %llu bytes are free, %lld are to stay",
			(unsigned long long)room, (long long)l->options->reserve);
}

/** load_add() - a piece of the archive has come */
int load_add(struct load *l, const void *data, size_t len, struct hw_err *e)
{
	int r = check_space(l, len, e);

	if (r == 0)
		r = file_write_fd(l->write, data, len, e);
	return r < 0 ? err_ctx(e, "load an archive") : 0;
}

/* ---- its images ------------------------------------------------------------ */

static void parts_done(struct parts *parts)
{
	for (size_t i = 0; i < parts->n; i++) {
		pull_image_free(parts->v[i]->image);
		job_done(&parts->v[i]->job);
		board_done(&parts->v[i]->board);
		free(parts->v[i]);
	}
}
AUTO_VALUE_DEFINE(parts_done, struct parts);

/* The next image of the archive, and its layers. */
static int get_image(struct load *l, const struct settings *settings,
		     const struct load_request *request, struct parts *parts, struct hw_err *e)
{
	AUTO(fetch_child_free) struct fetch_child *fetch = NULL;
	struct part *p = mem_new(sizeof(*p));
	struct pull_run run = { .store = l->store,
				.program = settings->program,
				.job = &p->job,
				.archive = l->read,
				.stop = request->cancel_fd,
				.board = &p->board };

	board_init(&p->board);
	parts->v[parts->n++] = p;
	settings_load_job(settings, (int)parts->n, request->format, &p->job);
	return pull_run(&run, &p->image, &fetch, e);
}

static int get_images(struct load *l, const struct load_request *request, struct parts *parts,
		      struct hw_err *e)
{
	AUTO(settings_done) struct settings settings = { 0 };
	int n, r;

	settings_copy(l->options, &settings);
	r = get_image(l, &settings, request, parts, e);
	if (r < 0)
		return r;
	n = pull_image_images(parts->v[0]->image);
	if (n > IMAGES_MAX)
		return err_text(e, -EFBIG, "load an archive: %d images are more than %d", n,
				IMAGES_MAX);
	while (r == 0 && parts->n < (size_t)n)
		r = get_image(l, &settings, request, parts, e);
	return r;
}

static int rename_image(const struct load_request *request, struct parts *parts, struct hw_err *e)
{
	struct hw_strings *names = pull_image_names(parts->v[0]->image);
	int r = 0;

	if (request->n_names == 0)
		return 0;
	if (parts->n > 1)
		r = err_text(e, -EINVAL, "the archive has %zu images: which is to get the name?",
			     parts->n);
	hw_strings_free(names);
	for (size_t i = 0; r == 0 && i < request->n_names; i++)
		r = names_add(names, request->names[i], e);
	if (r < 0) {
		e->domain = HW_DOMAIN_GRPC;
		e->wire = INVALID_ARGUMENT;
	}
	return r;
}

static int put_images(const struct parts *parts, struct load_result *result, struct hw_err *e)
{
	result->images = mem_new(parts->n * sizeof(*result->images));
	for (; result->n < parts->n; result->n++) {
		struct pull_image *image = parts->v[result->n]->image;
		struct load_image *put = &result->images[result->n];
		const struct hw_strings *names = pull_image_names(image);
		struct pull_result id;
		int r = pull_image_put(image, &id, e);

		if (r < 0)
			return r;
		memcpy(put->id, id.id, sizeof(put->id));
		for (size_t i = 0; i < names->n; i++)
			strings_add(&put->names, names->v[i]);
	}
	return 0;
}

/* Layers of a good image beside a bad one; nobody holds them any more. */
static void forget_layers(struct load *l)
{
	struct hw_err e;

	if (store_trim(l->store, &e) < 0)
		log_debug("after a load: %s", e.msg);
}

static int run(struct load *l, const struct load_request *request, struct load_result *result,
	       struct hw_err *e)
{
	AUTO(parts_done) struct parts parts = { 0 };
	int r = get_images(l, request, &parts, e);

	if (r == 0)
		r = rename_image(request, &parts, e);
	return r < 0 ? r : put_images(&parts, result, e);
}

/**
 * load_run() - put the images of the archive into the store
 * @ret_result: overwritten, on success only
 *
 * Return: 0, or negative errno with gRPC's code in @e
 */
int load_run(struct load *l, const struct load_request *request, struct load_result *ret_result,
	     struct hw_err *e)
{
	AUTO(load_result_done) struct load_result result = { 0 };
	int r = run(l, request, &result, e);

	if (r < 0) {
		forget_layers(l);
		e->wire = job_grpc_code(e);
		e->domain = HW_DOMAIN_GRPC;
		return r;
	}
	*ret_result = result;
	result = (struct load_result){ 0 };
	return 0;
}

/** load_result_done() - free what it holds */
void load_result_done(struct load_result *result)
{
	for (size_t i = 0; i < result->n; i++)
		hw_strings_free(&result->images[i].names);
	free(result->images);
}
