/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image/pull/progress.h - how far a pull is, for everybody who watches it
 *
 * One thread writes, any number read; neither waits for the other for long.
 */
#ifndef IMAGE_PULL_PROGRESS_H
#define IMAGE_PULL_PROGRESS_H

#include <pthread.h>

#include "image/pull/pull.h"

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

#endif
