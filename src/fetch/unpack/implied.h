/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/unpack/implied.h - folders that a layer has and does not speak of
 *
 * What:  an archive may have "tmp/x" and not "tmp". Whoever unpacks it over the
 *        layers below, as containerd does, finds the folder there, or a link to
 *        one. We unpack layers side by side, so the folder is made anew, and
 *        overlayfs would show its owner and mode, or hide the link. Once the
 *        layers below are there, this makes up for it: owner, mode, attributes
 *        and times are copied from below; where a link is below, what is in the
 *        folder moves to where it leads.
 */
#ifndef FETCH_UNPACK_IMPLIED_H
#define FETCH_UNPACK_IMPLIED_H

#include <stddef.h>

#include <hawser/field.h>

#include "base/err.h"

int implied_inherit(int root, const struct hw_strings *implied, const int *below, size_t n_below,
		    struct hw_err *e);

#endif
