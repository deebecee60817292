/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/layer/verify-member.h - is a file, link or device what an archive's member says?
 */
#ifndef FETCH_LAYER_VERIFY_MEMBER_H
#define FETCH_LAYER_VERIFY_MEMBER_H

#include "fetch/tar/tar.h"

/* A sentence of what is wrong; NULL: nothing. The data of files is not looked at. */
const char *check_compare(int root, int dir, const char *name, const struct tar_entry *entry);

#endif
