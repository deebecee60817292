/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/iface/announce.h - announce the MAC address of IP addresses to neighbours
 *
 * What:  a gratuitous ARP for an IPv4 address, an unsolicited neighbour
 *        advertisement for an IPv6 address: neighbours that have cached another
 *        MAC address for it update their entry at once.
 * Rules: an announcement is sent only once. A neighbour that does not receive it
 *        updates its entry later anyway, so a failure is only logged at debug level.
 *        The link must be up.
 */
#ifndef NET_IFACE_ANNOUNCE_H
#define NET_IFACE_ANNOUNCE_H

#include <stddef.h>

#include <hawser/addr.h>

struct link;

/* Returns before the announcements are sent. netns_fd: the link's namespace; -1: the current one. A
 * link without a MAC address is ignored. */
void announce_addresses(int netns_fd, const struct link *link, const struct hw_ip *ips, size_t n);

#endif
