/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/registry/auth-file.h - file with credentials for registries
 */
#ifndef FETCH_REGISTRY_AUTH_FILE_H
#define FETCH_REGISTRY_AUTH_FILE_H

#include "base/err.h"
#include "image/credentials.h"

/* Find the credentials for an image. @path: the file; if it does not exist, there are no
 * credentials; @name: domain and path of the image, or a host. Return: 0, with or without
 * credentials; -ENOKEY: malformed file; or another negative errno */
int auth_file_read(const char *path, const char *name, struct credentials *ret_credentials,
		   struct hw_err *e);

#endif
