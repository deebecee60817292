/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/conntrack.c - forget connections that the kernel follows
 *
 * What:  delete every entry that has a given tuple.
 * How:   Linux 6.11 and later: one message, and the kernel compares. Before that
 *        a tuple in such a message must be complete (-EINVAL), but a dump can be
 *        limited to a part of one (5.8): what it lists is deleted one by one.
 *        With IPv6 addresses that way is taken always, and they are compared
 *        here: the kernel's filter takes those that differ for those that match.
 *        The socket is the caller's: one that is opened and closed after elements of
 *        nftables were deleted would wait for their end (net/nft/nft.h).
 * Rules: an entry that ends while we look is as good as deleted.
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

#define CONNTRACK_PATIENCE_MS 10000
#define CONNTRACK_MESSAGE_MAX 1024
#define CONNTRACK_RECEIVE_MAX 32768

/* Bits of CTA_FILTER_ORIG_FLAGS, which the kernel's headers do not name: what is compared. */
#define CONNTRACK_SRC	   (1U << 0)
#define CONNTRACK_DST	   (1U << 1)
#define CONNTRACK_PROTO	   (1U << 3)
#define CONNTRACK_SRC_PORT (1U << 4)
#define CONNTRACK_DST_PORT (1U << 5)

/* version 1 makes the kernel look at the family when it deletes. */
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

static void conntrack_put_filter(struct nlmsghdr *m, const struct conntrack_tuple *tuple)
{
	uint32_t compared =
		(tuple->src.family ? CONNTRACK_SRC : 0) | (tuple->dst.family ? CONNTRACK_DST : 0) |
		(tuple->proto ? CONNTRACK_PROTO : 0) | (tuple->sport ? CONNTRACK_SRC_PORT : 0) |
		(tuple->dport ? CONNTRACK_DST_PORT : 0);
	struct nlattr *filter = mnl_attr_nest_start(m, CTA_FILTER);

	mnl_attr_put_u32(m, CTA_FILTER_ORIG_FLAGS, compared);
	mnl_attr_put_u32(m, CTA_FILTER_REPLY_FLAGS, 0);
	mnl_attr_nest_end(m, filter);
}

static int conntrack_wait(struct mnl_socket *socket)
{
	struct pollfd in = { .fd = mnl_socket_get_fd(socket), .events = POLLIN };
	int r;

	do
		r = poll(&in, 1, CONNTRACK_PATIENCE_MS);
	while (r < 0 && errno == EINTR);
	return r > 0 ? 0 : r == 0 ? -ETIMEDOUT : -errno;
}

/* Everything up to the answer that ends a request is appended to *entries. */
static int conntrack_receive(struct mnl_socket *socket, struct buf *entries)
{
	int r;

	while ((r = conntrack_wait(socket)) == 0) {
		char *data = buf_reserve(entries, CONNTRACK_RECEIVE_MAX);
		ssize_t n = mnl_socket_recvfrom(socket, data, CONNTRACK_RECEIVE_MAX);
		const struct nlmsghdr *m = (const struct nlmsghdr *)data;
		int left = (int)n;

		if (n < 0)
			return -errno;
		buf_added(entries, MNL_ALIGN(n));
		for (; mnl_nlmsg_ok(m, left); m = mnl_nlmsg_next(m, &left)) {
			if (m->nlmsg_type == NLMSG_DONE)
				return 0;
			if (m->nlmsg_type == NLMSG_ERROR)
				return ((const struct nlmsgerr *)mnl_nlmsg_get_payload(m))->error;
		}
	}
	return r;
}

static int conntrack_ask(struct mnl_socket *socket, const struct nlmsghdr *m, struct buf *entries)
{
	if (mnl_socket_sendto(socket, m, m->nlmsg_len) < 0)
		return -errno;
	return conntrack_receive(socket, entries);
}

static int conntrack_request(struct mnl_socket *socket, uint16_t type, uint16_t flags,
			     const struct conntrack_tuple *tuple, struct buf *entries)
{
	char buf[CONNTRACK_MESSAGE_MAX] __attribute__((aligned(MNL_ALIGNTO))) = { 0 };
	struct nlmsghdr *m = conntrack_start(buf, type, flags, tuple->family);

	if (tuple->src.family || tuple->dst.family || tuple->proto) {
		conntrack_put_tuple(m, tuple);
		conntrack_put_filter(m, tuple);
	}
	return conntrack_ask(socket, m, entries);
}

/* By its whole tuple, and the number that tells it from a successor with the same. */
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
	r = conntrack_ask(socket, m, &none);
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

/* The addresses only: protocol and ports are those that were asked for. */
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

static int conntrack_delete_entries(struct mnl_socket *socket, const struct buf *entries,
				    const struct conntrack_tuple *tuple)
{
	const struct nlmsghdr *m = (const struct nlmsghdr *)entries->data;
	int left = (int)entries->len, r = 0;

	for (; r >= 0 && m && mnl_nlmsg_ok(m, left); m = mnl_nlmsg_next(m, &left))
		if (conntrack_matches(m, tuple))
			r = conntrack_delete_entry(socket, m, tuple->family);
	return r;
}

static int conntrack_refuse(const struct conntrack_tuple *tuple, struct hw_err *e)
{
	if (tuple->family != AF_INET && tuple->family != AF_INET6)
		return err_text(e, -EINVAL, "forget connections: no address family");
	if ((tuple->sport || tuple->dport) && !tuple->proto)
		return err_text(e, -EINVAL, "forget connections: a port needs a protocol");
	if (!tuple->src.family && !tuple->dst.family && !tuple->sport && !tuple->dport)
		return err_text(e, -EINVAL, "forget connections: no address and no port");
	return 0;
}

/**
 * conntrack_flush_each() - what conntrack_flush() does where the kernel cannot
 *
 * A dump of what matches, then one request for each.
 */
int conntrack_flush_each(struct mnl_socket *socket, const struct conntrack_tuple *tuple,
			 struct hw_err *e)
{
	AUTO(buf_done) struct buf entries = { 0 };
	struct conntrack_tuple asked = *tuple;
	int r = conntrack_refuse(tuple, e);

	if (r < 0 || !socket)
		return r;
	if (tuple->family == AF_INET6)
		asked.src = asked.dst = (struct hw_ip){ 0 };
	r = conntrack_request(socket, IPCTNL_MSG_CT_GET, NLM_F_DUMP, &asked, &entries);
	if (r >= 0)
		r = conntrack_delete_entries(socket, &entries, tuple);
	return r < 0 ? err_set(e, r, "forget connections one by one") : 0;
}

/**
 * conntrack_flush() - forget all connections with these addresses and ports
 * @tuple: of the first packet, before translation; zero parts are not compared
 */
int conntrack_flush(struct mnl_socket *socket, const struct conntrack_tuple *tuple,
		    struct hw_err *e)
{
	AUTO(buf_done) struct buf none = { 0 };
	int r = conntrack_refuse(tuple, e);

	if (r < 0 || !socket)
		return r;
	if (tuple->family == AF_INET6 && (tuple->src.family || tuple->dst.family))
		return conntrack_flush_each(socket, tuple, e);
	r = conntrack_request(socket, IPCTNL_MSG_CT_DELETE, NLM_F_ACK, tuple, &none);
	if (r == -EINVAL)
		return conntrack_flush_each(socket, tuple, e);
	return r < 0 && r != -ENOENT ? err_set(e, r, "forget connections") : 0;
}
