/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/ip.h - arithmetic on the addresses of <hawser/addr.h>
 */
#ifndef BASE_IP_H
#define BASE_IP_H

#include <hawser/addr.h>

unsigned ip_bits(const struct hw_ip *ip);		      /* 32, 128, or 0 for none */
int ip_compare(const struct hw_ip *a, const struct hw_ip *b); /* IPv4 before IPv6 */
bool ip_next(const struct hw_ip *ip, struct hw_ip *ret_ip);   /* false: it was the last */
bool ip_prev(const struct hw_ip *ip, struct hw_ip *ret_ip);
bool ip_add(const struct hw_ip *ip, uint64_t n, struct hw_ip *ret_ip);
struct hw_ip prefix_network(const struct hw_prefix *p); /* host bits zero */
struct hw_ip prefix_last(const struct hw_prefix *p);	/* host bits one: IPv4's broadcast */
bool prefix_overlaps(const struct hw_prefix *a, const struct hw_prefix *b);
bool ip_is_loopback(const struct hw_ip *ip);
bool ip_is_unspecified(const struct hw_ip *ip);
bool ip_is_multicast(const struct hw_ip *ip);
bool ip_is_link_local(const struct hw_ip *ip); /* unicast */

#endif
