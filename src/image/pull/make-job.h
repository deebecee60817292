/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image/pull/make-job.h - from what was asked and configured to a job for hawser-fetch
 */
#ifndef IMAGE_PULL_MAKE_JOB_H
#define IMAGE_PULL_MAKE_JOB_H

#include "image/protocol/job.h"
#include "image/pull/pull.h"
#include "image/reference.h"

#define PULL_KEY (64 + 1)

/* A copy of struct pull_options. */
struct settings {
	char *program, *auth_file, *certs_dir;
	struct hw_strings mirrors, plain_http;
	struct pull_options numbers; /* only those of its members that are numbers */
};

void settings_copy(const struct pull_options *from, struct settings *to);
void settings_done(struct settings *s);
void settings_job(const struct settings *s, const struct pull_request *request,
		  const struct reference *ref, struct job *ret_job);
/* @image: the first is 1; @format: "oci" or "docker"; NULL: either */
void settings_load_job(const struct settings *s, int image, const char *format,
		       struct job *ret_job);

AUTO_VALUE_DEFINE(settings_done, struct settings);

/* Two requests with the same key may share a pull. No secret can be read from it. */
void pull_key(const struct pull_request *request, const struct reference *ref,
	      char ret_key[PULL_KEY]);

#endif
