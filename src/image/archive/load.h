/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image/archive/load.h - images out of an archive, into the store
 *
 * What:  takes an archive in pieces, keeps it in a file without a name, and has
 *        hawser-fetch read it from there, image by image, as it does what it pulls
 *        (image/pull/session.h). The daemon does not look into the archive.
 * Rules: all images of the archive, or none: they are put when the layers of all of
 *        them are there and right.
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
	const char *format;	  /* "oci" or "docker"; NULL: either */
	const char *const *names; /* instead of those in the archive */
	size_t n_names;
	int cancel_fd; /* readable: give up; -1: never */
};

struct load_image {
	char id[DIGEST_TEXT];
	struct hw_strings names; /* that it got, complete */
};

struct load_result {
	struct load_image *images;
	size_t n;
};

/* @store and @options are borrowed */
int load_new(struct store *store, const struct pull_options *options, struct load **ret_load,
	     struct hw_err *e);
void load_free(struct load *l);

AUTO_DEFINE(load_free, struct load);

/* -ENOSPC: less would be free than the options say */
int load_add(struct load *l, const void *data, size_t len, struct hw_err *e);
/* The archive is complete. Return: 0, or negative errno with gRPC's code in @e */
int load_run(struct load *l, const struct load_request *request, struct load_result *ret_result,
	     struct hw_err *e);
void load_result_done(struct load_result *result);

AUTO_VALUE_DEFINE(load_result_done, struct load_result);

#endif
