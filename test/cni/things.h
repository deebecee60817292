/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cni/things.h - what the test plugins make: a link on the host and a file
 *
 * Both are named after the attachment, so that a test can tell whose they are.
 */
#ifndef TEST_CNI_THINGS_H
#define TEST_CNI_THINGS_H

#include <hawser/plugin.h>

#include "base/err.h"

struct things_conf {
	char *directory;
};

extern const struct hw_field things_conf_fields[];

/* The record: what there is to remove. */
struct things {
	char *link;
	char *file;
};

extern const struct hw_field things_fields[];

char *things_link_name(const struct hw_call *call);
char *things_file_name(const struct hw_call *call);
int things_make_link(const char *name, struct hw_err *e);
int things_make_file(const char *path, struct hw_err *e);
int things_report(struct hw_call *call, struct hw_err *e);
int things_remove(struct hw_call *call, struct hw_err *e); /* del(): what the record names */
int things_check(struct hw_call *call, struct hw_err *e);

#endif
