/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/http/proxy.c - proxies from the environment
 *
 * How:   no_proxy is a list of names, addresses and networks, separated by commas or spaces, as
 *        libcurl defines it. A name also stands for all names below it; "*" stands for every server.
 */
#include "fetch/http/proxy.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/ip.h"
#include "base/str.h"

#define SEPARATORS ", \t"

/* Return: NULL if neither variable is set */
static const char *variable(const char *lower, const char *upper)
{
	const char *value = getenv(lower);

	if (str_empty(value))
		value = getenv(upper);
	return str_empty(value) ? NULL : value;
}

static bool is_same_or_below(const char *host, const char *name)
{
	size_t host_len = strlen(host), len;

	name += *name == '.';
	len = strlen(name);
	return len > 0 && host_len >= len && strcasecmp(host + host_len - len, name) == 0 &&
	       (host_len == len || host[host_len - len - 1] == '.');
}

static bool matches(const struct url_origin *server, const char *word)
{
	struct hw_prefix network;
	struct hw_err ignored;
	struct hw_ip own, ip;

	if (str_equal(word, "*"))
		return true;
	if (!url_origin_address(server, &own))
		return is_same_or_below(server->host, word);
	if (hw_prefix_parse(word, &network, &ignored) == 0)
		return hw_prefix_contains(&network, &own);
	return hw_ip_parse(word, &ip, &ignored) == 0 && hw_ip_equal(&ip, &own);
}

const char *proxy_find(const struct url_origin *server)
{
	const char *list = str_or(variable("no_proxy", "NO_PROXY"), "");
	const char *proxy;

	if (str_equal(server->scheme, "https"))
		proxy = variable("https_proxy", "HTTPS_PROXY");
	else
		proxy = variable("http_proxy", "HTTP_PROXY");
	if (!proxy)
		proxy = variable("all_proxy", "ALL_PROXY");
	for (list += strspn(list, SEPARATORS); proxy && *list; list += strspn(list, SEPARATORS)) {
		size_t len = strcspn(list, SEPARATORS);
		autofree char *word = str_ncopy(list, len);

		if (matches(server, word))
			return NULL;
		list += len;
	}
	return proxy;
}
