/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image/archive/load.h - load images from an archive into the store
 *
 * What:  receives an archive in pieces, keeps it in an unnamed file, and lets
 *        hawser-fetch read each image from that file in the same way as in a pull
 *        (image/pull/session.h). The daemon does not parse the archive.
 * Rules: if one image of the archive cannot be loaded, none is: images are added to
 *        the store in one change, when the layers of all images are complete.
 */
#ifndef IMAGE_ARCHIVE_LOAD_H
#define IMAGE_ARCHIVE_LOAD_H

#include <stddef.h>

#include "base/err.h"
#include "base/mem.h"
#include "image/pull/pull.h"
#include "image/store/store.h"

struct load;

struct load_request {
	const char *format;	  /* "oci" or "docker"; NULL: detect */
	const char *const *names; /* replace the names in the archive */
	size_t n_names;
	int cancel_fd; /* cancel when readable; -1: never */
};

struct load_image {
	char id[DIGEST_TEXT];
	struct hw_strings names; /* complete, such as docker.io/library/busybox:latest */
};

struct load_result {
	struct load_image *images;
	size_t n;
};

/* @store and @options are borrowed. */
int load_new(struct store *store, const struct pull_options *options, struct load **ret_load,
	     struct hw_err *e);
void load_free(struct load *l); /* deletes the archive; NULL is allowed */

AUTO_DEFINE(load_free, struct load);

/* Append a piece to the archive. Return: 0; -ENOSPC: the piece would use disk space that must stay
 * free (pull_options.reserve); or another negative errno */
int load_add(struct load *l, const void *data, size_t len, struct hw_err *e);
/* Load the images of the complete archive. Return: 0 and a result, to be released with
 * load_result_done(); or negative errno, see struct job_failed in image/protocol/job.h */
int load_run(struct load *l, const struct load_request *request, struct load_result *ret_result,
	     struct hw_err *e);
void load_result_done(struct load_result *result);

AUTO_VALUE_DEFINE(load_result_done, struct load_result);

#endif
