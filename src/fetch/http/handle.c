/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/http/handle.c - a handle of libcurl for one question to one server
 */
#include "fetch/http/handle.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>

#include "base/str.h"

#define CONNECT_MS 15000
#define SLOW_BYTES 256L /* in a second: slower is as good as standing still */
#define BUFFER	   (128L << 10)

static void set_blob(CURL *curl, CURLoption option, const struct buf *b)
{
	struct curl_blob blob = { b->data, b->len, CURL_BLOB_NOCOPY };

	if (b->len > 0)
		curl_easy_setopt(curl, option, &blob);
}

/* Authorities of a host are trusted besides the system's, which libcurl has as a folder. */
static void set_tls(CURL *curl, const struct http *h, const struct url_origin *p)
{
	const struct certs_host *c = certs_find(h->certs, p->host, p->port);

	if (!c)
		return;
	set_blob(curl, CURLOPT_CAINFO_BLOB, &c->authorities);
	set_blob(curl, CURLOPT_SSLCERT_BLOB, &c->cert);
	set_blob(curl, CURLOPT_SSLKEY_BLOB, &c->key);
}

static void set_bounds(CURL *curl, const struct http *h, const struct http_request *q)
{
	long idle = h->idle_ms;

	curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L);
	curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS,
			 idle < CONNECT_MS ? idle : (long)CONNECT_MS);
	curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, SLOW_BYTES);
	curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, (idle + 999) / 1000);
	if (q->data)
		curl_easy_setopt(curl, CURLOPT_BUFFERSIZE, BUFFER);
	else /* a document, and not a stream */
		curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, 2 * idle);
}

static void add_header(struct curl_slist **list, const char *name, const char *value)
{
	autofree char *line = value ? str_printf("%s: %s", name, value) : NULL;
	struct curl_slist *longer = line ? curl_slist_append(*list, line) : *list;

	if (line && !longer)
		mem_exhausted();
	*list = longer;
}

static void set_range(CURL *curl, const struct http_request *q)
{
	char range[64];

	if (!q->ranged)
		return;
	if (q->last < 0)
		snprintf(range, sizeof(range), "%lld-", (long long)q->first);
	else
		snprintf(range, sizeof(range), "%lld-%lld", (long long)q->first,
			 (long long)q->last);
	curl_easy_setopt(curl, CURLOPT_RANGE, range);
}

static bool is_local(const struct curl_sockaddr *a)
{
	char text[INET6_ADDRSTRLEN] = "";

	if (a->family == AF_INET)
		inet_ntop(AF_INET, &((const struct sockaddr_in *)&a->addr)->sin_addr, text,
			  sizeof(text));
	else if (a->family == AF_INET6)
		inet_ntop(AF_INET6, &((const struct sockaddr_in6 *)&a->addr)->sin6_addr, text,
			  sizeof(text));
	return url_is_local_address(text);
}

static curl_socket_t on_socket(void *ctx, curlsocktype purpose, struct curl_sockaddr *a)
{
	struct http_guard *guard = ctx;

	(void)purpose;
	guard->refused = guard->refused || (guard->on && is_local(a));
	if (guard->refused)
		return CURL_SOCKET_BAD;
	return socket(a->family, a->socktype | SOCK_CLOEXEC, a->protocol);
}

/** http_guard() - look at each address before a connection is made */
void http_handle_guard(CURL *curl, const struct http *h, struct http_guard *guard)
{
	guard->on = guard->on && !h->proxied;
	curl_easy_setopt(curl, CURLOPT_OPENSOCKETFUNCTION, on_socket);
	curl_easy_setopt(curl, CURLOPT_OPENSOCKETDATA, guard);
}

/**
 * http_handle_prepare() - prepare a handle
 * @place:      of @url
 * @authorized: may be told the question's authorization
 *
 * Return: the headers, which the handle uses, to be freed behind it
 */
struct curl_slist *http_handle_prepare(CURL *curl, const struct http *h,
				       const struct http_request *q, const char *url,
				       const struct url_origin *place, bool authorized)
{
	struct curl_slist *headers = NULL;

	curl_easy_reset(curl); /* connections stay */
	set_bounds(curl, h, q);
	set_tls(curl, h, place);
	set_range(curl, q);
	curl_easy_setopt(curl, CURLOPT_URL, url);
	curl_easy_setopt(curl, CURLOPT_USERAGENT, "hawser/" HAWSER_VERSION);
	if (q->form)
		curl_easy_setopt(curl, CURLOPT_POSTFIELDS, q->form);
	add_header(&headers, "Accept", q->accept);
	add_header(&headers, "Authorization", authorized ? q->authorization : NULL);
	curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
	return headers;
}

/* Which of libcurl's many errors is what. The rest may go better the next time. */
static const struct {
	CURLcode curl;
	int code;
} failures[] = {
	{ CURLE_OPERATION_TIMEDOUT, -ETIMEDOUT }, { CURLE_PEER_FAILED_VERIFICATION, -EPROTO },
	{ CURLE_SSL_CERTPROBLEM, -EPROTO },	  { CURLE_SSL_CONNECT_ERROR, -EPROTO },
	{ CURLE_SSL_CACERT_BADFILE, -EPROTO },	  { CURLE_SSL_ISSUER_ERROR, -EPROTO },
	{ CURLE_UNSUPPORTED_PROTOCOL, -EPROTO },  { CURLE_URL_MALFORMAT, -EPERM },
};

/** http_curl_error() - an error of libcurl; @why: its own words, or "" */
int http_curl_error(CURLcode code, const char *why, struct hw_err *e)
{
	int r = -ECOMM;

	for (size_t i = 0; i < ARRAY_SIZE(failures); i++)
		if (failures[i].curl == code)
			r = failures[i].code;
	return err_text(e, r, "%s", *why ? why : curl_easy_strerror(code));
}
