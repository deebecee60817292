/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image/pull/names.h - the names that an image gets in the store
 *
 * What:  complete ones, NAME:TAG and NAME@DIGEST, of a pull and of an archive.
 */
#ifndef IMAGE_PULL_NAMES_H
#define IMAGE_PULL_NAMES_H

#include <hawser/field.h>

#include "base/err.h"

/* @reference: that was pulled; @digest: what it stands for */
int names_pulled(const char *reference, const char *digest, struct hw_strings *names,
		 struct hw_err *e);
/* @written: in the archive */
int names_loaded(const struct hw_strings *written, struct hw_strings *names, struct hw_err *e);
/* One that somebody gives, as people write it. -EINVAL: it is none, or has a digest in it */
int names_add(struct hw_strings *names, const char *text, struct hw_err *e);

#endif
