/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/unpack/implied.h - directories that a layer implies without a member of their own
 *
 * What:  an archive may have "tmp/x" and not "tmp". A runtime that unpacks it over the layers
 *        below, as containerd does, finds the directory there, or a link to one. We unpack layers
 *        in parallel, each into its own root, so the directory is created with default attributes,
 *        and overlayfs would show those, or hide the link. This corrects it once the layers below
 *        are complete: owner, mode, extended attributes and times are copied from the directory
 *        below; where a layer below has a link, the directory's content moves to the link's
 *        target.
 */
#ifndef FETCH_UNPACK_IMPLIED_H
#define FETCH_UNPACK_IMPLIED_H

#include <stddef.h>

#include <hawser/field.h>

#include "base/err.h"

/* Give implied directories the attributes that they have in the layers below. A directory that no
 * layer below has is left unchanged. @root: of the layer; @implied: paths, from its struct
 * unpacked; @below: roots of the @n_below layers below, topmost first.
 * Return: 0; 1: files have moved, so the recipe no longer finds them; or negative errno */
int implied_inherit(int root, const struct hw_strings *implied, const int *below, size_t n_below,
		    struct hw_err *e);

#endif
