/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/source/source.h - where the bytes of an image come from: a registry, or an archive
 *
 * What:  two questions: what does the image consist of, and what are the bytes of
 *        this layer. The process that fetches (fetcher.h) asks them.
 * Rules: documents and blobs have the digest and the size that they should have, or
 *        there is an error. Bytes of a blob are handed on before that is known.
 */
#ifndef FETCH_SOURCE_SOURCE_H
#define FETCH_SOURCE_SOURCE_H

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

/* What the reference stands for. */
struct resolved_image {
	size_t endpoint;	  /* of a registry: that has it */
	const char *host;	  /* where it was found; the source's */
	char digest[DIGEST_TEXT]; /* of the manifest or index that was asked for */
	/* indexes, each naming the next, and at last the image's manifest */
	struct buf documents[RESOLVE_DOCUMENTS_MAX];
	size_t n_documents;
	struct buf config;
	struct manifest *manifest; /* the last of the documents */
	/* of an archive: */
	struct hw_strings names; /* of the image */
	int images;		 /* that there are */
};

void resolved_image_done(struct resolved_image *f);
AUTO_VALUE_DEFINE(resolved_image_done, struct resolved_image);

/* How documents are got. @kind: "manifests" or "blobs"; @name: a digest, or a registry's tag.
 * @ret_type: what it is said to be, may stay NULL. Whether it is the right one is not looked at. */
struct document_source {
	int (*get)(void *ctx, const char *kind, const char *name, struct buf *ret_body,
		   char **ret_type, struct hw_err *e);
	void *ctx;
	const struct hw_strings *known; /* documents that need not be got; NULL: none */
};

/* From a name to the manifest that fits, through indexes, and its configuration. @size: of what
 * is named, -1: not known. */
int resolve_image(struct resolved_image *f, const struct document_source *from, const char *name,
		  int64_t size, const struct platform *wanted, struct hw_err *e);

struct source {
	const struct job *job;
	/* By a process without rights, once, before anything else. */
	int (*find)(struct source *s, struct resolved_image *ret_found, struct hw_err *e);
	/* By any thread. */
	int (*blob)(struct source *s, const struct resolved_image *f, const struct descriptor *d,
		    int (*take)(void *ctx, const void *data, size_t len, struct hw_err *e),
		    void *ctx, struct hw_err *e);
};

/* By a process that may still read the host's files. They are never freed: threads use them until
 * the process ends. */
int registry_source_new(const struct job *job, struct source **ret_source, struct hw_err *e);
struct source *archive_source_new(const struct job *job, int fd); /* borrowed */

#endif
