/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/iface/announce.h - tell the neighbours who has an address now
 *
 * What:  a gratuitous ARP for an IPv4 address, an unsolicited neighbour
 *        advertisement for an IPv6 one: whoever remembers the address with
 *        another MAC learns the new one at once.
 * Rules: sent once and forgotten; a neighbour that misses it finds out later,
 *        so a failure is worth a debug line and nothing more. The link is up.
 */
#ifndef NET_IFACE_ANNOUNCE_H
#define NET_IFACE_ANNOUNCE_H

#include <hawser/addr.h>

struct link;

/* netns_fd: where the link is; -1: where we are. */
void announce(int netns_fd, const struct link *link, const struct hw_ip *ip);

#endif
