/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image/protocol/job.h - protocol between the daemon, hawser-fetch and hawser-layer
 *
 * What:  messages over a stream socket, which is the helper's standard input
 *        and output (base/os/helper.h). A message is a header of five bytes (length, 32 bits little
 *        endian; type) and the payload: JSON in the format of one of the tables
 *        below, or a document of the registry byte for byte.
 *
 *	daemon                               hawser-fetch
 *	JOB       image and settings; for ─►
 *	          a load with the archive
 *	          as file descriptor
 *	                                  ◄─ RESOLVED  digest that the reference points to
 *	                                  ◄─ MANIFEST  document; first the indexes that
 *	                                               lead to it, if any
 *	                                  ◄─ CONFIG    document
 *	PLAN      paths for the layers,   ─►
 *	          which of them exist
 *	                                  ◄─ PROGRESS  bytes of a layer so far, repeated
 *	                                  ◄─ LAYER     a layer is unpacked; lowest first
 *	                                  ◄─ DONE      all layers are unpacked
 *	                                  ◄─ FAILED    error; may replace any message above
 *
 *        Inside hawser-fetch, the supervisor and the fetcher use the same messages,
 *        except for layers: FETCH requests a layer and carries the pipe to write its
 *        archive to; FETCHED reports that the archive was complete and valid. A BLOB
 *        message before FETCH carries a file for a copy of the compressed blob. An
 *        unpacker sends LAYER or FAILED to the supervisor.
 *        hawser-layer sends one message: REPORT after verifying a layer, DONE after
 *        writing an archive, or FAILED.
 * Rules: helpers process untrusted input, so the daemon trusts nothing that
 *        they report: message sizes are limited before memory is allocated, and the
 *        daemon checks all digests again. To stop a helper the daemon closes the
 *        socket.
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
#include "base/os/helper.h"
#include "image/platform.h"

#define JOB_MESSAGE_MAX	 (4 << 20) /* payload bytes; documents are not larger */
#define JOB_PARALLEL_MAX 16	   /* layers fetched in parallel */

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
	JOB_REPORT,
	JOB_TYPES,
};

/* JOB */
struct fetch_job {
	char *reference; /* complete: docker.io/library/busybox:latest; in archives "image 1" */
	/* Position of the image in the archive, from 1; the archive's file descriptor is sent with
	 * the job. 0: the image comes from a registry. */
	int image;
	char *format; /* format of the archive: "oci" or "docker"; NULL or "": detect */
	struct platform platform;
	/* Manifests and configurations that are already in the store. They are not downloaded again;
	 * the reference is always resolved again. */
	struct hw_strings known_documents;
	/* Credentials for the registry of the reference; mirrors never get them. */
	char *username, *password;
	char *identity_token; /* OAuth2 refresh token */
	char *registry_token; /* bearer token */
	/* connections */
	char *auth_file;	      /* in the format of Docker's config.json; or NULL */
	char *certs_dir;	      /* has a subdirectory for each HOST:PORT; or NULL */
	struct hw_strings mirrors;    /* URLs, tried before the registry */
	struct hw_strings plain_http; /* hosts to contact without TLS */
	/* limits */
	int idle_ms;		   /* timeout if no or almost no bytes arrive */
	int slow_ms;		   /* how long a transfer may be slow after its first byte */
	int retries;		   /* retries after temporary errors */
	int64_t layer_bytes_max;   /* maximum size of an unpacked layer */
	int64_t layer_entries_max; /* maximum number of files and directories in a layer */
	int64_t reserve;	   /* bytes to leave free on the file system */
	int parallel;		   /* layers fetched at a time */
	int64_t request_bytes;	   /* bytes of a blob per request */
	uint32_t uid;		   /* user ID of the fetcher */
	bool keep_blobs;	   /* also keep the blobs of layers that can be rebuilt */
	bool unconfined;	   /* do not confine the processes; sanitizers need this */
};

/* PLAN: an entry for each layer of the manifest, the lowest first */
struct job_layer {
	bool have;     /* the layer is in the store; root is the directory of its files */
	char *diff_id; /* expected diff ID */
	char *root;    /* existing directory; empty unless have is set */
	char *recipe;  /* file to create */
	char *blob;    /* file to create if the blob is kept; NULL: never keep it */
};

struct job_plan {
	struct hw_list layers; /* list of struct job_layer */
};

/* RESOLVED */
struct job_resolved {
	char *digest; /* digest of the manifest or index that the reference points to */
	char *host;   /* host that responded: registry or mirror */
	/* archives only */
	struct hw_strings names; /* names of the image, as written in the archive */
	int images;		 /* number of images in the archive */
};

/* FETCH, BLOB, FETCHED, PROGRESS, LAYER */
struct job_step {
	int layer;
	int64_t bytes, size; /* bytes of the blob: received so far, total */
	char *unpacked;	     /* LAYER: JSON of struct unpacked, see layer-report.h */
};

/*
 * FAILED. These errors of a pull or a load have a meaning of their own; all others are failures of
 * this machine:
 *
 *	EINVAL        the request is wrong: malformed name, not an archive of images
 *	ENODATA       no such image, or not for this platform
 *	EKEYREJECTED  the registry wants credentials, or other ones
 *	EACCES        the registry refuses access
 *	EBUSY         a layer is in use
 *	EUSERS        rate limit of the registry
 *	ECOMM         temporary error of the registry, or no connection to it
 *	EPROTO        TLS or HTTP error
 *	ETIMEDOUT     no progress, or the deadline has passed
 *	ECANCELED     cancelled by the client
 *	EBADMSG       malformed or damaged content: manifest, archive, digest mismatch
 *	EOPNOTSUPP    content that hawser does not support
 *	EFBIG         a size limit is exceeded
 *	EPERM         refused by hawser: redirect to a forbidden address
 *	ENOKEY        unusable certificates or credentials file on this machine
 *	ENOSPC        the disk is full; EDQUOT: the disk quota is used up
 *	EAGAIN        no more processes can be started
 *	EMFILE        no descriptors left, in this process; ENFILE: on this machine
 */
struct job_failed {
	int code; /* errno, positive */
	char *message;
};

/* "pull" or "load", for messages. */
const char *job_verb(const struct fetch_job *job);

extern const struct hw_field job_fields[], job_plan_fields[], job_resolved_fields[],
	job_step_fields[], job_failed_fields[];

void job_done(struct fetch_job *job);
/* Wipe the secrets and free the known documents. To be called when they are no longer needed. */
void job_wipe(struct fetch_job *job);
void job_plan_done(struct job_plan *plan);
void job_resolved_done(struct job_resolved *resolved);
void job_step_done(struct job_step *step);

struct job_message {
	enum job_type type;
	struct buf data;
	int fd; /* received with the message; or -1 */
};

void job_message_done(struct job_message *m); /* also closes the descriptor */

/*
 * Send a message. @along is a file descriptor to pass with it, which is borrowed; or -1. The call
 * fails if no part of the message can be sent for @idle_ms. If the call fails in the middle of a
 * message, it shuts the socket down for writing: otherwise the receiver would take the next message
 * for the rest of this one. Return: 0; -ETIMEDOUT; or another negative errno
 */
int job_send(int fd, enum job_type type, const void *data, size_t len, int along, int idle_ms,
	     struct hw_err *e);
/* Send a struct as JSON. The JSON is wiped from memory, because it may contain secrets. */
int job_send_table(int fd, enum job_type type, const struct hw_field *table, const void *in,
		   int along, int idle_ms, struct hw_err *e);
/*
 * Receive the next message. The call fails if no part of it arrives for @idle_ms; 0: no timeout.
 * The old content of *ret_message is overwritten, not freed. Return: 1; 0 on EOF; -ETIMEDOUT;
 * -EBADMSG: malformed header; -EPIPE: EOF within a message; or another negative errno
 */
int job_receive(int fd, int idle_ms, struct job_message *ret_message, struct hw_err *e);
/*
 * Receive the next message of a program, which may stop at any byte of it. @cancel_fd, @deadline:
 * see helper_wait(). Return: as job_receive(); -ECANCELED; -ETIMEDOUT only at the deadline; -EIO:
 * half a minute after its first byte the message is not complete
 */
int job_receive_from(struct helper *h, int cancel_fd, int64_t deadline,
		     struct job_message *ret_message, struct hw_err *e);
/* The only message of a helper: its answer, or FAILED. */
struct job_answer {
	const char *name; /* of the helper, for errors */
	enum job_type type;
	int failed;	  /* negative errno for FAILED; the message has the helper's text */
	int cancel_fd;	  /* see helper_wait() */
	int64_t deadline; /* see helper_wait() */
};
/* Return: 0; answer->failed; -ECANCELED; -ETIMEDOUT; -EIO: the helper exited without a message, or
 * stopped within it; -EBADMSG: another message; or another negative errno */
int job_receive_answer(struct helper *h, const struct job_answer *answer,
		       struct job_message *ret_message, struct hw_err *e);
/* Decode the JSON payload of a message. Return: 0; -EBADMSG: malformed */
int job_decode(const struct job_message *m, const struct hw_field *table, void *out,
	       struct hw_err *e);

/* Replace control characters by spaces. A text of a helper may come from a registry, and be shown on a
 * terminal. The errors of job_decode() and job_decode_failed() are clean. */
void job_clean_text(char *text);

int job_send_failed(int fd, const struct hw_err *why, int idle_ms, struct hw_err *e);
/* Decode the error of a FAILED message into @e. Return: its negative errno; -EBADMSG: malformed */
int job_decode_failed(const struct job_message *m, struct hw_err *e);

AUTO_VALUE_DEFINE(job_done, struct fetch_job);
AUTO_VALUE_DEFINE(job_plan_done, struct job_plan);
AUTO_VALUE_DEFINE(job_resolved_done, struct job_resolved);
AUTO_VALUE_DEFINE(job_step_done, struct job_step);
AUTO_VALUE_DEFINE(job_message_done, struct job_message);

#endif
