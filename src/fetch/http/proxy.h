/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/http/proxy.h - proxies from the environment
 *
 * What:  decides which proxy a request uses. libcurl could decide that itself, but it does not tell
 *        before it connects, and then the address to connect to cannot be checked (handle.h).
 */
#ifndef FETCH_HTTP_PROXY_H
#define FETCH_HTTP_PROXY_H

#include "fetch/http/url.h"

/* Return: the URL of the proxy for requests to @server: the variable http_proxy or https_proxy, else
 * all_proxy; NULL if none is set, or no_proxy contains the server. Each variable may also be written
 * in upper case. The text belongs to the environment. */
const char *proxy_find(const struct url_origin *server);

#endif
