/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image/protocol/job.c - protocol between the daemon and its helpers: field tables and errors
 */
#include "image/protocol/job.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "image/credentials.h"

/* ---- field tables ---------------------------------------------------------- */

#define SECRET(name, text)                                                                         \
	{                                                                                          \
#name, HW_STRING, HW_AT(struct fetch_job, name), .flags = HW_SECRET, .help = text  \
	}

const struct hw_field job_fields[] = {
	{ "reference", HW_STRING, HW_AT(struct fetch_job, reference), .flags = HW_REQUIRED,
	  .help = "complete reference of the image" },
	{ "image", HW_INT, HW_AT(struct fetch_job, image), .min = 0, .max = INT32_MAX,
	  .help = "position of the image in the archive, from 1; 0: from a registry" },
	{ "format", HW_STRING, HW_AT(struct fetch_job, format),
	  .help = "format of the archive: oci or docker" },
	{ "platform", HW_OBJECT, HW_AT(struct fetch_job, platform), .sub = platform_fields,
	  .help = "platform to run on" },
	{ "known", HW_STRINGS, HW_AT(struct fetch_job, known_documents),
	  .help = "documents already in the store" },
	SECRET(username, "user name for the registry"),
	SECRET(password, "password for the registry"),
	SECRET(identity_token, "OAuth2 refresh token"),
	SECRET(registry_token, "bearer token"),
	{ "auth_file", HW_STRING, HW_AT(struct fetch_job, auth_file),
	  .help = "credentials file in the format of Docker's config.json" },
	{ "certs_dir", HW_STRING, HW_AT(struct fetch_job, certs_dir),
	  .help = "directory of certificates, with a subdirectory for each host" },
	{ "mirrors", HW_STRINGS, HW_AT(struct fetch_job, mirrors),
	  .help = "URLs tried before the registry" },
	{ "plain_http", HW_STRINGS, HW_AT(struct fetch_job, plain_http),
	  .help = "hosts to contact without TLS" },
	{ "idle_ms", HW_INT, HW_AT(struct fetch_job, idle_ms), .def = "60000", .min = 1,
	  .max = 86400000, .help = "timeout in milliseconds if no bytes arrive" },
	{ "slow_ms", HW_INT, HW_AT(struct fetch_job, slow_ms), .def = "30000", .min = 1,
	  .max = 86400000, .help = "milliseconds after which a transfer must not be slow" },
	{ "retries", HW_INT, HW_AT(struct fetch_job, retries), .def = "4", .min = 0, .max = 100,
	  .flags = HW_ALWAYS, .help = "retries after temporary errors" },
	{ "bytes", HW_INT64, HW_AT(struct fetch_job, layer_bytes_max), .def = "68719476736",
	  .min = 1, .max = INT64_MAX, .help = "maximum size of an unpacked layer in bytes" },
	{ "entries", HW_INT64, HW_AT(struct fetch_job, layer_entries_max), .def = "1000000",
	  .min = 1, .max = INT64_MAX,
	  .help = "maximum number of files, directories and other entries in a layer" },
	{ "reserve", HW_INT64, HW_AT(struct fetch_job, reserve), .min = 0, .max = INT64_MAX,
	  .help = "bytes to leave free on the file system" },
	{ "parallel", HW_INT, HW_AT(struct fetch_job, parallel), .def = "3", .min = 1,
	  .max = JOB_PARALLEL_MAX, .help = "layers fetched at a time" },
	{ "part", HW_INT64, HW_AT(struct fetch_job, request_bytes), .def = "1048576", .min = 1,
	  .max = 16 << 20, .help = "bytes of a blob per request" },
	{ "uid", HW_UINT32, HW_AT(struct fetch_job, uid), .def = "65534",
	  .help = "user ID of the fetcher" },
	{ "keep_blobs", HW_BOOL, HW_AT(struct fetch_job, keep_blobs),
	  .help = "also keep the blobs of layers that can be rebuilt" },
	{ "keep_open", HW_BOOL, HW_AT(struct fetch_job, unconfined),
	  .help = "do not confine the processes of hawser-fetch" },
	{ 0 },
};

static const struct hw_field layer_fields[] = {
	{ "have", HW_BOOL, HW_AT(struct job_layer, have), .help = "the layer is in the store" },
	{ "diff_id", HW_STRING, HW_AT(struct job_layer, diff_id), .flags = HW_REQUIRED,
	  .help = "expected diff ID" },
	{ "root", HW_STRING, HW_AT(struct job_layer, root), .flags = HW_REQUIRED,
	  .help = "directory for the files of the layer" },
	{ "recipe", HW_STRING, HW_AT(struct job_layer, recipe),
	  .help = "file to write the recipe to" },
	{ "blob", HW_STRING, HW_AT(struct job_layer, blob), .help = "file to write the blob to" },
	{ 0 },
};

const struct hw_field job_plan_fields[] = {
	{ "layers", HW_LIST, HW_AT(struct job_plan, layers), .sub = layer_fields,
	  .size = sizeof(struct job_layer), .help = "layers, the lowest first" },
	{ 0 },
};

const struct hw_field job_resolved_fields[] = {
	{ "digest", HW_STRING, HW_AT(struct job_resolved, digest), .flags = HW_REQUIRED,
	  .help = "digest that the reference points to" },
	{ "host", HW_STRING, HW_AT(struct job_resolved, host), .flags = HW_REQUIRED,
	  .help = "host that responded" },
	{ "names", HW_STRINGS, HW_AT(struct job_resolved, names),
	  .help = "names of the image in the archive" },
	{ "images", HW_INT, HW_AT(struct job_resolved, images), .min = 0, .max = INT32_MAX,
	  .help = "number of images in the archive" },
	{ 0 },
};

const struct hw_field job_step_fields[] = {
	{ "layer", HW_INT, HW_AT(struct job_step, layer), .flags = HW_REQUIRED | HW_ALWAYS,
	  .min = 0, .max = INT32_MAX, .help = "number of the layer, the lowest is 0" },
	{ "bytes", HW_INT64, HW_AT(struct job_step, bytes), .min = 0, .max = INT64_MAX,
	  .help = "bytes of the blob received so far" },
	{ "size", HW_INT64, HW_AT(struct job_step, size), .min = 0, .max = INT64_MAX,
	  .help = "size of the blob in bytes" },
	{ "unpacked", HW_JSON, HW_AT(struct job_step, unpacked),
	  .help = "properties of the unpacked layer" },
	{ 0 },
};

const struct hw_field job_failed_fields[] = {
	{ "code", HW_INT, HW_AT(struct job_failed, code), .flags = HW_REQUIRED, .min = 1,
	  .max = 4095, .help = "positive errno" },
	{ "message", HW_STRING, HW_AT(struct job_failed, message), .flags = HW_REQUIRED,
	  .help = "error message" },
	{ 0 },
};

const char *job_verb(const struct fetch_job *job)
{
	return job->image > 0 ? "load" : "pull";
}

void job_wipe(struct fetch_job *job)
{
	struct credentials c = { job->username, job->password, job->identity_token,
				 job->registry_token };

	credentials_done(&c);
	job->username = job->password = job->identity_token = job->registry_token = NULL;
	hw_strings_free(&job->known_documents);
}

void job_done(struct fetch_job *job)
{
	job_wipe(job);
	hw_field_clear(job_fields, job);
}

void job_plan_done(struct job_plan *plan)
{
	hw_field_clear(job_plan_fields, plan);
}

void job_resolved_done(struct job_resolved *resolved)
{
	hw_field_clear(job_resolved_fields, resolved);
}

void job_step_done(struct job_step *step)
{
	hw_field_clear(job_step_fields, step);
}

/* ---- structs as messages --------------------------------------------------- */

int job_send_table(int fd, enum job_type type, const struct hw_field *table, const void *in,
		   int along, int idle_ms, struct hw_err *e)
{
	autofree char *json = hw_field_encode(table, in, 0);
	int r;

	r = job_send(fd, type, json, strlen(json), along, idle_ms, e);
	explicit_bzero(json, strlen(json)); /* may contain a password */
	return r;
}

void job_clean_text(char *text)
{
	for (char *c = text; *c; c++)
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			*c = ' ';
}

int job_decode(const struct job_message *m, const struct hw_field *table, void *out,
	       struct hw_err *e)
{
	int r;

	r = hw_field_decode(table, str_or(m->data.data, ""), m->data.len, out, e);
	if (r == 0)
		return 0;
	job_clean_text(e->msg); /* the message of a syntax error quotes the text */
	/* -EINVAL would mean that the client's request is wrong, -EFBIG that the image is too large */
	err_replace(e, -EINVAL, -EBADMSG);
	return err_replace(e, -EFBIG, -EBADMSG);
}

/* ---- errors ---------------------------------------------------------------- */

int job_send_failed(int fd, const struct hw_err *why, int idle_ms, struct hw_err *e)
{
	struct job_failed failed = { .code = -why->code, .message = (char *)why->msg };

	return job_send_table(fd, JOB_FAILED, job_failed_fields, &failed, -1, idle_ms, e);
}

int job_decode_failed(const struct job_message *m, struct hw_err *e)
{
	struct job_failed failed = { 0 };
	int r;

	r = job_decode(m, job_failed_fields, &failed, e);
	if (r < 0)
		return err_ctx(e, "malformed FAILED message of a helper");
	job_clean_text(failed.message);
	r = err_text(e, -failed.code, "%s", failed.message);
	hw_field_clear(job_failed_fields, &failed);
	return r;
}
