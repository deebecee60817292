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

#include "base/err.h"
#include "image/protocol/job.h"
#include "image/pull/progress.h"
#include "image/pull/pull.h"
#include "image/store/store.h"

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
