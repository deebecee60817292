/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image/fetch/check-member.h - is a file, link or device what an archive's member says?
 */
#ifndef IMAGE_FETCH_CHECK_MEMBER_H
#define IMAGE_FETCH_CHECK_MEMBER_H

#include "image/fetch/tar.h"

/* A sentence of what is wrong; NULL: nothing. The data of files is not looked at. */
const char *check_compare(int root, int dir, const char *name, const struct tar_entry *entry);

#endif
