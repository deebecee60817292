/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/registry/blob.c - a layer's blob from a registry, as a stream that can break and go on
 *
 *	what happens                           what is done
 *	the stream breaks, after many bytes    asked again from there, patience renewed
 *	the stream breaks, after few           asked again from there, until patience ends
 *	429, 5xx, no connection                the same, after a while
 *	it stands still, after many bytes      asked again from there
 *	404, 403, it stands still, ...         the next endpoint, from there
 *	another length than promised           the same, as long as none of it was taken
 *	more, or other, bytes than promised    an error: DATA_LOSS
 *	whoever takes the bytes does not       an error: his
 *	a part was asked for, and came         the others as parts, several at a time
 *	a part was asked for, all came         what is there already is passed over
 */
#include "fetch/registry/blob.h"

#include <errno.h>
#include <string.h>

#include "base/str.h"
#include "fetch/codec/sha256.h"
#include "fetch/http/ranges.h"
#include "image/digest.h"

#define PARTS_AT_ONCE 3
#define MANY	      (1 << 20) /* bytes; a server that gives them is worth being asked again */

struct fetch {
	const struct blob *b;
	const struct endpoint *ep;
	struct sha256 *hash;
	int64_t at;   /* bytes that were handed on */
	int64_t skip; /* bytes to come that were handed on before */
	bool parts;   /* the server gives parts */
	bool refused; /* by the taker of the bytes */
};

static int64_t size_of(const struct fetch *f)
{
	return f->b->descriptor->size;
}

static int hand_on(void *ctx, const void *data, size_t len, struct hw_err *e)
{
	struct fetch *f = ctx;
	const char *bytes = data;
	int r;

	if ((int64_t)len <= f->skip) {
		f->skip -= (int64_t)len;
		return 0;
	}
	bytes += f->skip;
	len -= (size_t)f->skip;
	f->skip = 0;
	if ((int64_t)len > size_of(f) - f->at)
		return err_text(e, -EBADMSG, "it is longer than the %lld bytes of its manifest",
				(long long)size_of(f));
	sha256_add(f->hash, bytes, len);
	f->at += (int64_t)len;
	r = f->b->data(f->b->ctx, bytes, len, e);
	f->refused = r < 0;
	return r;
}

/* Before the first byte: what do we get? */
static int look(void *ctx, const struct http_response *a, struct hw_err *e)
{
	struct fetch *f = ctx;
	int64_t total = a->status == 206 ? a->total : a->length;

	if (a->status == 206 && a->from != f->at)
		return err_text(e, -EBADMSG, "bytes from %lld on were asked for, not from %lld",
				(long long)f->at, (long long)a->from);
	if (total >= 0 && total != size_of(f))
		return err_text(e, -EBADMSG, "it has %lld bytes, and %lld in its manifest",
				(long long)total, (long long)size_of(f));
	f->parts = a->status == 206;
	f->skip = a->status == 206 ? 0 : f->at;
	return 0;
}

/* The first question, or after something broke: the way through redirects and tokens. */
static int ask(struct fetch *f, struct http_response *answer, struct hw_err *e)
{
	autofree char *url = str_printf("%s/blobs/%s", f->ep->base, f->b->descriptor->digest);
	int64_t part = f->b->registry->job->part;
	struct http_request q = { .url = url, .head = look, .data = hand_on, .ctx = f };

	if (size_of(f) - f->at > part) {
		q.ranged = true;
		q.last = f->at + part - 1;
	} else if (f->at > 0) {
		q.ranged = true;
		q.last = -1;
	}
	q.first = f->at;
	f->parts = false;
	return registry_request(f->ep, f->b->http, &q, answer, e);
}

/* The rest from where the first part came from. That it fails is no harm: ask() goes on. */
static int get_parts(struct fetch *f, const struct http_response *answer, struct hw_err *e)
{
	unsigned int number;
	autofree char *header = answer->moved ? NULL : auth_header(f->ep->auth, &number);
	struct http_ranges p = {
		.url = answer->url,
		.authorization = header,
		.first = f->at,
		.end = size_of(f),
		.part = f->b->registry->job->part,
		.at_once = PARTS_AT_ONCE,
		.guarded = answer->moved && answer->remote,
		.data = hand_on,
		.ctx = f,
	};

	return http_fetch_ranges(f->b->http, &p, e);
}

/* Until the end, or until this endpoint gives no more. */
static int fetch_from(struct fetch *f, struct hw_err *e)
{
	struct registry_retry p = { 0 };
	int64_t renewed = f->at;

	for (;;) {
		AUTO(http_response_done) struct http_response answer = { 0 };
		int64_t before = f->at;
		int r = ask(f, &answer, e);

		if (r == 0 && f->parts && f->at < size_of(f))
			r = get_parts(f, &answer, e);
		if (f->refused || (f->at == size_of(f) && r == 0))
			return r;
		if (r == 0)
			r = err_text(e, -ECOMM, "it ends after %lld of %lld bytes",
				     (long long)f->at, (long long)size_of(f));
		if (r == -ETIMEDOUT && f->at - before >= MANY)
			r = -ECOMM;
		if (f->at - renewed >= MANY) {
			p = (struct registry_retry){ 0 };
			renewed = f->at;
		}
		if (!registry_backoff(f->b->registry, &p, r, &answer))
			return r;
	}
}

static int check(struct fetch *f, struct hw_err *e)
{
	uint8_t sum[DIGEST_SIZE];
	char digest[DIGEST_TEXT];

	sha256_end(f->hash, sum);
	digest_format(sum, digest);
	if (!str_equal(digest, f->b->descriptor->digest))
		return err_text(e, -EBADMSG, "its digest is %s", digest);
	return 0;
}

/* Another endpoint does not make better what is wrong with us, or with the bytes so far. */
static bool is_final(const struct fetch *f, int r)
{
	return f->refused || (r == -EBADMSG && f->at > 0);
}

static int fetch(struct fetch *f, struct hw_err *e)
{
	const struct registry *r = f->b->registry;
	int code = -EINVAL;

	if (!digest_is_sha256(f->b->descriptor->digest))
		return err_text(e, -EOPNOTSUPP, "only SHA-256 digests are supported");
	for (size_t i = 0; i < r->n; i++) {
		f->ep = &r->endpoints[(f->b->endpoint + i) % r->n];
		code = fetch_from(f, e);
		if (code == 0 || is_final(f, code))
			break;
	}
	return code < 0 ? code : check(f, e);
}

/**
 * blob_fetch() - fetch a blob to its end
 *
 * Return: 0 when every byte was right; -EBADMSG when one was not; what the taker of
 * the bytes said; or why no endpoint gives it
 */
int blob_fetch(const struct blob *b, struct hw_err *e)
{
	AUTO(sha256_free) struct sha256 *hash = sha256_new();
	struct fetch f = { .b = b, .hash = hash, .ep = &b->registry->endpoints[b->endpoint] };
	int r = fetch(&f, e);

	if (r < 0)
		return err_ctx(e, "pull %s from %s: layer %s", b->registry->job->reference,
			       f.ep->host, b->descriptor->digest);
	return 0;
}
