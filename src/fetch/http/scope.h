/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/http/scope.h - from where an address can be reached
 *
 * What:  a server must not use us to reach servers that it cannot reach itself. So a redirect, or
 *        the name of a token server, may lead to an address of any scope only if it comes from a
 *        server on loopback, or from the user.
 */
#ifndef FETCH_HTTP_SCOPE_H
#define FETCH_HTTP_SCOPE_H

#include <stdbool.h>

#include <hawser/addr.h>

enum scope {
	SCOPE_LOOPBACK, /* loopback addresses, and 0.0.0.0 and ::, which also connect to loopback */
	SCOPE_NODE,	/* other addresses of this machine */
	SCOPE_LINK,	/* link-local addresses, and other addresses of cloud metadata services */
	SCOPE_REMOTE,	/* all other addresses */
};

/* An IPv6 address that contains an IPv4 address, such as those of NAT64, has the scope of the IPv4
 * address, unless that one is remote. */
enum scope scope_of_ip(const struct hw_ip *ip);
/* May a server with an address of scope @from lead us to a server with an address of scope @to?
 * SCOPE_LOOPBACK also stands for URLs that the user has chosen. An address of the node does not
 * stand for this machine: its port may be forwarded to another one. */
bool scope_may_lead_to(enum scope from, enum scope to);
const char *scope_name(enum scope s); /* "loopback address", for messages */

#endif
