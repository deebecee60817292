/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/iface/announce.c - announce the MAC address of IP addresses to neighbours
 *
 * How:   a sender process (net/sender.h) sends complete Ethernet frames through a
 *        packet socket in the link's namespace. A bridge copies them to all its ports
 *        inside send(), which takes milliseconds if it has a thousand ports. IPv4: an ARP request with the address as sender and target
 *        (an ARP announcement, RFC 5227). IPv6: a neighbour advertisement to all
 *        nodes, with the override flag (RFC 4861 7.2.6). A packet socket works for
 *        both families, and can also announce a tentative address.
 *        The last close() of a packet socket blocks for an RCU grace period (10 to
 *        20 ms), so the sender process is the one that closes last.
 */
#include "net/iface/announce.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <netinet/icmp6.h>
#include <netinet/if_ether.h>
#include <netinet/ip6.h>
#include <string.h>
#include <sys/socket.h>

#include "base/log.h"
#include "base/mem.h"
#include "net/netns.h"
#include "net/rtnl/link.h"
#include "net/sender.h"

struct announce_arp {
	struct ether_header ether;
	struct ether_arp arp;
} __attribute__((packed));

struct announce_nd {
	struct ether_header ether;
	struct ip6_hdr ip;
	struct nd_neighbor_advert advert;
	struct nd_opt_hdr option;
	uint8_t mac[ETH_ALEN];
} __attribute__((packed));

static struct announce_arp announce_arp(const struct hw_mac *mac, const struct hw_ip *ip)
{
	struct announce_arp f = {
		.ether.ether_type = htons(ETHERTYPE_ARP),
		.arp.ea_hdr = { .ar_hrd = htons(ARPHRD_ETHER),
				.ar_pro = htons(ETHERTYPE_IP),
				.ar_hln = ETH_ALEN,
				.ar_pln = 4,
				.ar_op = htons(ARPOP_REQUEST) },
	};

	memset(f.ether.ether_dhost, 0xff, ETH_ALEN);
	memcpy(f.ether.ether_shost, mac->bytes, ETH_ALEN);
	memcpy(f.arp.arp_sha, mac->bytes, ETH_ALEN);
	memcpy(f.arp.arp_spa, ip->bytes, 4);
	memcpy(f.arp.arp_tpa, ip->bytes, 4);
	return f;
}

/* Computes the checksum over the addresses, the length, the protocol and all bytes after the IPv6
 * header (RFC 8200 8.1). */
static uint16_t announce_checksum(const struct announce_nd *f)
{
	uint16_t words[(sizeof(*f) - offsetof(struct announce_nd, ip.ip6_src)) / 2];
	uint32_t sum = f->ip.ip6_plen + htons(f->ip.ip6_nxt);

	memcpy(words, (const char *)f + sizeof(*f) - sizeof(words), sizeof(words));
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		sum += words[i];
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return ~sum;
}

static struct announce_nd announce_nd(const struct hw_mac *mac, const struct hw_ip *ip)
{
	struct announce_nd f = {
		.ether = { .ether_dhost = { 0x33, 0x33, 0, 0, 0, 1 },
			   .ether_type = htons(ETHERTYPE_IPV6) },
		.ip = { .ip6_flow = htonl(6U << 28),
			.ip6_plen = htons(sizeof(f) - offsetof(struct announce_nd, advert)),
			.ip6_nxt = IPPROTO_ICMPV6,
			.ip6_hlim = 255,
			.ip6_dst.s6_addr = { 0xff, 0x02, [15] = 1 } },
		.advert = { .nd_na_type = ND_NEIGHBOR_ADVERT,
			    .nd_na_flags_reserved = ND_NA_FLAG_OVERRIDE },
		.option = { .nd_opt_type = ND_OPT_TARGET_LINKADDR, .nd_opt_len = 1 },
	};

	memcpy(f.ether.ether_shost, mac->bytes, ETH_ALEN);
	memcpy(&f.ip.ip6_src, ip->bytes, 16);
	memcpy(&f.advert.nd_na_target, ip->bytes, 16);
	memcpy(f.mac, mac->bytes, ETH_ALEN);
	f.advert.nd_na_cksum = announce_checksum(&f);
	return f;
}

static int announce_open(int netns_fd, int index, int *ret_fd, struct hw_err *e)
{
	struct sockaddr_ll to = { .sll_family = AF_PACKET, .sll_ifindex = index };
	AUTO(netns_leave) struct netns_home home = NETNS_HOME;
	autoclose int fd = -1;
	int r;

	r = netns_fd < 0 ? 0 : netns_enter(netns_fd, &home, e);
	if (r < 0)
		return r;
	/* protocol 0: the socket receives nothing */
	fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	if (fd < 0 || bind(fd, (struct sockaddr *)&to, sizeof(to)) < 0)
		return err_set(e, -errno, "open packet socket");
	*ret_fd = take_fd(fd);
	return 0;
}

static int announce_send(int netns_fd, const struct link *link, const struct iovec *frames,
			 size_t n, struct hw_err *e)
{
	autoclose int fd = -1;
	int r;

	r = announce_open(netns_fd, link->index, &fd, e);
	if (r < 0)
		return r;
	r = sender_start(fd, frames, n);
	return r < 0 ? err_set(e, r, "start sender process") : 0;
}

void announce_addresses(int netns_fd, const struct link *link, const struct hw_ip *ips, size_t n)
{
	union announce_frame {
		struct announce_arp arp;
		struct announce_nd nd;
	};
	autofree union announce_frame *frames = mem_new(n * sizeof(*frames));
	autofree struct iovec *parts = mem_new(n * sizeof(*parts));
	struct hw_err e;

	if (n == 0 || link->mac.len != ETH_ALEN)
		return;
	for (size_t i = 0; i < n; i++) {
		parts[i].iov_base = &frames[i];
		if (ips[i].family == AF_INET) {
			frames[i].arp = announce_arp(&link->mac, &ips[i]);
			parts[i].iov_len = sizeof(frames[i].arp);
		} else {
			frames[i].nd = announce_nd(&link->mac, &ips[i]);
			parts[i].iov_len = sizeof(frames[i].nd);
		}
	}
	if (announce_send(netns_fd, link, parts, n, &e) < 0)
		log_debug("announce the addresses of %s: %s", link->name, e.msg);
}
