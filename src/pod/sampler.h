/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pod/sampler.h - the thread that reads processor times and counts what containers have written; for the
 *                 files of this folder only
 */
#ifndef POD_SAMPLER_H
#define POD_SAMPLER_H

#include "pod/pod.h"
#include "pod/stats.h"

struct sampler;

int sampler_open(struct pods *p, struct sampler **ret_sampler, struct hw_err *e);
void sampler_close(struct sampler *s); /* NULL is allowed */

/* ---- stats.c, for the sampler ------------------------------------------------------- */
/* Drops the samples of pods and containers that do not exist any more. */
void stats_forget_removed(struct pods *p);
/* Whether the container may have written something since the last count. */
bool stats_layer_is_due(struct pods *p, const struct container_view *c);
char *stats_layer_path(const struct pods *p, const char *id); /* freed by the caller */
void stats_set_layer(struct pods *p, const char *id, const struct stats_layer *layer);

#endif
