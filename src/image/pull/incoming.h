/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image/pull/incoming.h - an image on its way into the store
 *
 * What:  takes what hawser-fetch says of it, piece by piece, and checks each.
 * Rules: layers that are there are held, those that are to come have a stage;
 *        both are given up with the struct.
 */
#ifndef IMAGE_PULL_INCOMING_H
#define IMAGE_PULL_INCOMING_H

#include <pthread.h>

#include <hawser/field.h>

#include "base/err.h"
#include "image/protocol/job.h"
#include "image/pull/pull.h"
#include "image/store/store.h"

struct board {
	pthread_mutex_t lock;
	struct pull_layer *layers;
	size_t n;
};

void board_init(struct board *b);
void board_done(struct board *b);
void board_start(struct board *b, const struct pull_layer *layers, size_t n); /* copies */
void board_set(struct board *b, size_t layer, enum pull_state state, int64_t bytes);
size_t board_read(struct board *b, struct pull_layer **ret_layers); /* to be freed */

/* @reference: that was pulled; @digest: what it stands for */
int names_pulled(const char *reference, const char *digest, struct hw_strings *names,
		 struct hw_err *e);
/* @written: in the archive */
int names_loaded(const struct hw_strings *written, struct hw_strings *names, struct hw_err *e);
/* One that somebody gives, as people write it. -EINVAL: it is none, or has a digest in it */
int names_add(struct hw_strings *names, const char *text, struct hw_err *e);

struct pull_image;

struct pull_image *pull_image_new(struct store *store, const struct job *job, struct board *board);
void pull_image_free(struct pull_image *i);
const char *pull_image_host(const struct pull_image *i); /* NULL: not known yet */

int pull_image_resolved(struct pull_image *i, const struct job_message *m, struct hw_err *e);
/* Return: 1 when it was the image's manifest, 0: an index */
int pull_image_document(struct pull_image *i, const struct job_message *m, struct hw_err *e);
int pull_image_config(struct pull_image *i, const struct job_message *m, struct job_plan *ret_plan,
		      struct hw_err *e);
int pull_image_progress(struct pull_image *i, const struct job_message *m, struct hw_err *e);
int pull_image_layer(struct pull_image *i, const struct job_message *m, struct hw_err *e);

bool pull_image_has_more(const struct pull_image *i);		 /* layers to be kept */
int pull_image_keep(struct pull_image *i, struct hw_err *e);	 /* layers alone */
int pull_image_complete(struct pull_image *i, struct hw_err *e); /* layers, and all are there */
int pull_image_put(struct pull_image *i, struct pull_result *ret_result, struct hw_err *e);

int pull_image_images(const struct pull_image *i);	   /* that the archive has */
struct hw_strings *pull_image_names(struct pull_image *i); /* that it gets; for changes, too */

AUTO_DEFINE(pull_image_free, struct pull_image);

#endif
