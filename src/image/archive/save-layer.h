/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image/archive/save-layer.h - the archive of one layer, read or made again by hawser-layer
 */
#ifndef IMAGE_ARCHIVE_SAVE_LAYER_H
#define IMAGE_ARCHIVE_SAVE_LAYER_H

#include "image/archive/save.h"

/* A layer as it goes into an archive: as it came, where that is kept, else not compressed. */
struct save_layer {
	const struct store_layer *layer; /* borrowed, and held by the caller */
	const char *digest;		 /* of the blob; the layer's */
	int64_t size;
	const char *media_type; /* of OCI */
};

int save_layer_look(struct store *s, const struct store_layer *layer, struct save_layer *ret_saved,
		    struct hw_err *e);
/* Exactly saved->size bytes to how->write(), or an error. */
int save_layer(struct store *s, const struct save_layer *saved, const struct save_how *how,
	       struct hw_err *e);

#endif
