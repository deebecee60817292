/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/http/scope.c - from where an address can be reached
 *
 * How:   the kernel knows whether an address is one of this machine's: its route has the type
 *        "local". The answer is the one for this process's own connections, and does not depend on
 *        the number of addresses. (bind() would accept any address if ip_nonlocal_bind is set.)
 */
#include "fetch/http/scope.h"

#include <linux/rtnetlink.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/ip.h"
#include "base/mem.h"

/* ---- addresses of this machine ---------------------------------------------- */

/* If the kernel does not answer, the address has no route, so a connection fails, too. */
static bool is_of_this_machine(const struct hw_ip *ip)
{
	size_t size = ip_bits(ip) / 8;
	struct {
		struct nlmsghdr head;
		struct rtmsg route;
		struct rtattr attr;
		uint8_t address[16];
	} request = {
		.head = { .nlmsg_len =
				  NLMSG_LENGTH(sizeof(struct rtmsg)) + (uint32_t)RTA_LENGTH(size),
			  .nlmsg_type = RTM_GETROUTE,
			  .nlmsg_flags = NLM_F_REQUEST },
		.route = { .rtm_family = ip->family, .rtm_dst_len = (uint8_t)ip_bits(ip) },
		.attr = { .rta_len = (unsigned short)RTA_LENGTH(size), .rta_type = RTA_DST },
	};
	union {
		struct nlmsghdr head;
		char bytes[4096];
	} reply;
	const struct rtmsg *route = NLMSG_DATA(&reply.head);
	autoclose int fd = -1;
	ssize_t n;

	memcpy(request.address, ip->bytes, size);
	fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	if (fd < 0 || send(fd, &request, request.head.nlmsg_len, 0) < 0)
		return false;
	n = recv(fd, &reply, sizeof(reply), 0);
	return n >= (ssize_t)NLMSG_LENGTH(sizeof(*route)) &&
	       reply.head.nlmsg_type == RTM_NEWROUTE && route->rtm_type == RTN_LOCAL;
}

/* ---- IPv4 addresses in IPv6 addresses ---------------------------------------- */

static const struct {
	uint8_t prefix[12];
	size_t len; /* of the prefix in bytes */
	size_t at;  /* first byte of the IPv4 address */
} embeddings[] = {
	{ { [10] = 0xff, 0xff }, 12, 12 },	     /* ::ffff:0:0/96, IPv4-mapped */
	{ { [8] = 0xff, 0xff }, 12, 12 },	     /* ::ffff:0:0:0/96, IPv4-translated */
	{ { 0 }, 12, 12 },			     /* ::/96, IPv4-compatible */
	{ { 0x00, 0x64, 0xff, 0x9b }, 12, 12 },	     /* 64:ff9b::/96, NAT64 */
	{ { 0x00, 0x64, 0xff, 0x9b, 0, 1 }, 6, 12 }, /* 64:ff9b:1::/48, local NAT64 */
	{ { 0x20, 0x02 }, 2, 2 },		     /* 2002::/16, 6to4 */
};

static bool find_embedded(const struct hw_ip *ip, struct hw_ip *ret_ip)
{
	for (size_t i = 0; ip->family == AF_INET6 && i < ARRAY_SIZE(embeddings); i++) {
		if (memcmp(ip->bytes, embeddings[i].prefix, embeddings[i].len) != 0)
			continue;
		*ret_ip = (struct hw_ip){ .family = AF_INET };
		memcpy(ret_ip->bytes, ip->bytes + embeddings[i].at, 4);
		return true;
	}
	return false;
}

/* ---- scopes ------------------------------------------------------------------ */

/* Metadata services of clouds give credentials of the machine to everyone who asks. Most have the
 * address 169.254.169.254. */
static bool is_metadata_service(const struct hw_ip *ip)
{
	static const struct hw_ip services[] = {
		{ AF_INET6, { 0xfd, 0x00, 0x0e, 0xc2, [14] = 0x02, 0x54 } }, /* Amazon */
		{ AF_INET6, { 0xfd, 0x20, 0x00, 0xce, [14] = 0x02, 0x54 } }, /* Google */
		{ AF_INET, { 100, 100, 100, 200 } },			     /* Alibaba */
		{ AF_INET, { 168, 63, 129, 16 } },			     /* Azure */
	};

	for (size_t i = 0; i < ARRAY_SIZE(services); i++)
		if (hw_ip_equal(ip, &services[i]))
			return true;
	return false;
}

enum scope scope_of_ip(const struct hw_ip *ip)
{
	enum scope embedded = SCOPE_REMOTE;
	struct hw_ip inner;

	if (ip_is_loopback(ip) || ip_is_unspecified(ip))
		return SCOPE_LOOPBACK;
	if (ip_is_link_local(ip) || is_metadata_service(ip))
		return SCOPE_LINK;
	if (find_embedded(ip, &inner))
		embedded = scope_of_ip(&inner);
	if (embedded != SCOPE_REMOTE)
		return embedded;
	return is_of_this_machine(ip) ? SCOPE_NODE : SCOPE_REMOTE;
}

bool scope_may_lead_to(enum scope from, enum scope to)
{
	return from == SCOPE_LOOPBACK || from == to || to == SCOPE_REMOTE;
}

const char *scope_name(enum scope s)
{
	static const char *const names[] = {
		[SCOPE_LOOPBACK] = "loopback address",
		[SCOPE_NODE] = "address of this machine",
		[SCOPE_LINK] = "link-local address",
		[SCOPE_REMOTE] = "remote address",
	};

	return names[s];
}
