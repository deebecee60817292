/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/http/ranges.c - a large answer in parts, several at a time
 *
 * How:   a ring of slots, each with a handle of libcurl and room for one part.
 *        The first slot's part is handed on when it is complete, and the slot then
 *        asks for the next part behind the last one.
 */
#include "fetch/http/ranges.h"

#include <errno.h>

#include "fetch/http/handle.h"

#define SLOTS_MAX 8
#define POLL_MS	  1000

struct slot {
	CURL *curl;
	struct curl_slist *headers;
	int64_t first, last; /* bytes that were asked for */
	struct buf bytes;
	bool running, complete;
	struct http_guard guard;
	char error[CURL_ERROR_SIZE];
};

struct ring {
	struct http *http;
	const struct http_ranges *p;
	struct url_origin place;
	struct slot slots[SLOTS_MAX];
	size_t n;
	size_t head;  /* the slot whose part is next */
	int64_t next; /* byte to ask for */
};

static size_t on_data(char *data, size_t size, size_t n, void *ctx)
{
	struct slot *s = ctx;
	size_t room = (size_t)(s->last - s->first + 1) - s->bytes.len;
	long status = 0;

	curl_easy_getinfo(s->curl, CURLINFO_RESPONSE_CODE, &status);
	if (status != 206 || size * n > room)
		return 0;
	buf_add(&s->bytes, data, size * n);
	return size * n;
}

static int slot_start(struct ring *ring, struct slot *s, struct hw_err *e)
{
	const struct http_ranges *p = ring->p;
	struct http_request q = { .authorization = p->authorization,
				  .ranged = true,
				  .data = p->data };

	s->complete = false;
	s->bytes.len = 0;
	if (ring->next >= p->end)
		return 0;
	s->first = q.first = ring->next;
	s->last = q.last = ring->next + p->part < p->end ? ring->next + p->part - 1 : p->end - 1;
	ring->next = s->last + 1;
	buf_reserve(&s->bytes, (size_t)(s->last - s->first + 1));
	s->headers = http_handle_prepare(s->curl, ring->http, &q, p->url, &ring->place, true);
	s->guard = (struct http_guard){ .on = p->guarded };
	http_handle_guard(s->curl, ring->http, &s->guard);
	curl_easy_setopt(s->curl, CURLOPT_WRITEFUNCTION, on_data);
	curl_easy_setopt(s->curl, CURLOPT_WRITEDATA, s);
	curl_easy_setopt(s->curl, CURLOPT_ERRORBUFFER, s->error);
	curl_easy_setopt(s->curl, CURLOPT_PRIVATE, s);
	s->error[0] = '\0';
	s->running = true;
	if (curl_multi_add_handle(ring->http->multi, s->curl) != CURLM_OK)
		return err_text(e, -EIO, "libcurl takes no more handles");
	return 0;
}

static void slot_stop(struct ring *ring, struct slot *s)
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
	url_origin_done(&ring->place);
}
AUTO_VALUE_DEFINE(ring_done, struct ring);

static int ring_start(struct ring *ring, struct hw_err *e)
{
	int r = url_origin_parse(ring->p->url, &ring->place, e);

	if (!ring->http->multi)
		ring->http->multi = curl_multi_init();
	if (!ring->http->multi)
		mem_exhausted();
	while (r == 0 && ring->n < SLOTS_MAX && ring->n < (size_t)ring->p->at_once) {
		struct slot *s = &ring->slots[ring->n++];

		s->curl = curl_easy_init();
		if (!s->curl)
			mem_exhausted();
		r = slot_start(ring, s, e);
	}
	return r;
}

static int slot_ended(struct ring *ring, struct slot *s, CURLcode code, struct hw_err *e)
{
	slot_stop(ring, s);
	if (code != CURLE_OK)
		return http_curl_error(code, s->error, e);
	if ((int64_t)s->bytes.len != s->last - s->first + 1)
		return err_text(e, -ECOMM, "a part ends after %zu of %lld bytes", s->bytes.len,
				(long long)(s->last - s->first + 1));
	s->complete = true;
	return 0;
}

static int take_ended(struct ring *ring, struct hw_err *e)
{
	const CURLMsg *msg;
	int left, r = 0;

	while (r == 0 && (msg = curl_multi_info_read(ring->http->multi, &left))) {
		struct slot *s = NULL;

		if (msg->msg != CURLMSG_DONE)
			continue;
		curl_easy_getinfo(msg->easy_handle, CURLINFO_PRIVATE, &s);
		r = slot_ended(ring, s, msg->data.result, e);
	}
	return r;
}

/* Hand on what is complete from the head on, and ask for more in its place. */
static int advance(struct ring *ring, int64_t *at, struct hw_err *e)
{
	for (;;) {
		struct slot *s = &ring->slots[ring->head];
		int r;

		if (!s->complete)
			return 0;
		r = ring->p->data(ring->p->ctx, s->bytes.data, s->bytes.len, e);
		*at = s->last + 1;
		if (r == 0)
			r = slot_start(ring, s, e);
		if (r < 0)
			return r;
		ring->head = (ring->head + 1) % ring->n;
	}
}

static int step(struct ring *ring, int64_t *at, struct hw_err *e)
{
	int running, r;

	if (curl_multi_perform(ring->http->multi, &running) != CURLM_OK)
		return err_text(e, -EIO, "libcurl cannot go on");
	r = take_ended(ring, e);
	if (r == 0)
		r = advance(ring, at, e);
	if (r == 0 && *at < ring->p->end &&
	    curl_multi_poll(ring->http->multi, NULL, 0, POLL_MS, NULL) != CURLM_OK)
		return err_text(e, -EIO, "libcurl cannot wait");
	return r;
}

/**
 * http_ranges() - fetch all parts
 *
 * Each handle has the bounds of time of every question, so this ends.
 *
 * Return: 0; what @data said; or -ECOMM and the like, as http_perform(), after some parts
 * were handed on
 */
int http_fetch_ranges(struct http *h, const struct http_ranges *p, struct hw_err *e)
{
	AUTO(ring_done) struct ring ring = { .http = h, .p = p, .next = p->first };
	int64_t at = p->first;
	int r = ring_start(&ring, e);

	while (r == 0 && at < p->end)
		r = step(&ring, &at, e);
	return r;
}
