/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image/pull/make-job.c - create jobs for hawser-fetch from options and requests
 */
#include "image/pull/make-job.h"

#include <string.h>

#include "base/hash.h"
#include "base/str.h"

void pull_settings_done(struct pull_settings *s)
{
	free(s->program);
	free(s->auth_file);
	free(s->certs_dir);
	hw_strings_free(&s->mirrors);
	hw_strings_free(&s->plain_http);
}

static void copy_strings(const struct hw_strings *from, struct hw_strings *to)
{
	for (size_t i = 0; from && i < from->n; i++)
		strings_add(to, from->v[i]);
}

void pull_settings_copy(const struct pull_options *from, struct pull_settings *to)
{
	*to = (struct pull_settings){ .program = str_copy(from->program),
				      .auth_file = str_copy(from->auth_file),
				      .certs_dir = str_copy(from->certs_dir),
				      .options = *from };
	copy_strings(from->mirrors, &to->mirrors);
	copy_strings(from->plain_http, &to->plain_http);
}

/* @p: NULL for the platform of this machine */
static void copy_platform(const struct platform *p, struct platform *ret_platform)
{
	if (!p)
		platform_of_host(ret_platform);
	else
		*ret_platform = (struct platform){ str_copy(p->os), str_copy(p->architecture),
						   str_copy(p->variant) };
}

/* Takes ownership of @reference. */
static void init_job(const struct pull_settings *s, char *reference,
		     const struct platform *platform, struct fetch_job *job)
{
	struct hw_err ignored;

	/* decoding sets the defaults of the field table */
	hw_field_decode(job_fields, "{\"reference\":\"-\"}", 17, job, &ignored);
	free(job->reference);
	job->reference = reference;
	copy_platform(platform, &job->platform);
	job->idle_ms = s->options.idle_ms > 0 ? s->options.idle_ms : job->idle_ms;
	job->layer_bytes_max =
		s->options.layer_bytes > 0 ? s->options.layer_bytes : job->layer_bytes_max;
	job->reserve = s->options.reserve;
	job->keep_blobs = s->options.keep_blobs;
	job->uid = s->options.uid > 0 ? s->options.uid : job->uid;
}

void make_pull_job(const struct pull_settings *s, const struct pull_request *request,
		   const struct reference *ref, struct fetch_job *job)
{
	init_job(s, reference_format(ref), request->platform, job);
	job->username = str_copy(request->username);
	job->password = str_copy(request->password);
	job->identity_token = str_copy(request->identity_token);
	job->registry_token = str_copy(request->registry_token);
	job->auth_file = str_copy(s->auth_file);
	job->certs_dir = str_copy(s->certs_dir);
	copy_strings(&s->plain_http, &job->plain_http);
	/* mirrors are configured as HOST=URL */
	for (size_t i = 0; i < s->mirrors.n; i++) {
		const char *mirror = s->mirrors.v[i];
		size_t len = strcspn(mirror, "=");

		if (len == strlen(ref->domain) && str_starts(mirror, ref->domain) && mirror[len])
			strings_add(&job->mirrors, mirror + len + 1);
	}
}

void make_load_job(const struct pull_settings *s, int image, const char *format,
		   struct fetch_job *job)
{
	init_job(s, str_printf("image %d", image), NULL, job);
	job->image = image;
	job->format = str_copy(format);
}

void pull_key(const struct pull_request *request, const struct reference *ref,
	      char ret_key[PULL_KEY])
{
	AUTO(platform_done) struct platform platform = { 0 };
	autofree char *name = reference_format(ref), *platform_text = NULL;

	copy_platform(request->platform, &platform);
	platform_text = platform_format(&platform);
	hash_parts((const char *[]){ name, platform_text, str_or(request->username, ""),
				     str_or(request->password, ""),
				     str_or(request->identity_token, ""),
				     str_or(request->registry_token, "") },
		   6, PULL_KEY - 1, ret_key);
}
