/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image/pull/make-job.c - from what was asked and configured to a job for hawser-fetch
 */
#include "image/pull/make-job.h"

#include <string.h>

#include "base/hash.h"
#include "base/str.h"

/** settings_done() - free what they hold */
void settings_done(struct settings *o)
{
	free(o->program);
	free(o->auth_file);
	free(o->certs_dir);
	hw_strings_free(&o->mirrors);
	hw_strings_free(&o->plain_http);
}

static void copy_strings(const struct hw_strings *from, struct hw_strings *to)
{
	for (size_t i = 0; from && i < from->n; i++)
		strings_add(to, from->v[i]);
}

/** settings_copy() - keep options */
void settings_copy(const struct pull_options *from, struct settings *to)
{
	*to = (struct settings){ .program = str_copy(from->program),
				 .auth_file = str_copy(from->auth_file),
				 .certs_dir = str_copy(from->certs_dir),
				 .numbers = *from };
	copy_strings(from->mirrors, &to->mirrors);
	copy_strings(from->plain_http, &to->plain_http);
}

/* ---- the job --------------------------------------------------------------- */

/* HOST=URL, of this reference's host alone. */
static void add_mirrors(const struct settings *o, const struct reference *ref, struct job *job)
{
	for (size_t i = 0; i < o->mirrors.n; i++) {
		const char *text = o->mirrors.v[i];
		size_t len = strcspn(text, "=");

		if (len == strlen(ref->domain) && str_starts(text, ref->domain) && text[len])
			strings_add(&job->mirrors, text + len + 1);
	}
}

static void own_platform(const struct platform *p, struct platform *ret_platform)
{
	if (!p)
		platform_own(ret_platform);
	else
		*ret_platform = (struct platform){ str_copy(p->os), str_copy(p->architecture),
						   str_copy(p->variant) };
}

/* What is not set is as job.c's table has it. */
static void begin_job(const struct settings *o, char *reference, const struct platform *platform,
		      struct job *job)
{
	struct hw_err ignored;

	hw_field_decode(job_fields, "{\"reference\":\"-\"}", 17, job, &ignored);
	free(job->reference);
	job->reference = reference;
	own_platform(platform, &job->platform);
	job->idle_ms = o->numbers.idle_ms > 0 ? o->numbers.idle_ms : job->idle_ms;
	job->bytes = o->numbers.layer_bytes > 0 ? o->numbers.layer_bytes : job->bytes;
	job->reserve = o->numbers.reserve;
	job->keep_blobs = o->numbers.keep_blobs;
	job->uid = o->numbers.uid > 0 ? o->numbers.uid : job->uid;
}

/** settings_job() - to pull an image */
void settings_job(const struct settings *o, const struct pull_request *request,
		  const struct reference *ref, struct job *job)
{
	begin_job(o, reference_format(ref), request->platform, job);
	job->username = str_copy(request->username);
	job->password = str_copy(request->password);
	job->identity_token = str_copy(request->identity_token);
	job->registry_token = str_copy(request->registry_token);
	job->auth_file = str_copy(o->auth_file);
	job->certs_dir = str_copy(o->certs_dir);
	copy_strings(&o->plain_http, &job->plain_http);
	add_mirrors(o, ref, job);
}

/** settings_load_job() - to load an image of an archive */
void settings_load_job(const struct settings *o, int image, const char *format, struct job *job)
{
	begin_job(o, str_printf("image %d", image), NULL, job);
	job->image = image;
	job->format = str_copy(format);
}

/** pull_key() - what makes a pull the same as another one */
void pull_key(const struct pull_request *request, const struct reference *ref,
	      char ret_key[PULL_KEY])
{
	AUTO(platform_done) struct platform platform = { 0 };
	autofree char *name = reference_format(ref), *machine = NULL;

	own_platform(request->platform, &platform);
	machine = platform_format(&platform);
	hash_parts((const char *[]){ name, machine, str_or(request->username, ""),
				     str_or(request->password, ""),
				     str_or(request->identity_token, ""),
				     str_or(request->registry_token, "") },
		   6, PULL_KEY - 1, ret_key);
}
