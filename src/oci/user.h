/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci/user.h - the user and the groups of a container, from passwd and group of its image
 *
 *	user	the request's number or name, else that of the image, else 0. A name must be in passwd; a
 *		number need not
 *	group	the request's, else that of the image if the user is, too, else that of the user in passwd,
 *		else 0
 *	groups	the group; those of the request; unless .strict, those that have the user as a member in the
 *		image's group
 *	home	of the user in passwd, else /
 *
 * Rules: the files come from strangers. They are opened below the image's root directory, must be regular
 *        files, and are bounded; malformed lines are skipped.
 */
#ifndef OCI_USER_H
#define OCI_USER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hawser/field.h>

#include "base/err.h"
#include "base/mem.h"

#define USER_FILE_MAX	(4 << 20) /* bytes of passwd, and of group */
#define USER_GROUPS_MAX 4096

struct user_request {
	bool has_uid, has_gid;
	uint32_t uid, gid;
	const char *name; /* NULL or "": none */
	const uint32_t *groups;
	size_t n_groups;
	bool strict;
	const char
		*image; /* USER or UID, optionally followed by :GROUP or :GID; NULL or "": none */
};

struct user {
	uint32_t uid, gid;
	struct hw_list groups; /* uint32_t; the group first, none twice */
	char *home;
};

/* @root: the root directory of the container. Return: 0; -EINVAL if a name is unknown, a file is not
 * regular or too large, or there are more than USER_GROUPS_MAX groups; or another negative errno */
int user_find(int root, const struct user_request *request, struct user *ret, struct hw_err *e);
/* The same for the text of the two files. */
int user_resolve(const char *passwd, const char *group, const struct user_request *request,
		 struct user *ret, struct hw_err *e);
void user_done(struct user *u);
AUTO_VALUE_DEFINE(user_done, struct user);

#endif
