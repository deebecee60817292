/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image/platform.h - for which machines an image is
 *
 * What:  decode a platform, name this machine's, and say how well an offered
 *        one runs on a wanted one.
 */
#ifndef IMAGE_PLATFORM_H
#define IMAGE_PLATFORM_H

#include <hawser/field.h>

#include "base/mem.h"

struct platform {
	char *os;	    /* "linux" */
	char *architecture; /* Go's words: "amd64", "arm64" */
	char *variant;	    /* "v8"; NULL or "": the usual one */
};

extern const struct hw_field platform_fields[];

#define PLATFORM_NONE (-1)

void platform_own(struct platform *ret_platform); /* for platform_done() */
void platform_done(struct platform *p);
char *platform_format(const struct platform *p); /* "linux/arm/v7" */
int platform_rank(const struct platform *wanted, const struct platform *offered);

AUTO_VALUE_DEFINE(platform_done, struct platform);

#endif
