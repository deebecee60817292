/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/http/handle.c - libcurl handles, set up for one transfer
 */
#include "fetch/http/handle.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>

#include "base/str.h"

#define CONNECT_MS     15000
#define STALLED_BYTES  256L /* a transfer with fewer bytes per second counts as stalled */
#define RECEIVE_BUFFER (128L << 10)

static void set_blob(CURL *curl, CURLoption option, const struct buf *b)
{
	struct curl_blob blob = { b->data, b->len, CURL_BLOB_NOCOPY };

	if (b->len > 0)
		curl_easy_setopt(curl, option, &blob);
}

/* The authorities of a host are trusted in addition to the system's, which libcurl reads from a
 * directory. */
static void set_tls(CURL *curl, const struct http *h, const struct url_origin *origin)
{
	const struct certs_host *c = certs_find(h->certs, origin->host, origin->port);

	if (!c)
		return;
	set_blob(curl, CURLOPT_CAINFO_BLOB, &c->authorities);
	set_blob(curl, CURLOPT_SSLCERT_BLOB, &c->cert);
	set_blob(curl, CURLOPT_SSLKEY_BLOB, &c->key);
}

static void set_limits(CURL *curl, const struct http *h, const struct http_request *request)
{
	long idle = h->idle_ms;

	curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L);
	curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS,
			 idle < CONNECT_MS ? idle : (long)CONNECT_MS);
	curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, STALLED_BYTES);
	curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, (idle + 999) / 1000);
	if (request->on_data)
		curl_easy_setopt(curl, CURLOPT_BUFFERSIZE, RECEIVE_BUFFER);
	else /* a small document: the whole transfer is limited */
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

static void set_range(CURL *curl, const struct http_request *request)
{
	char range[64];

	if (!request->has_range)
		return;
	if (request->last < 0)
		snprintf(range, sizeof(range), "%lld-", (long long)request->first);
	else
		snprintf(range, sizeof(range), "%lld-%lld", (long long)request->first,
			 (long long)request->last);
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

/* Called before each connection, with the address. */
static curl_socket_t open_socket(void *ctx, curlsocktype purpose, struct curl_sockaddr *a)
{
	struct http_guard *guard = ctx;

	(void)purpose;
	guard->refused = guard->refused || (guard->on && is_local(a));
	if (guard->refused)
		return CURL_SOCKET_BAD;
	return socket(a->family, a->socktype | SOCK_CLOEXEC, a->protocol);
}

struct curl_slist *http_handle_prepare(CURL *curl, const struct http *h,
				       const struct http_request *request, const char *url,
				       const struct url_origin *origin, bool authorized,
				       struct http_guard *guard)
{
	struct curl_slist *headers = NULL;

	curl_easy_reset(curl); /* keeps open connections */
	set_limits(curl, h, request);
	set_tls(curl, h, origin);
	set_range(curl, request);
	curl_easy_setopt(curl, CURLOPT_URL, url);
	curl_easy_setopt(curl, CURLOPT_USERAGENT, "hawser/" HAWSER_VERSION);
	if (request->form)
		curl_easy_setopt(curl, CURLOPT_POSTFIELDS, request->form);
	add_header(&headers, "Accept", request->accept);
	add_header(&headers, "Authorization", authorized ? request->authorization : NULL);
	curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
	guard->on = guard->on && !h->proxied;
	curl_easy_setopt(curl, CURLOPT_OPENSOCKETFUNCTION, open_socket);
	curl_easy_setopt(curl, CURLOPT_OPENSOCKETDATA, guard);
	return headers;
}

/* All other errors of libcurl are -ECOMM: a retry may succeed. */
static const struct {
	CURLcode curl;
	int code;
} errors[] = {
	{ CURLE_OPERATION_TIMEDOUT, -ETIMEDOUT }, { CURLE_PEER_FAILED_VERIFICATION, -EPROTO },
	{ CURLE_SSL_CERTPROBLEM, -EPROTO },	  { CURLE_SSL_CONNECT_ERROR, -EPROTO },
	{ CURLE_SSL_CACERT_BADFILE, -EPROTO },	  { CURLE_SSL_ISSUER_ERROR, -EPROTO },
	{ CURLE_UNSUPPORTED_PROTOCOL, -EPROTO },  { CURLE_URL_MALFORMAT, -EPERM },
};

int http_curl_error(CURLcode code, const char *message, struct hw_err *e)
{
	int r = -ECOMM;

	for (size_t i = 0; i < ARRAY_SIZE(errors); i++)
		if (errors[i].curl == code)
			r = errors[i].code;
	return err_text(e, r, "%s", *message ? message : curl_easy_strerror(code));
}
