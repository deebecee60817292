/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image/protocol/job.h - what the daemon and hawser-fetch say to each other
 *
 * What:  messages over one stream socket, which is hawser-fetch's standard input
 *        and output. Each is five bytes (length, 32 bits little endian; type) and
 *        then the length's bytes: JSON by one of the tables below, or a document
 *        of the registry byte for byte.
 *
 *	daemon                               hawser-fetch
 *	JOB       which image, from where ─►
 *	          (with an archive, if it
 *	          comes from there)
 *	                                  ◄─ RESOLVED  what the reference stands for
 *	                                  ◄─ MANIFEST  its bytes; before it those of
 *	                                               the indexes that lead to it
 *	                                  ◄─ CONFIG    its bytes
 *	PLAN      where layers go, which  ─►
 *	          are there already
 *	                                  ◄─ PROGRESS  bytes of a layer so far, often
 *	                                  ◄─ LAYER     one is complete; the lowest first
 *	                                  ◄─ DONE      all are
 *	                                  ◄─ FAILED    instead of any of these: why
 *
 *        Inside of hawser-fetch the process that fetches says the same to the one
 *        that unpacks, except for layers: FETCH names one and carries the pipe
 *        to write its archive to, FETCHED says that all of it was right. BLOB before
 *        it carries a file for the layer as it comes.
 * Rules: hawser-fetch has read what strangers wrote, so nothing it says is
 *        believed: messages are bounded before they are allocated, and what they
 *        say of digests is checked again by the daemon, who closes the socket
 *        when it has had enough; that ends hawser-fetch.
 */
#ifndef IMAGE_PROTOCOL_JOB_H
#define IMAGE_PROTOCOL_JOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hawser/field.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "image/platform.h"

#define JOB_MESSAGE_MAX	 (4 << 20) /* bytes of one message; no document is larger */
#define JOB_PARALLEL_MAX 16	   /* layers at a time */

enum job_type {
	JOB_NONE,
	JOB_JOB,
	JOB_PLAN,
	JOB_FETCH,
	JOB_RESOLVED,
	JOB_MANIFEST,
	JOB_CONFIG,
	JOB_PROGRESS,
	JOB_FETCHED,
	JOB_LAYER,
	JOB_DONE,
	JOB_FAILED,
	JOB_BLOB,
	JOB_TYPES,
};

/* JOB */
struct job {
	char *reference; /* complete: docker.io/library/busybox:latest; or "image 1" */
	/* Which image of the archive whose descriptor came with the job; the first is 1, and 0 means
	 * that there is none: it comes from a registry. */
	int image;
	char *format; /* of the archive: "oci" or "docker"; NULL or "": either */
	struct platform platform;
	/* documents that are here: manifests and configurations, whole; they are not asked for, but
	 * what the reference stands for always is */
	struct hw_strings known;
	/* for the reference's own registry, never for its mirrors */
	char *username, *password;
	char *identity_token; /* to be changed for another one */
	char *registry_token; /* to be used as it is */
	/* how to get there */
	char *auth_file;	      /* Docker's config.json; NULL: none */
	char *certs_dir;	      /* with a folder for each HOST:PORT; NULL: none */
	struct hw_strings mirrors;    /* URLs, to be asked before the registry */
	struct hw_strings plain_http; /* hosts that speak no TLS */
	/* bounds */
	int idle_ms;	 /* without a byte, or nearly so */
	int retries;	 /* of what may go better the next time */
	int64_t bytes;	 /* of an unpacked layer */
	int64_t entries; /* of a layer */
	int64_t reserve; /* bytes of the file system that stay free */
	int parallel;	 /* layers at a time */
	int64_t part;	 /* bytes of a blob that are asked for at once */
	uint32_t uid;	 /* of the process that fetches */
	bool keep_blobs; /* also of layers that can be rebuilt */
	bool keep_open;	 /* the process that unpacks is not confined: for sanitizers */
};

/* PLAN: one for each layer of the manifest, the lowest first */
struct job_layer {
	bool have;     /* it is in the store, and root is where */
	char *diff_id; /* that it must have */
	char *root;    /* an empty folder, unless we have it */
	char *recipe;  /* a file to be made */
	char *blob;    /* a file to be made, where the blob is kept; NULL: nowhere */
};

struct job_plan {
	struct hw_list layers; /* of struct job_layer */
};

/* RESOLVED */
struct job_resolved {
	char *digest; /* of what the reference stands for: a manifest or an index */
	char *host;   /* that answered */
	/* of an archive alone */
	struct hw_strings names; /* of the image, as they are written there */
	int images;		 /* that the archive has */
};

/* FETCH, BLOB, FETCHED, PROGRESS; LAYER with what is known of it */
struct job_step {
	int layer;
	int64_t bytes, size; /* of the blob, so far and in all */
	char *unpacked;	     /* JSON, see unpacked.h */
};

/* FAILED */
struct job_failed {
	int code; /* errno, positive */
	int wire; /* gRPC's */
	char *message;
};

const char *job_verb(const struct job *job); /* for messages: "pull" or "load" */

extern const struct hw_field job_fields[], job_plan_fields[], job_resolved_fields[],
	job_step_fields[], job_failed_fields[];

void job_done(struct job *job);
void job_forget(struct job *job); /* what is secret in it, and what is large */
void job_plan_done(struct job_plan *plan);
void job_resolved_done(struct job_resolved *resolved);
void job_step_done(struct job_step *step);

struct job_message {
	enum job_type type;
	struct buf data;
	int fd; /* that came along; -1: none */
};

void job_message_done(struct job_message *m);

int job_send(int fd, enum job_type type, const void *data, size_t len, int along, int idle_ms,
	     struct hw_err *e);
int job_send_table(int fd, enum job_type type, const struct hw_field *table, const void *in,
		   int along, int idle_ms, struct hw_err *e);
int job_receive(int fd, int idle_ms, struct job_message *ret_message, struct hw_err *e);
int job_decode(const struct job_message *m, const struct hw_field *table, void *out,
	       struct hw_err *e);

int job_send_failed(int fd, const struct hw_err *why, int idle_ms, struct hw_err *e);
int job_meaning(const struct hw_err *e);			      /* gRPC's code */
int job_decode_failed(const struct job_message *m, struct hw_err *e); /* always negative */

AUTO_VALUE_DEFINE(job_done, struct job);
AUTO_VALUE_DEFINE(job_plan_done, struct job_plan);
AUTO_VALUE_DEFINE(job_resolved_done, struct job_resolved);
AUTO_VALUE_DEFINE(job_step_done, struct job_step);
AUTO_VALUE_DEFINE(job_message_done, struct job_message);

#endif
