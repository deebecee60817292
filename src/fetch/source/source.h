/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/source/source.h - source of an image: a registry or an archive
 *
 * What:  struct source is the interface that the fetcher uses: resolve the image to its documents,
 *        and fetch the blob of a layer. resolve_image() is the part that all sources share.
 * Rules: documents and blobs have the expected digest and size, or the call fails. The bytes of a
 *        blob are passed on before they are verified: the receiver must discard them if the call
 *        fails.
 */
#ifndef FETCH_SOURCE_SOURCE_H
#define FETCH_SOURCE_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hawser/field.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "image/digest.h"
#include "image/manifest.h"
#include "image/protocol/job.h"

#define RESOLVE_DOCUMENTS_MAX 4

/* Receives bytes of a blob, in order; a negative result stops the transfer. */
typedef int source_write(void *ctx, const void *data, size_t len, struct hw_err *e);

/* The image that a reference resolves to. */
struct resolved_image {
	size_t endpoint;	  /* registry only: index of the endpoint that has the image */
	const char *host;	  /* registry or archive, for messages; owned by the source */
	char digest[DIGEST_TEXT]; /* digest of the manifest or index that the reference names */
	/* indexes, each naming the next document, and the image's manifest as the last one */
	struct buf documents[RESOLVE_DOCUMENTS_MAX];
	size_t n_documents;
	struct buf config;
	struct manifest *manifest; /* the last document, parsed */
	/* archive only: */
	struct hw_strings names; /* names of the image */
	int images;		 /* number of images in the archive */
};

void resolved_image_done(struct resolved_image *image);
AUTO_VALUE_DEFINE(resolved_image_done, struct resolved_image);

struct document_head {
	char *type;   /* media type; NULL: unknown */
	bool foreign; /* sent by another server, to which the registry has redirected */
};

/* Where documents come from. */
struct document_source {
	/* @kind: "manifests" or "blobs"; @name: a digest or a registry's tag; *ret_head: empty, may
	 * be left so. The caller checks digest and size. */
	int (*get)(void *ctx, const char *kind, const char *name, struct buf *ret_body,
		   struct document_head *ret_head, struct hw_err *e);
	void *ctx;
	const struct hw_strings *known; /* documents for which get() is not needed; NULL: none */
};

/* Find the manifest for a platform, by following indexes, and its configuration. @image: must be
 * empty; may be partly filled after an error. @name: digest or tag of the first document; @size:
 * its size, -1: unknown. Return: 0; -ENODATA: no image for the platform; or negative errno */
int resolve_image(struct resolved_image *image, const struct document_source *from,
		  const char *name, int64_t size, const struct platform *wanted, struct hw_err *e);

struct source {
	const struct fetch_job *job;
	/* Resolve the job's image. Called once, before fetch_blob(), after privileges were
	 * dropped. */
	int (*resolve)(struct source *s, struct resolved_image *ret_image, struct hw_err *e);
	/* Fetch a blob and pass its bytes to write(). Any thread may call it. */
	int (*fetch_blob)(struct source *s, const struct resolved_image *image,
			  const struct descriptor *d, source_write *write, void *ctx,
			  struct hw_err *e);
};

/* Create a source. To be called while the process may still read the host's files, such as
 * certificates and credentials. A source is never freed: threads use it until the process exits.
 * @job is borrowed. */
int registry_source_new(const struct fetch_job *job, struct source **ret_source, struct hw_err *e);
struct source *archive_source_new(const struct fetch_job *job, int fd); /* @fd is borrowed */

#endif
