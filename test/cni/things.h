/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cni/things.h - the objects that the test plugins create: a link and a file
 *
 * The names of both are derived from the attachment, so that a test can tell
 * which attachment they belong to.
 */
#ifndef TEST_CNI_THINGS_H
#define TEST_CNI_THINGS_H

#include <hawser/plugin.h>

#include "base/err.h"

struct things_conf {
	char *directory;
};

extern const struct hw_field things_conf_fields[];

/* The content of the record. */
struct things {
	char *link;
	char *file;
};

extern const struct hw_field things_fields[];

char *things_link_name(const struct hw_call *call);
char *things_file_name(const struct hw_call *call);
int things_create_link(const char *name, struct hw_err *e);
int things_create_file(const char *path, struct hw_err *e);
int things_add_result(struct hw_call *call, struct hw_err *e);
int things_delete(struct hw_call *call,
		  struct hw_err *e); /* del(): deletes what the record names */
int things_check(struct hw_call *call, struct hw_err *e);

#endif
