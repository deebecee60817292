/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image/protocol/job.c - what the daemon and hawser-fetch say to each other: the tables, and errors
 */
#include "image/protocol/job.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "image/credentials.h"

/* ---- the tables ------------------------------------------------------------ */

#define SECRET(name, text)                                                                         \
	{                                                                                          \
#name, HW_STRING, HW_AT(struct job, name), .flags = HW_SECRET, .help = text        \
	}

const struct hw_field job_fields[] = {
	{ "reference", HW_STRING, HW_AT(struct job, reference), .flags = HW_REQUIRED,
	  .help = "the image's complete name" },
	{ "image", HW_INT, HW_AT(struct job, image), .min = 0, .max = INT32_MAX,
	  .help = "which one of the archive that comes along; 0: there is none" },
	{ "format", HW_STRING, HW_AT(struct job, format), .help = "of the archive: oci or docker" },
	{ "platform", HW_OBJECT, HW_AT(struct job, platform), .sub = platform_fields,
	  .help = "what it must run on" },
	{ "known", HW_STRINGS, HW_AT(struct job, known), .help = "documents that are here" },
	SECRET(username, "for the registry"),
	SECRET(password, "for the registry"),
	SECRET(identity_token, "an OAuth2 refresh token"),
	SECRET(registry_token, "a bearer token"),
	{ "auth_file", HW_STRING, HW_AT(struct job, auth_file), .help = "as Docker's config.json" },
	{ "certs_dir", HW_STRING, HW_AT(struct job, certs_dir), .help = "a folder for each host" },
	{ "mirrors", HW_STRINGS, HW_AT(struct job, mirrors), .help = "URLs, asked first" },
	{ "plain_http", HW_STRINGS, HW_AT(struct job, plain_http), .help = "hosts without TLS" },
	{ "idle_ms", HW_INT, HW_AT(struct job, idle_ms), .def = "60000", .min = 1, .max = 86400000,
	  .help = "how long to wait without progress" },
	{ "retries", HW_INT, HW_AT(struct job, retries), .def = "4", .min = 0, .max = 100,
	  .flags = HW_ALWAYS, .help = "of what may go better the next time" },
	{ "bytes", HW_INT64, HW_AT(struct job, bytes), .def = "68719476736", .min = 1,
	  .max = INT64_MAX, .help = "of an unpacked layer, at most" },
	{ "entries", HW_INT64, HW_AT(struct job, entries), .def = "1000000", .min = 1,
	  .max = INT64_MAX, .help = "of a layer, at most" },
	{ "reserve", HW_INT64, HW_AT(struct job, reserve), .min = 0, .max = INT64_MAX,
	  .help = "bytes of the file system that stay free" },
	{ "parallel", HW_INT, HW_AT(struct job, parallel), .def = "3", .min = 1,
	  .max = JOB_PARALLEL_MAX, .help = "layers at a time" },
	{ "part", HW_INT64, HW_AT(struct job, part), .def = "1048576", .min = 1, .max = 16 << 20,
	  .help = "bytes of a blob that are asked for at once" },
	{ "uid", HW_UINT32, HW_AT(struct job, uid), .def = "65534", .help = "whom to fetch as" },
	{ "keep_blobs", HW_BOOL, HW_AT(struct job, keep_blobs),
	  .help = "keep blobs also of layers that can be rebuilt" },
	{ "keep_open", HW_BOOL, HW_AT(struct job, keep_open),
	  .help = "do not confine the process that unpacks" },
	{ 0 },
};

static const struct hw_field layer_fields[] = {
	{ "have", HW_BOOL, HW_AT(struct job_layer, have), .help = "it is in the store" },
	{ "diff_id", HW_STRING, HW_AT(struct job_layer, diff_id), .flags = HW_REQUIRED,
	  .help = "that it must have" },
	{ "root", HW_STRING, HW_AT(struct job_layer, root), .flags = HW_REQUIRED,
	  .help = "the folder where it is or goes" },
	{ "recipe", HW_STRING, HW_AT(struct job_layer, recipe), .help = "the file for its recipe" },
	{ "blob", HW_STRING, HW_AT(struct job_layer, blob), .help = "the file for its blob" },
	{ 0 },
};

const struct hw_field job_plan_fields[] = {
	{ "layers", HW_LIST, HW_AT(struct job_plan, layers), .sub = layer_fields,
	  .size = sizeof(struct job_layer), .help = "the lowest first" },
	{ 0 },
};

const struct hw_field job_resolved_fields[] = {
	{ "digest", HW_STRING, HW_AT(struct job_resolved, digest), .flags = HW_REQUIRED,
	  .help = "of what the reference stands for" },
	{ "host", HW_STRING, HW_AT(struct job_resolved, host), .flags = HW_REQUIRED,
	  .help = "that answered" },
	{ "names", HW_STRINGS, HW_AT(struct job_resolved, names), .help = "in the archive" },
	{ "images", HW_INT, HW_AT(struct job_resolved, images), .min = 0, .max = INT32_MAX,
	  .help = "that the archive has" },
	{ 0 },
};

const struct hw_field job_step_fields[] = {
	{ "layer", HW_INT, HW_AT(struct job_step, layer), .flags = HW_REQUIRED | HW_ALWAYS,
	  .min = 0, .max = INT32_MAX, .help = "which one; the lowest is 0" },
	{ "bytes", HW_INT64, HW_AT(struct job_step, bytes), .min = 0, .max = INT64_MAX,
	  .help = "so far" },
	{ "size", HW_INT64, HW_AT(struct job_step, size), .min = 0, .max = INT64_MAX,
	  .help = "in all" },
	{ "unpacked", HW_JSON, HW_AT(struct job_step, unpacked), .help = "what is known of it" },
	{ 0 },
};

const struct hw_field job_failed_fields[] = {
	{ "code", HW_INT, HW_AT(struct job_failed, code), .flags = HW_REQUIRED, .min = 1,
	  .max = 4095, .help = "errno" },
	{ "wire", HW_INT, HW_AT(struct job_failed, wire), .flags = HW_REQUIRED, .min = 1, .max = 16,
	  .help = "gRPC's code" },
	{ "message", HW_STRING, HW_AT(struct job_failed, message), .flags = HW_REQUIRED,
	  .help = "why" },
	{ 0 },
};

/** job_verb() - what a job does, for messages */
const char *job_verb(const struct job *job)
{
	return job->image > 0 ? "load" : "pull";
}

/** job_forget() - it has been done; its name is still of use */
void job_forget(struct job *job)
{
	struct credentials c = { job->username, job->password, job->identity_token,
				 job->registry_token };

	credentials_done(&c);
	job->username = job->password = job->identity_token = job->registry_token = NULL;
	hw_strings_free(&job->known);
}

/** job_done() - free what a job holds */
void job_done(struct job *job)
{
	job_forget(job);
	hw_field_clear(job_fields, job);
}

/** job_plan_done() - free what a plan holds */
void job_plan_done(struct job_plan *plan)
{
	hw_field_clear(job_plan_fields, plan);
}

/** job_resolved_done() - free what it holds */
void job_resolved_done(struct job_resolved *resolved)
{
	hw_field_clear(job_resolved_fields, resolved);
}

/** job_step_done() - free what it holds */
void job_step_done(struct job_step *step)
{
	hw_field_clear(job_step_fields, step);
}

/* ---- structs as messages ------------------------------------------------------ */

/** job_send_table() - the same with a struct, as JSON */
int job_send_table(int fd, enum job_type type, const struct hw_field *table, const void *in,
		   int along, int idle_ms, struct hw_err *e)
{
	autofree char *json = hw_field_encode(table, in, 0);
	int r = job_send(fd, type, json, strlen(json), along, idle_ms, e);

	explicit_bzero(json, strlen(json)); /* a job has a password in it */
	return r;
}

/** job_decode() - what a message says */
int job_decode(const struct job_message *m, const struct hw_field *table, void *out,
	       struct hw_err *e)
{
	return hw_field_decode(table, str_or(m->data.data, ""), m->data.len, out, e);
}

/* ---- errors ---------------------------------------------------------------- */

/* What an error means to whoever asked for the image. The numbers are gRPC's. */
static const struct {
	int code, wire;
} meanings[] = {
	{ -ECANCELED, 1 },     /* CANCELLED */
	{ -ETIMEDOUT, 4 },     /* DEADLINE_EXCEEDED: nothing moves */
	{ -ENODATA, 5 },       /* NOT_FOUND: there is no such image; ENOENT is a file of ours */
	{ -EACCES, 7 },	       /* PERMISSION_DENIED */
	{ -EBUSY, 8 },	       /* RESOURCE_EXHAUSTED: we ask too often */
	{ -ENOSPC, 8 },	       /* no room here */
	{ -EDQUOT, 8 },	       /* for us */
	{ -EMFILE, 8 },	       /* no descriptors here */
	{ -ENFILE, 8 },	       /* for anybody */
	{ -EAGAIN, 8 },	       /* no processes here */
	{ -EFBIG, 8 },	       /* more than we take */
	{ -EPERM, 9 },	       /* FAILED_PRECONDITION: we do not go where we are sent */
	{ -EOPNOTSUPP, 9 },    /* of a kind that we do not know; UNIMPLEMENTED is for calls */
	{ -ECOMM, 14 },	       /* UNAVAILABLE: the registry may do better later */
	{ -EPROTO, 14 },       /* no TLS, or no HTTP */
	{ -EBADMSG, 15 },      /* DATA_LOSS: it is not what it should be */
	{ -EINVAL, 15 },       /* nor is this */
	{ -EKEYREJECTED, 16 }, /* UNAUTHENTICATED */
};

/** job_meaning() - an error as one of gRPC's codes */
int job_meaning(const struct hw_err *e)
{
	if (e->domain == HW_DOMAIN_GRPC)
		return e->wire;
	for (size_t i = 0; i < ARRAY_SIZE(meanings); i++)
		if (meanings[i].code == e->code)
			return meanings[i].wire;
	return 13; /* INTERNAL */
}

/** job_send_failed() - say why there is no image */
int job_send_failed(int fd, const struct hw_err *why, int idle_ms, struct hw_err *e)
{
	struct job_failed failed = { .code = -why->code,
				     .wire = job_meaning(why),
				     .message = (char *)why->msg };

	return job_send_table(fd, JOB_FAILED, job_failed_fields, &failed, -1, idle_ms, e);
}

/* One line, whatever a registry has put into its words. */
static void make_line(char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < ' ' || *text == 0x7f)
			*text = ' ';
}

/**
 * job_decode_failed() - the error that a FAILED message tells of
 *
 * Return: its negative errno, with gRPC's code in @e; -EBADMSG: it says nothing
 */
int job_decode_failed(const struct job_message *m, struct hw_err *e)
{
	struct job_failed failed = { 0 };
	int r = job_decode(m, job_failed_fields, &failed, e);

	if (r < 0)
		return err_ctx(e, "hawser-fetch has failed and does not say why");
	make_line(failed.message);
	r = err_text(e, -failed.code, "%s", failed.message);
	e->domain = HW_DOMAIN_GRPC;
	e->wire = failed.wire;
	hw_field_clear(job_failed_fields, &failed);
	return r;
}
