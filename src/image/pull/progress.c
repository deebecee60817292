/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image/pull/progress.c - how far a pull is, for everybody who watches it
 */
#include "image/pull/progress.h"

/** board_init() - nothing is known yet */
void board_init(struct board *b)
{
	*b = (struct board){ 0 };
	pthread_mutex_init(&b->lock, NULL);
}

/** board_done() - free it */
void board_done(struct board *b)
{
	pthread_mutex_destroy(&b->lock);
	free(b->layers);
}

/** board_start() - the layers are known now */
void board_start(struct board *b, const struct pull_layer *layers, size_t n)
{
	pthread_mutex_lock(&b->lock);
	free(b->layers);
	b->layers = mem_copy(layers, n * sizeof(*layers));
	b->n = n;
	pthread_mutex_unlock(&b->lock);
}

/** board_set() - one has got further; never back, and never beyond its size */
void board_set(struct board *b, size_t layer, enum pull_state state, int64_t bytes)
{
	struct pull_layer *l = &b->layers[layer];

	pthread_mutex_lock(&b->lock);
	if (state > l->state)
		l->state = state;
	if (bytes > l->bytes)
		l->bytes = bytes < l->size ? bytes : l->size;
	pthread_mutex_unlock(&b->lock);
}

/** board_read() - a copy of what is known; 0: nothing yet, or there are no layers */
size_t board_read(struct board *b, struct pull_layer **ret_layers)
{
	size_t n;

	pthread_mutex_lock(&b->lock);
	n = b->n;
	*ret_layers = n > 0 ? mem_copy(b->layers, n * sizeof(*b->layers)) : NULL;
	pthread_mutex_unlock(&b->lock);
	return n;
}
