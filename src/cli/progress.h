/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/progress.h - progress of pulls and archives as text
 *
 * What:  keeps the last state of each layer and formats it: for a terminal as a frame
 *        with a line per layer, which is redrawn in place; otherwise as a line for each
 *        change of state. The caller writes the text.
 * Rules: the number of layers is limited, because the runtime chooses it.
 */
#ifndef CLI_PROGRESS_H
#define CLI_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

#define PROGRESS_LAYERS_MAX 4096

/* The numbers are those of LayerProgress.State of hawser.v1. */
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
	uint64_t done, total; /* bytes; total 0: unknown */
};

struct progress {
	struct progress_layer *layers;
	size_t n;
	size_t drawn; /* lines in the last frame */
};

/* Add a layer, or update its state; @layer is copied.
 * Return: 1 if the layer is new or its state changed, 0 if not; -E2BIG: too many layers */
int progress_update(struct progress *p, const struct progress_layer *layer, struct hw_err *e);
/* Format a layer as one line of at most @width characters. @width 0: no limit, and no bar.
 * "0123456789ab  downloading  [====>      ]  1.2 MB / 4.0 MB" */
char *progress_line(const struct progress_layer *layer, size_t width);
/* Format a summary of all layers: "2 of 3 layers, 1.5 kB / 4.0 kB" */
char *progress_summary(const struct progress *p);
/* Format the progress of an archive: "loading  [====>      ]  1.2 MB / 4.0 MB". @total 0: the size is
 * unknown, and there is no bar. */
char *progress_bytes(const char *what, uint64_t done, uint64_t total, size_t width);
/* Append the text that redraws the layers over the last frame. If they do not fit into the height of
 * the terminal, finished layers are omitted: the cursor cannot move above the screen. */
void progress_frame(struct progress *p, size_t width, size_t height, struct buf *out);
void progress_done(struct progress *p);

AUTO_VALUE_DEFINE(progress_done, struct progress);

#endif
