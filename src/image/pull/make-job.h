/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image/pull/make-job.h - create jobs for hawser-fetch from options and requests
 */
#ifndef IMAGE_PULL_MAKE_JOB_H
#define IMAGE_PULL_MAKE_JOB_H

#include "image/protocol/job.h"
#include "image/pull/pull.h"
#include "image/reference.h"

#define PULL_KEY (64 + 1)

/* A copy of struct pull_options that owns its strings. */
struct pull_settings {
	char *program, *auth_file, *certs_dir;
	struct hw_strings mirrors, plain_http;
	struct pull_options options; /* only the numbers and flags; the pointers are not used */
};

void pull_settings_copy(const struct pull_options *from, struct pull_settings *to);
void pull_settings_done(struct pull_settings *s);

AUTO_VALUE_DEFINE(pull_settings_done, struct pull_settings);

void make_pull_job(const struct pull_settings *s, const struct pull_request *request,
		   const struct reference *ref, struct fetch_job *ret_job);
/* @image: position in the archive, from 1; @format: "oci" or "docker", or NULL to detect it */
void make_load_job(const struct pull_settings *s, int image, const char *format,
		   struct fetch_job *ret_job);

/* A hash of reference, platform and credentials. Requests with the same key share a pull. The key
 * does not reveal secrets. */
void pull_key(const struct pull_request *request, const struct reference *ref,
	      char ret_key[PULL_KEY]);

#endif
