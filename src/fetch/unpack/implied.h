/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/unpack/implied.h - directories that a layer implies without a member of their own
 *
 * What:  an archive may contain "tmp/x" but not "tmp". A runtime that unpacks the archive over the
 *        layers below, like containerd, finds the directory "tmp" there, or a link to a directory.
 *        We unpack layers in parallel, each into its own root. So we create "tmp" with default
 *        attributes, and overlayfs would show these attributes, or hide the link. implied_inherit()
 *        corrects this when the layers below are complete. It copies owner, mode, extended
 *        attributes and times from the directory below. If a layer below has a link, it moves the
 *        directory's content to the link's target.
 */
#ifndef FETCH_UNPACK_IMPLIED_H
#define FETCH_UNPACK_IMPLIED_H

#include <stddef.h>

#include <hawser/field.h>

#include "base/err.h"

/* Give implied directories the attributes that they have in the layers below. A directory that no
 * layer below has is left unchanged. @root: root of the layer; @implied: paths from the layer's
 * struct unpacked; @below: roots of the @n_below layers below, topmost first.
 * Return: 0; 1: files were moved, so the layer cannot be rebuilt from its recipe; or negative
 * errno */
int implied_inherit(int root, const struct hw_strings *implied, const int *below, size_t n_below,
		    struct hw_err *e);

#endif
