/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image/platform.h - platforms of images and machines
 *
 * What:  operating system, architecture and variant; the platform of this machine;
 *        how well an image for one platform runs on another.
 */
#ifndef IMAGE_PLATFORM_H
#define IMAGE_PLATFORM_H

#include <hawser/field.h>

#include "base/mem.h"

struct platform {
	char *os;	    /* "linux" */
	char *architecture; /* as Go spells it: "amd64", "arm64" */
	char *variant;	    /* "v8"; NULL or "": the default of the architecture */
};

extern const struct hw_field platform_fields[];

#define PLATFORM_NONE (-1)

/* The platform of this machine, to be released with platform_done(). */
void platform_of_host(struct platform *ret_platform);
void platform_done(struct platform *p);
/* Return: OS/ARCHITECTURE or OS/ARCHITECTURE/VARIANT, to be freed by the caller */
char *platform_format(const struct platform *p);
/*
 * How well an image for platform @offered runs on a machine of platform @wanted. Return: 0 for
 * the best match; a larger number for a worse match; PLATFORM_NONE if the image does not run
 */
int platform_rank(const struct platform *wanted, const struct platform *offered);

AUTO_VALUE_DEFINE(platform_done, struct platform);

#endif
