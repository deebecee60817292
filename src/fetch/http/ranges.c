/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/http/ranges.c - HTTP range requests in parallel
 *
 * How:   a ring of slots, each with a libcurl handle and a buffer for one range. When the range of
 *        the first slot is complete, it is passed on, and the slot requests the next range that no
 *        slot has requested yet.
 */
#include "fetch/http/ranges.h"

#include <errno.h>

#include "base/time.h"
#include "fetch/http/handle.h"

#define SLOTS_MAX 8
#define POLL_MS	  1000

struct range_slot {
	CURL *curl;
	struct curl_slist *headers;
	int64_t first, last; /* requested bytes */
	struct buf bytes;
	bool running, complete;
	struct http_guard guard;
	struct pace *pace;
	char error[CURL_ERROR_SIZE];
};

struct ring {
	struct http *http;
	const struct http_ranges *ranges;
	struct url_origin origin;
	struct range_slot slots[SLOTS_MAX];
	size_t n;
	size_t head;	     /* slot of the next range to pass on */
	int64_t at;	     /* all bytes before this one were passed on */
	int64_t unrequested; /* first byte that has not been requested yet */
};

static int set_multi_error(CURLMcode code, struct hw_err *e)
{
	return err_text(e, -EIO, "libcurl: %s", curl_multi_strerror(code));
}

static size_t on_body(char *data, size_t size, size_t n, void *ctx)
{
	struct range_slot *s = ctx;
	size_t room = (size_t)(s->last - s->first + 1) - s->bytes.len;
	long status = 0;

	curl_easy_getinfo(s->curl, CURLINFO_RESPONSE_CODE, &status);
	if (status != 206 || size * n > room)
		return 0;
	pace_receive(s->pace, size * n, time_now());
	buf_add(&s->bytes, data, size * n);
	return size * n;
}

static int slot_start(struct ring *ring, struct range_slot *s, struct hw_err *e)
{
	const struct http_ranges *ranges = ring->ranges;
	struct http_request request = { .authorization = ranges->authorization,
					.has_range = true,
					.on_data = ranges->on_data };
	CURLMcode code;

	s->complete = false;
	s->bytes.len = 0;
	if (ring->unrequested >= ranges->end)
		return 0;
	s->first = ring->unrequested;
	s->last = s->first + ranges->size < ranges->end ? s->first + ranges->size - 1
							: ranges->end - 1;
	ring->unrequested = s->last + 1;
	request.first = s->first;
	request.last = s->last;
	buf_reserve(&s->bytes, (size_t)(s->last - s->first + 1));
	s->pace = ranges->pace;
	s->guard = (struct http_guard){ .from = ranges->from };
	s->headers = http_handle_prepare(s->curl, ring->http, &request, ranges->url, &ring->origin,
					 true, &s->guard);
	curl_easy_setopt(s->curl, CURLOPT_WRITEFUNCTION, on_body);
	curl_easy_setopt(s->curl, CURLOPT_WRITEDATA, s);
	curl_easy_setopt(s->curl, CURLOPT_ERRORBUFFER, s->error);
	curl_easy_setopt(s->curl, CURLOPT_PRIVATE, s);
	s->error[0] = '\0';
	s->running = true;
	code = curl_multi_add_handle(ring->http->multi, s->curl);
	return code == CURLM_OK ? 0 : set_multi_error(code, e);
}

static void slot_stop(struct ring *ring, struct range_slot *s)
{
	if (s->running)
		curl_multi_remove_handle(ring->http->multi, s->curl);
	s->running = false;
	curl_slist_free_all(take_ptr(s->headers));
}

static void ring_done(struct ring *ring)
{
	for (size_t i = 0; i < ring->n; i++) {
		slot_stop(ring, &ring->slots[i]);
		curl_easy_cleanup(ring->slots[i].curl);
		buf_done(&ring->slots[i].bytes);
	}
	url_origin_done(&ring->origin);
}
AUTO_VALUE_DEFINE(ring_done, struct ring);

static int end_finished_slots(struct ring *ring, struct hw_err *e)
{
	const CURLMsg *msg;
	int left;

	while ((msg = curl_multi_info_read(ring->http->multi, &left))) {
		CURLcode code = msg->data.result;
		struct range_slot *s = NULL;

		if (msg->msg != CURLMSG_DONE)
			continue;
		curl_easy_getinfo(msg->easy_handle, CURLINFO_PRIVATE, &s);
		slot_stop(ring, s); /* invalidates msg */
		if (s->guard.refused && code != CURLE_OK)
			return url_refuse_redirect(s->guard.to, ring->ranges->url, e);
		if (code != CURLE_OK)
			return http_curl_error(code, s->error, e);
		if ((int64_t)s->bytes.len != s->last - s->first + 1)
			return err_text(e, -ECOMM, "truncated range: got %zu of %lld bytes",
					s->bytes.len, (long long)(s->last - s->first + 1));
		s->complete = true;
	}
	return 0;
}

/* Passes on the complete ranges at the head of the ring. Their slots request the next ranges. */
static int pass_on_complete(struct ring *ring, struct hw_err *e)
{
	const struct http_ranges *ranges = ring->ranges;

	for (;;) {
		struct range_slot *s = &ring->slots[ring->head];
		int64_t before;
		int r;

		if (!s->complete)
			return 0;
		before = time_now();
		r = ranges->on_data(ranges->ctx, s->bytes.data, s->bytes.len, e);
		ranges->pace->away += time_now() - before;
		ring->at = s->last + 1;
		if (r == 0)
			r = slot_start(ring, s, e);
		if (r < 0)
			return r;
		ring->head = (ring->head + 1) % ring->n;
	}
}

int http_fetch_ranges(struct http *h, const struct http_ranges *ranges, struct hw_err *e)
{
	AUTO(ring_done)
	struct ring ring = {
		.http = h, .ranges = ranges, .at = ranges->first, .unrequested = ranges->first
	};
	CURLMcode code;
	int running, r;

	r = url_origin_parse(ranges->url, &ring.origin, e);
	if (r < 0)
		return r;
	if (!h->multi)
		h->multi = curl_multi_init();
	if (!h->multi)
		mem_exhausted();
	while (ring.n < SLOTS_MAX && ring.n < (size_t)ranges->parallel) {
		struct range_slot *s = &ring.slots[ring.n++];

		s->curl = curl_easy_init();
		if (!s->curl)
			mem_exhausted();
		r = slot_start(&ring, s, e);
		if (r < 0)
			return r;
	}
	while (ring.at < ranges->end) {
		code = curl_multi_perform(h->multi, &running);
		if (code != CURLM_OK)
			return set_multi_error(code, e);
		r = end_finished_slots(&ring, e);
		if (r == 0)
			r = pass_on_complete(&ring, e);
		if (r < 0 || ring.at >= ranges->end)
			return r;
		r = pace_check(ranges->pace, time_now(), h->slow_ms, e);
		if (r < 0)
			return r;
		code = curl_multi_poll(h->multi, NULL, 0, POLL_MS, NULL);
		if (code != CURLM_OK)
			return set_multi_error(code, e);
	}
	return 0;
}
