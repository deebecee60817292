/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/ip.h - arithmetic and classification of the addresses of <hawser/addr.h>
 *
 * Rules: a zeroed struct hw_ip is an unset address. A function that returns false leaves *ret_ip
 *        unchanged; ret_ip may point to the operand.
 */
#ifndef BASE_IP_H
#define BASE_IP_H

#include <hawser/addr.h>

unsigned ip_bits(const struct hw_ip *ip); /* 32, 128, or 0 if unset */
/* Return: less than, equal to or greater than 0. Order: unset addresses, IPv4, IPv6. */
int ip_compare(const struct hw_ip *a, const struct hw_ip *b);

/* Return: false if there is no such address, or *ip is unset */
bool ip_next(const struct hw_ip *ip, struct hw_ip *ret_ip);
bool ip_prev(const struct hw_ip *ip, struct hw_ip *ret_ip);
bool ip_add(const struct hw_ip *ip, uint64_t n, struct hw_ip *ret_ip);

struct hw_ip prefix_network(const struct hw_prefix *p); /* first address: all host bits 0 */
struct hw_ip prefix_last(
	const struct hw_prefix *p); /* last address: all host bits 1 (IPv4 broadcast) */
bool prefix_overlaps(const struct hw_prefix *a, const struct hw_prefix *b);

bool ip_is_loopback(const struct hw_ip *ip);	/* 127.0.0.0/8 or ::1 */
bool ip_is_unspecified(const struct hw_ip *ip); /* 0.0.0.0 or :: */
bool ip_is_multicast(const struct hw_ip *ip);	/* 224.0.0.0/4 or ff00::/8 */
bool ip_is_link_local(const struct hw_ip *ip);	/* 169.254.0.0/16 or fe80::/10 */

#endif
