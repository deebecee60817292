/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image/pull/incoming.h - image received from hawser-fetch, until it is in the store
 *
 * What:  checks the messages of hawser-fetch about an image, keeps its documents,
 *        and adds its layers and then the image itself to the store.
 * Rules: nothing that hawser-fetch reports is trusted: every document is hashed
 *        again, every index must list the next document, every layer must have the
 *        diff ID that the configuration lists.
 *        Layers that are already in the store are held; each new layer has a stage.
 *        incoming_free() releases holds and stages.
 */
#ifndef IMAGE_PULL_INCOMING_H
#define IMAGE_PULL_INCOMING_H

#include <pthread.h>

#include <hawser/field.h>

#include "base/err.h"
#include "image/protocol/job.h"
#include "image/pull/pull.h"
#include "image/store/store.h"

/* Progress of a pull: written by the thread of the pull, read by any number of other threads. */
struct pull_progress {
	pthread_mutex_t lock;
	struct pull_layer *layers;
	size_t n;
};

void pull_progress_init(struct pull_progress *p);
void pull_progress_done(struct pull_progress *p);
/* Copy the layers into *ret_layers, to be freed by the caller. Return: their number; 0 if they are
 * not known yet */
size_t pull_progress_read(struct pull_progress *p, struct pull_layer **ret_layers);

struct incoming;

/* The arguments are borrowed. */
struct incoming *incoming_new(struct store *store, const struct fetch_job *job,
			      struct pull_progress *progress);
void incoming_free(struct incoming *in); /* also deletes the stages and their files */

/* Handle the messages, which arrive in this order. Return: 0; -EBADMSG, -EINVAL, -EOPNOTSUPP or
 * -EFBIG if the message is wrong; another negative errno if the store failed */
int incoming_receive_resolved(struct incoming *in, const struct job_message *m, struct hw_err *e);
/* An index or the manifest. Return: 1 if it is the manifest, 0 if it is an index */
int incoming_receive_manifest(struct incoming *in, const struct job_message *m, struct hw_err *e);
/* The configuration. Holds the layers that exist, and creates stages for the other layers. */
int incoming_receive_config(struct incoming *in, const struct job_message *m,
			    struct job_plan *ret_plan, struct hw_err *e);
/* After the configuration: are all layers in the store? */
bool incoming_is_complete(const struct incoming *in);
int incoming_receive_progress(struct incoming *in, const struct job_message *m, struct hw_err *e);
int incoming_receive_layer(struct incoming *in, const struct job_message *m, struct hw_err *e);
int incoming_receive_done(struct incoming *in, struct hw_err *e); /* commits the last layers */

/* Complete layers can be committed before the image is complete. They stay in the store even if the
 * pull fails. */
bool incoming_has_complete_layers(const struct incoming *in);
int incoming_commit_layers(struct incoming *in, struct hw_err *e);

const char *incoming_host(const struct incoming *in);	/* NULL: not resolved yet */
int incoming_archive_images(const struct incoming *in); /* number of images in the archive */
const struct hw_strings *incoming_names(const struct incoming *in); /* complete names */
/* Replace the names from the archive. Return: 0; -EINVAL: a name is malformed or has a digest */
int incoming_set_names(struct incoming *in, const char *const *names, size_t n, struct hw_err *e);

/* Add @n images, at least one, to the store: all, or on failure none. From then on readers see
 * them. */
int incoming_store(struct incoming *const *images, size_t n, struct pull_result *ret_results,
		   struct hw_err *e);

AUTO_DEFINE(incoming_free, struct incoming);

#endif
