/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image/store/verify.h - is a layer still what was unpacked?
 *
 * What:  the program hawser-layer hashes every file of a layer and compares all of it
 *        with the layer's recipe; a blob that was kept, too. Its report is JSON by
 *        verify_fields.
 * Rules: files of a layer with members that took each other's place are not looked at:
 *        its recipe has some that are no longer there. If the blob is good its report
 *        is empty, which does not mean that they are.
 */
#ifndef IMAGE_STORE_VERIFY_H
#define IMAGE_STORE_VERIFY_H

#include <stdint.h>

#include "base/err.h"
#include "image/protocol/unpacked.h"
#include "image/store/store.h"

struct verify_how {
	const char *program; /* hawser-layer; a path */
	int cancel_fd;	     /* readable: give up; -1: none */
	int64_t deadline;    /* of time.h */
};

/* The layer is held by the caller. -ECANCELED, -ETIMEDOUT, or why it could not be looked at. */
int verify_layer(struct store *s, const struct store_layer *layer, const struct verify_how *how,
		 struct verify_report *ret_report, struct hw_err *e);

#endif
