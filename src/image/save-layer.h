/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image/save-layer.h - the archive of one layer, made again by hawser-layer
 */
#ifndef IMAGE_SAVE_LAYER_H
#define IMAGE_SAVE_LAYER_H

#include "image/save.h"

/* Exactly layer->archive bytes to how->write(), or an error. The layer is held by the caller. */
int save_layer(struct store *s, const struct store_layer *layer, const struct save_how *how,
	       struct hw_err *e);

#endif
