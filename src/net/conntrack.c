/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/conntrack.c - delete connection tracking entries
 *
 * How:   Linux 6.11 and later can delete all entries that match a partial tuple
 *        in one request. Older kernels reject such a request (-EINVAL), but can
 *        filter a dump by a partial tuple (since 5.8): the listed entries are then
 *        deleted one by one.
 *        If a tuple has IPv6 addresses, the entries are always listed and the
 *        addresses are compared here: the kernel's filter has a bug that inverts
 *        the comparison of IPv6 addresses.
 * Rules: it is not an error if an entry expires between the dump and its deletion.
 */
#include "net/conntrack.h"

#include <arpa/inet.h>
#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_conntrack.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "base/buf.h"
#include "base/ip.h"
#include "base/mem.h"

#define CONNTRACK_TIMEOUT_MS  10000
#define CONNTRACK_MESSAGE_MAX 1024
#define CONNTRACK_RECEIVE_MAX 32768

/* Bits of CTA_FILTER_ORIG_FLAGS: which members to compare. The kernel's public headers do not
 * define names for them. */
#define CONNTRACK_SRC	   (1U << 0)
#define CONNTRACK_DST	   (1U << 1)
#define CONNTRACK_PROTO	   (1U << 3)
#define CONNTRACK_SRC_PORT (1U << 4)
#define CONNTRACK_DST_PORT (1U << 5)

/* The message has version 1, so that the kernel also compares the family when it deletes
 * entries. */
static struct nlmsghdr *conntrack_start(char *buf, uint16_t type, uint16_t flags, uint8_t family)
{
	struct nlmsghdr *m = mnl_nlmsg_put_header(buf);
	struct nfgenmsg *head;

	m->nlmsg_type = NFNL_SUBSYS_CTNETLINK << 8 | type;
	m->nlmsg_flags = NLM_F_REQUEST | flags;
	head = mnl_nlmsg_put_extra_header(m, sizeof(*head));
	head->nfgen_family = family;
	head->version = 1;
	return m;
}

static void conntrack_put_ip(struct nlmsghdr *m, const struct hw_ip *ip, uint16_t v4, uint16_t v6)
{
	if (ip->family)
		mnl_attr_put(m, ip->family == AF_INET ? v4 : v6, ip_bits(ip) / 8, ip->bytes);
}

static void conntrack_put_tuple(struct nlmsghdr *m, const struct conntrack_tuple *tuple)
{
	struct nlattr *orig = mnl_attr_nest_start(m, CTA_TUPLE_ORIG);
	struct nlattr *part;

	if (tuple->src.family || tuple->dst.family) {
		part = mnl_attr_nest_start(m, CTA_TUPLE_IP);
		conntrack_put_ip(m, &tuple->src, CTA_IP_V4_SRC, CTA_IP_V6_SRC);
		conntrack_put_ip(m, &tuple->dst, CTA_IP_V4_DST, CTA_IP_V6_DST);
		mnl_attr_nest_end(m, part);
	}
	if (tuple->proto) {
		part = mnl_attr_nest_start(m, CTA_TUPLE_PROTO);
		mnl_attr_put_u8(m, CTA_PROTO_NUM, tuple->proto);
		if (tuple->sport)
			mnl_attr_put_u16(m, CTA_PROTO_SRC_PORT, htons(tuple->sport));
		if (tuple->dport)
			mnl_attr_put_u16(m, CTA_PROTO_DST_PORT, htons(tuple->dport));
		mnl_attr_nest_end(m, part);
	}
	mnl_attr_nest_end(m, orig);
}

/* Sends a request and appends all its replies to *entries. */
static int conntrack_exchange(struct mnl_socket *socket, const struct nlmsghdr *request,
			      struct buf *entries)
{
	struct pollfd in = { .fd = mnl_socket_get_fd(socket), .events = POLLIN };

	if (mnl_socket_sendto(socket, request, request->nlmsg_len) < 0)
		return -errno;
	for (;;) {
		struct nlmsghdr *m;
		int left, r;

		r = poll(&in, 1, CONNTRACK_TIMEOUT_MS);
		if (r < 0 && errno == EINTR)
			continue;
		if (r <= 0)
			return r == 0 ? -ETIMEDOUT : -errno;
		m = (struct nlmsghdr *)buf_reserve(entries, CONNTRACK_RECEIVE_MAX);
		left = (int)mnl_socket_recvfrom(socket, m, CONNTRACK_RECEIVE_MAX);
		if (left < 0)
			return -errno;
		buf_commit(entries, MNL_ALIGN(left));
		for (; mnl_nlmsg_ok(m, left); m = mnl_nlmsg_next(m, &left)) {
			if (m->nlmsg_type == NLMSG_DONE)
				return 0;
			if (m->nlmsg_type == NLMSG_ERROR)
				return ((const struct nlmsgerr *)mnl_nlmsg_get_payload(m))->error;
		}
	}
}

static int conntrack_request(struct mnl_socket *socket, uint16_t type, uint16_t flags,
			     const struct conntrack_tuple *tuple, struct buf *entries)
{
	char buf[CONNTRACK_MESSAGE_MAX] __attribute__((aligned(MNL_ALIGNTO))) = { 0 };
	struct nlmsghdr *m = conntrack_start(buf, type, flags, tuple->family);
	uint32_t compared =
		(tuple->src.family ? CONNTRACK_SRC : 0) | (tuple->dst.family ? CONNTRACK_DST : 0) |
		(tuple->proto ? CONNTRACK_PROTO : 0) | (tuple->sport ? CONNTRACK_SRC_PORT : 0) |
		(tuple->dport ? CONNTRACK_DST_PORT : 0);

	if (tuple->src.family || tuple->dst.family || tuple->proto) {
		struct nlattr *filter;

		conntrack_put_tuple(m, tuple);
		filter = mnl_attr_nest_start(m, CTA_FILTER);
		mnl_attr_put_u32(m, CTA_FILTER_ORIG_FLAGS, compared);
		mnl_attr_put_u32(m, CTA_FILTER_REPLY_FLAGS, 0);
		mnl_attr_nest_end(m, filter);
	}
	return conntrack_exchange(socket, m, entries);
}

/* Deletes an entry by its complete tuple and its ID. The ID distinguishes it from a later entry
 * with the same tuple. */
static int conntrack_delete_entry(struct mnl_socket *socket, const struct nlmsghdr *entry,
				  uint8_t family)
{
	char buf[CONNTRACK_MESSAGE_MAX] __attribute__((aligned(MNL_ALIGNTO))) = { 0 };
	struct nlmsghdr *m = conntrack_start(buf, IPCTNL_MSG_CT_DELETE, NLM_F_ACK, family);
	AUTO(buf_done) struct buf none = { 0 };
	const struct nlattr *attr;
	int r;

	mnl_attr_for_each(attr, entry, sizeof(struct nfgenmsg)) {
		uint16_t type = mnl_attr_get_type(attr), len = mnl_attr_get_payload_len(attr);

		if (type == CTA_TUPLE_ORIG || type == CTA_ID || type == CTA_ZONE)
			mnl_attr_put_check(m, sizeof(buf), attr->nla_type, len,
					   mnl_attr_get_payload(attr));
	}
	r = conntrack_exchange(socket, m, &none);
	return r == -ENOENT ? 0 : r;
}

static const struct nlattr *conntrack_find_attr(const struct nlattr *nest, uint16_t type)
{
	const struct nlattr *attr;

	if (nest)
		mnl_attr_for_each_nested(attr, nest)
			if (mnl_attr_get_type(attr) == type)
				return attr;
	return NULL;
}

static bool conntrack_is_ip(const struct nlattr *attr, const struct hw_ip *want)
{
	return !want->family ||
	       (attr && mnl_attr_get_payload_len(attr) == ip_bits(want) / 8 &&
		memcmp(mnl_attr_get_payload(attr), want->bytes, ip_bits(want) / 8) == 0);
}

/* Compares only the addresses: the kernel has already filtered by protocol and ports. */
static bool conntrack_matches(const struct nlmsghdr *entry, const struct conntrack_tuple *tuple)
{
	bool v4 = tuple->family == AF_INET;
	const struct nlattr *attr, *ip = NULL;

	if (entry->nlmsg_type < NLMSG_MIN_TYPE)
		return false;
	mnl_attr_for_each(attr, entry, sizeof(struct nfgenmsg))
		if (mnl_attr_get_type(attr) == CTA_TUPLE_ORIG)
			ip = conntrack_find_attr(attr, CTA_TUPLE_IP);
	return conntrack_is_ip(conntrack_find_attr(ip, v4 ? CTA_IP_V4_SRC : CTA_IP_V6_SRC),
			       &tuple->src) &&
	       conntrack_is_ip(conntrack_find_attr(ip, v4 ? CTA_IP_V4_DST : CTA_IP_V6_DST),
			       &tuple->dst);
}

static int conntrack_check_tuple(const struct conntrack_tuple *tuple, struct hw_err *e)
{
	if (tuple->family != AF_INET && tuple->family != AF_INET6)
		return err_text(e, -EINVAL, "delete conntrack entries: missing address family");
	if ((tuple->sport || tuple->dport) && !tuple->proto)
		return err_text(e, -EINVAL, "delete conntrack entries: port without a protocol");
	if (!tuple->src.family && !tuple->dst.family && !tuple->sport && !tuple->dport)
		return err_text(e, -EINVAL,
				"delete conntrack entries: tuple has neither address nor port");
	return 0;
}

int conntrack_flush_by_dump(struct mnl_socket *socket, const struct conntrack_tuple *tuple,
			    struct hw_err *e)
{
	AUTO(buf_done) struct buf entries = { 0 };
	struct conntrack_tuple filter = *tuple;
	const struct nlmsghdr *m;
	int left, r;

	r = conntrack_check_tuple(tuple, e);
	if (r < 0 || !socket)
		return r;
	if (tuple->family == AF_INET6)
		filter.src = filter.dst = (struct hw_ip){ 0 };
	r = conntrack_request(socket, IPCTNL_MSG_CT_GET, NLM_F_DUMP, &filter, &entries);
	m = (const struct nlmsghdr *)entries.data;
	left = (int)entries.len;
	for (; r >= 0 && m && mnl_nlmsg_ok(m, left); m = mnl_nlmsg_next(m, &left))
		if (conntrack_matches(m, tuple))
			r = conntrack_delete_entry(socket, m, tuple->family);
	return r < 0 ? err_set(e, r, "delete conntrack entries one by one") : 0;
}

int conntrack_flush(struct mnl_socket *socket, const struct conntrack_tuple *tuple,
		    struct hw_err *e)
{
	AUTO(buf_done) struct buf none = { 0 };
	int r;

	r = conntrack_check_tuple(tuple, e);
	if (r < 0 || !socket)
		return r;
	if (tuple->family == AF_INET6 && (tuple->src.family || tuple->dst.family))
		return conntrack_flush_by_dump(socket, tuple, e);
	r = conntrack_request(socket, IPCTNL_MSG_CT_DELETE, NLM_F_ACK, tuple, &none);
	if (r == -EINVAL)
		return conntrack_flush_by_dump(socket, tuple, e);
	return r < 0 && r != -ENOENT ? err_set(e, r, "delete conntrack entries") : 0;
}
