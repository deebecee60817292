/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/registry/auth-file.h - a file that says who we are to registries
 */
#ifndef FETCH_REGISTRY_AUTH_FILE_H
#define FETCH_REGISTRY_AUTH_FILE_H

#include "base/err.h"
#include "image/credentials.h"

int auth_file_read(const char *path, const char *name, struct credentials *ret_credentials,
		   struct hw_err *e);

#endif
