/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/progress.h - how far a pull is, layer by layer
 *
 * What:  keeps what the runtime last said of each layer and makes text of it: a
 *        line per layer that is drawn over again and again on a terminal, or a
 *        line for each change of state elsewhere. Nothing is written here.
 * Rules: the layers are the runtime's word, so there is a limit to them.
 */
#ifndef CLI_PROGRESS_H
#define CLI_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

#define PROGRESS_LAYERS_MAX 4096

/* As hawser.v1 has them. */
enum progress_state {
	PROGRESS_WAITING,
	PROGRESS_DOWNLOADING,
	PROGRESS_UNPACKING,
	PROGRESS_DONE,
	PROGRESS_PRESENT,
};

struct progress_layer {
	char *digest;
	enum progress_state state;
	uint64_t done, total; /* bytes; total 0: not known */
};

struct progress {
	struct progress_layer *layers;
	size_t n;
	size_t drawn; /* lines of the last frame */
};

/* Return: 1 its state is new, 0 not; -E2BIG */
int progress_update(struct progress *p, const struct progress_layer *layer, struct hw_err *e);
/* "0123456789ab  downloading  [====>      ]  1.2 MB / 4.0 MB" */
char *progress_line(const struct progress_layer *layer, size_t width);
char *progress_summary(const struct progress *p);
/* "loading  [====>      ]  1.2 MB / 4.0 MB"; total 0: not known, no bar */
char *progress_bytes(const char *what, uint64_t done, uint64_t total, size_t width);
/* What draws the layers over those of the last frame; those that are done go first if there are
 * more than fit. */
void progress_frame(struct progress *p, size_t width, size_t height, struct buf *out);
void progress_done(struct progress *p);

AUTO_VALUE_DEFINE(progress_done, struct progress);

#endif
