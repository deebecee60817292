/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/registry/blob.c - fetches the blob of a layer from a registry, with resume and retries
 *
 *	event                                    reaction
 *	transfer breaks after PROGRESS bytes     resume at that byte, reset the retry count
 *	transfer breaks earlier                  resume at that byte, while retries are left
 *	429, 5xx, no connection                  resume at that byte, while retries are left
 *	transfer stalls after PROGRESS bytes     resume at that byte
 *	transfer too slow                        continue at the next endpoint
 *	404, 403, stalled transfer, ...          continue at the next endpoint
 *	size mismatch before the first byte      continue at the next endpoint
 *	size or digest mismatch later            fail: DATA_LOSS
 *	write() fails                            fail with its error
 *	range requested, range received          request the rest as parallel ranges
 *	range requested, whole blob received     skip the bytes that were already passed on
 *
 * registry_backoff() waits before each retry. This time does not count as time of the transfer (pace.h).
 */
#include "fetch/registry/blob.h"

#include <errno.h>
#include <string.h>

#include "base/str.h"
#include "base/time.h"
#include "fetch/codec/sha256.h"
#include "fetch/http/ranges.h"
#include "image/digest.h"

#define PARALLEL_RANGES 3
#define PROGRESS	(1 << 20) /* bytes after which the retry count is reset */

struct transfer {
	const struct blob *b;
	const struct endpoint *ep;
	struct sha256 *hash;
	int64_t at;	  /* bytes passed on */
	int64_t skip;	  /* bytes to skip, because they were already passed on */
	struct pace pace; /* at this endpoint */
	bool has_ranges;  /* the server supports ranges */
	bool write_failed;
};

static int64_t size_of(const struct transfer *t)
{
	return t->b->descriptor->size;
}

static int on_data(void *ctx, const void *data, size_t len, struct hw_err *e)
{
	struct transfer *t = ctx;
	const char *bytes = data;
	int r;

	if ((int64_t)len <= t->skip) {
		t->skip -= (int64_t)len;
		return 0;
	}
	bytes += t->skip;
	len -= (size_t)t->skip;
	t->skip = 0;
	if ((int64_t)len > size_of(t) - t->at)
		return err_text(e, -EBADMSG, "size mismatch: got more than %lld bytes",
				(long long)size_of(t));
	sha256_add(t->hash, bytes, len);
	t->at += (int64_t)len;
	r = t->b->write(t->b->ctx, bytes, len, e);
	t->write_failed = r < 0;
	return r;
}

static int on_head(void *ctx, const struct http_response *response, struct hw_err *e)
{
	struct transfer *t = ctx;
	bool is_range = response->status == 206;
	int64_t total = is_range ? response->range_total : response->length;

	if (is_range && response->range_start != t->at)
		return err_text(e, -EBADMSG, "range mismatch: got bytes from %lld, want from %lld",
				(long long)response->range_start, (long long)t->at);
	if (total >= 0 && total != size_of(t))
		return err_text(e, -EBADMSG, "size mismatch: got %lld bytes, want %lld",
				(long long)total, (long long)size_of(t));
	t->has_ranges = is_range;
	t->skip = is_range ? 0 : t->at;
	return 0;
}

/* Sends the first request, or the first one after an error. Follows redirects and gets a token. */
static int request_rest(struct transfer *t, struct http_response *response, struct hw_err *e)
{
	autofree char *url = str_printf("%s/blobs/%s", t->ep->base, t->b->descriptor->digest);
	int64_t part = t->b->registry->job->request_bytes;
	struct http_request request = {
		.url = url,
		.first = t->at,
		.pace = &t->pace,
		.on_head = on_head,
		.on_data = on_data,
		.ctx = t,
	};

	if (size_of(t) - t->at > part) {
		request.has_range = true;
		request.last = t->at + part - 1;
	} else if (t->at > 0) {
		request.has_range = true;
		request.last = -1;
	}
	t->has_ranges = false;
	return registry_request(t->ep, t->b->http, &request, response, e);
}

/* Fetches the rest from the URL that sent the first range. After an error the caller continues with
 * request_rest(). */
static int fetch_ranges(struct transfer *t, const struct http_response *response, struct hw_err *e)
{
	unsigned int generation;
	AUTO(str_wipe)
	char *header = response->cross_origin ? NULL : auth_header(t->ep->auth, &generation);
	struct http_ranges ranges = {
		.url = response->url,
		.authorization = header,
		.first = t->at,
		.end = size_of(t),
		.size = t->b->registry->job->request_bytes,
		.parallel = PARALLEL_RANGES,
		.from = response->from,
		.pace = &t->pace,
		.on_data = on_data,
		.ctx = t,
	};

	return http_fetch_ranges(t->b->http, &ranges, e);
}

static bool back_off(struct transfer *t, struct registry_retry *retry, int error,
		     const struct http_response *response)
{
	int64_t before = time_now();
	bool again = registry_backoff(t->b->registry, retry, error, response);

	pace_wait(&t->pace, time_now() - before);
	return again;
}

/* Fetches until the blob is complete, or the retries at this endpoint are exhausted. */
static int fetch_from_endpoint(struct transfer *t, struct hw_err *e)
{
	struct registry_retry retry = { 0 };
	int64_t retry_at = t->at; /* value of t->at when the retry count was reset */

	t->pace = (struct pace){ .expected = size_of(t) - t->at };
	for (;;) {
		AUTO(http_response_done) struct http_response response = { 0 };
		int64_t before = t->at;
		int r;

		r = request_rest(t, &response, e);
		if (r == 0 && t->has_ranges && t->at < size_of(t))
			r = fetch_ranges(t, &response, e);
		if (t->write_failed || t->pace.is_too_slow || (t->at == size_of(t) && r == 0))
			return r;
		if (r == 0)
			r = err_text(e, -ECOMM, "truncated: got %lld of %lld bytes",
				     (long long)t->at, (long long)size_of(t));
		if (r == -ETIMEDOUT && t->at - before >= PROGRESS)
			r = -ECOMM;
		if (t->at - retry_at >= PROGRESS) {
			retry = (struct registry_retry){ 0 };
			retry_at = t->at;
		}
		if (!back_off(t, &retry, r, &response))
			return r;
	}
}

static int fetch_and_verify(struct transfer *t, struct hw_err *e)
{
	const struct registry *registry = t->b->registry;
	const char *want = t->b->descriptor->digest;
	uint8_t sum[DIGEST_SIZE];
	char digest[DIGEST_TEXT];
	int r = -EINVAL;

	if (!digest_is_sha256(want))
		return err_text(e, -EOPNOTSUPP, "only SHA-256 digests are supported");
	for (size_t i = 0; i < registry->n; i++) {
		t->ep = &registry->endpoints[(t->b->endpoint + i) % registry->n];
		r = fetch_from_endpoint(t, e);
		/* another endpoint cannot fix a local error, or wrong bytes that were passed on */
		if (r == 0 || t->write_failed || (r == -EBADMSG && t->at > 0))
			break;
	}
	if (r < 0)
		return r;
	sha256_end(t->hash, sum);
	digest_format(sum, digest);
	if (!str_equal(digest, want))
		return err_text(e, -EBADMSG, "digest mismatch: got %s, want %s", digest, want);
	return 0;
}

int blob_fetch(const struct blob *b, struct hw_err *e)
{
	AUTO(sha256_free) struct sha256 *hash = sha256_new();
	struct transfer t = { .b = b, .hash = hash, .ep = &b->registry->endpoints[b->endpoint] };

	if (fetch_and_verify(&t, e) < 0)
		return err_ctx(e, "pull %s from %s: layer %s", b->registry->job->reference,
			       t.ep->host, b->descriptor->digest);
	return 0;
}
