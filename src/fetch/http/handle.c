/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/http/handle.c - libcurl handles, set up for one transfer
 */
#include "fetch/http/handle.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/str.h"
#include "fetch/http/proxy.h"

#define CONNECT_MS     15000
#define STALLED_BYTES  1024L /* per second; a slower transfer is stalled */
#define RECEIVE_BUFFER (128L << 10)

static void set_blob(CURL *curl, CURLoption option, const struct buf *b)
{
	struct curl_blob blob = { b->data, b->len, CURL_BLOB_NOCOPY };

	if (b->len > 0)
		curl_easy_setopt(curl, option, &blob);
}

static void add_header(struct curl_slist **list, const char *name, const char *value)
{
	autofree char *line = value ? str_printf("%s: %s", name, value) : NULL;
	struct curl_slist *longer;

	longer = line ? curl_slist_append(*list, line) : *list;
	if (line && !longer)
		mem_exhausted();
	*list = longer;
}

static bool guard_allows(struct http_guard *guard, const struct hw_ip *ip)
{
	enum scope to;

	if (guard->proxied || guard->from == SCOPE_LOOPBACK)
		return true;
	to = scope_of_ip(ip);
	if (scope_may_lead_to(guard->from, to))
		return true;
	guard->refused = true;
	guard->to = to;
	return false;
}

/* libcurl calls this before each connection, with the address. */
static curl_socket_t open_socket(void *ctx, curlsocktype purpose, struct curl_sockaddr *a)
{
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)&a->addr;
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)&a->addr;
	struct hw_ip ip = { .family = (uint8_t)a->family };

	(void)purpose;
	if (a->family == AF_INET)
		memcpy(ip.bytes, &v4->sin_addr, sizeof(v4->sin_addr));
	else if (a->family == AF_INET6)
		memcpy(ip.bytes, &v6->sin6_addr, sizeof(v6->sin6_addr));
	if (!guard_allows(ctx, &ip))
		return CURL_SOCKET_BAD;
	return socket(a->family, a->socktype | SOCK_CLOEXEC, a->protocol);
}

/* libcurl calls this before each request, also if it uses an open connection again. */
static int before_request(void *ctx, char *peer, char *local, int peer_port, int local_port)
{
	struct hw_err ignored;
	struct hw_ip ip;

	(void)local, (void)peer_port, (void)local_port;
	if (hw_ip_parse(peer, &ip, &ignored) == 0 && guard_allows(ctx, &ip))
		return CURL_PREREQFUNC_OK;
	return CURL_PREREQFUNC_ABORT;
}

struct curl_slist *http_handle_prepare(CURL *curl, const struct http *h,
				       const struct http_request *request, const char *url,
				       const struct url_origin *origin, bool authorized,
				       struct http_guard *guard)
{
	const struct certs_host *certs = certs_find(h->certs, origin->host, origin->port);
	const char *proxy = proxy_find(origin);
	struct curl_slist *headers = NULL;
	long idle = h->idle_ms;
	char range[64];

	curl_easy_reset(curl); /* does not close connections */
	curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L);
	curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS,
			 idle < CONNECT_MS ? idle : (long)CONNECT_MS);
	curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, STALLED_BYTES);
	curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, (idle + 999) / 1000);
	if (request->on_data)
		curl_easy_setopt(curl, CURLOPT_BUFFERSIZE, RECEIVE_BUFFER);
	else /* a small document: limit the total time */
		curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, 2 * idle);

	/* the host's certificate authorities are added to the system's, which libcurl reads from a
	 * directory */
	if (certs) {
		set_blob(curl, CURLOPT_CAINFO_BLOB, &certs->authorities);
		set_blob(curl, CURLOPT_SSLCERT_BLOB, &certs->cert);
		set_blob(curl, CURLOPT_SSLKEY_BLOB, &certs->key);
	}
	guard->proxied = proxy != NULL;
	curl_easy_setopt(curl, CURLOPT_PROXY, str_or(proxy, ""));
	curl_easy_setopt(curl, CURLOPT_NOPROXY, ""); /* proxy_find() has decided */
	curl_easy_setopt(curl, CURLOPT_OPENSOCKETFUNCTION, open_socket);
	curl_easy_setopt(curl, CURLOPT_OPENSOCKETDATA, guard);
	curl_easy_setopt(curl, CURLOPT_PREREQFUNCTION, before_request);
	curl_easy_setopt(curl, CURLOPT_PREREQDATA, guard);

	curl_easy_setopt(curl, CURLOPT_URL, url);
	curl_easy_setopt(curl, CURLOPT_USERAGENT, "hawser/" HAWSER_VERSION);
	if (request->form)
		curl_easy_setopt(curl, CURLOPT_POSTFIELDS, request->form);
	if (request->has_range) {
		int n = snprintf(range, sizeof(range), "%lld-", (long long)request->first);

		if (request->last >= 0)
			snprintf(range + n, sizeof(range) - (size_t)n, "%lld",
				 (long long)request->last);
		curl_easy_setopt(curl, CURLOPT_RANGE, range);
	}
	add_header(&headers, "Accept", request->accept);
	add_header(&headers, "Authorization", authorized ? request->authorization : NULL);
	curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
	return headers;
}

/* All other errors of libcurl become -ECOMM: a retry may succeed. */
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
