/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/unpack/move-contents.h - what is in a folder goes to another one below the same root
 */
#ifndef FETCH_UNPACK_MOVE_CONTENTS_H
#define FETCH_UNPACK_MOVE_CONTENTS_H

#include "base/err.h"

/* Folders on the way that are not there are made, and told to implied(). What is in both places is
 * merged, folder by folder; of two files that which is moved stays. */
int move_contents(int root, const char *from, const char *to,
		  int (*implied)(void *ctx, const char *path, struct hw_err *e), void *ctx,
		  struct hw_err *e);

#endif
