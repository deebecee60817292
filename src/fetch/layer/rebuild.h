/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/layer/rebuild.h - a layer's archive from its recipe and its files, and the check of both
 */
#ifndef FETCH_LAYER_REBUILD_H
#define FETCH_LAYER_REBUILD_H

#include "base/err.h"
#include "fetch/layer/verify-tree.h"

/* The archive, byte for byte, to @out. -EBADMSG: a file or the recipe is not what it was. */
int rebuild_archive(int recipe, int root, int out, struct hw_err *e);

/* Each file against its digest, and all that there is against the archive's members. @damaged is
 * called for every one that is not what it was; it may stop the check by a negative answer. */
int rebuild_verify(int recipe, int root, verify_damaged *damaged, void *ctx, struct hw_err *e);

#endif
