/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hawser/addr.h - IP addresses, prefixes and hardware addresses as values
 *
 * What:  plain structs, copied by assignment; text in and out as Go's net
 *        package reads and writes it, including what it refuses.
 * Rules: an IPv4-mapped IPv6 address is IPv4 from the moment it is parsed.
 *        A zeroed struct is "no address".
 */
#ifndef HAWSER_ADDR_H
#define HAWSER_ADDR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hawser/err.h>

#ifdef __cplusplus
extern "C" {
#endif

struct hw_ip {
	uint8_t family;	   /* 0: none, AF_INET or AF_INET6 */
	uint8_t bytes[16]; /* network order; IPv4 uses the first 4 */
};

/* An address with its network: 10.2.3.1/24 keeps its host bits. */
struct hw_prefix {
	struct hw_ip ip;
	uint8_t len;
};

struct hw_mac {
	uint8_t len; /* 0: none; 6, 8 or 20 */
	uint8_t bytes[20];
};

#define HW_IP_TEXT     46 /* room for any address and its NUL */
#define HW_PREFIX_TEXT 50
#define HW_MAC_TEXT    60

/**
 * hw_ip_parse() - an address from text
 * @text:   "10.0.0.1", "fe80::1"; no zone, no leading zeros
 * @ret_ip: the address
 */
HW_PUBLIC int hw_ip_parse(const char *text, struct hw_ip *ret_ip, struct hw_err *e);
/**
 * hw_ip_format() - an address as text
 * @ip:  the address
 * @buf: where the text goes
 *
 * Return: @buf; "" for no address
 */
HW_PUBLIC const char *hw_ip_format(const struct hw_ip *ip, char buf[HW_IP_TEXT]);
/**
 * hw_prefix_parse() - an address with its prefix length from text
 * @text:       "10.2.3.1/24"; the length is needed, host bits are kept
 * @ret_prefix: address and length
 */
HW_PUBLIC int hw_prefix_parse(const char *text, struct hw_prefix *ret_prefix, struct hw_err *e);
/**
 * hw_prefix_format() - a prefix as text
 * @prefix: address and length
 * @buf:    where the text goes
 *
 * Return: @buf; "" for no address
 */
HW_PUBLIC const char *hw_prefix_format(const struct hw_prefix *prefix, char buf[HW_PREFIX_TEXT]);
/**
 * hw_mac_parse() - a hardware address from text
 * @text:    6, 8 or 20 bytes in hex, parted by ":" or "-", or by "." after each two
 * @ret_mac: the address
 */
HW_PUBLIC int hw_mac_parse(const char *text, struct hw_mac *ret_mac, struct hw_err *e);
/**
 * hw_mac_format() - a hardware address as text, lower case with colons
 * @mac: the address
 * @buf: where the text goes
 *
 * Return: @buf; "" for no address
 */
HW_PUBLIC const char *hw_mac_format(const struct hw_mac *mac, char buf[HW_MAC_TEXT]);

/**
 * hw_ip_equal() - are two addresses the same?
 * @a: one of them
 * @b: the other
 *
 * Return: true when both are the same address, or both none
 */
HW_PUBLIC bool hw_ip_equal(const struct hw_ip *a, const struct hw_ip *b);
/**
 * hw_prefix_equal() - are two prefixes the same, host bits included?
 * @a: one of them
 * @b: the other
 *
 * Return: true when address and length are the same
 */
HW_PUBLIC bool hw_prefix_equal(const struct hw_prefix *a, const struct hw_prefix *b);
/**
 * hw_prefix_contains() - is the address inside the prefix's network?
 * @prefix: the network; its host bits do not matter
 * @ip:     the address
 *
 * Return: true when it is; false too when the families differ
 */
HW_PUBLIC bool hw_prefix_contains(const struct hw_prefix *prefix, const struct hw_ip *ip);

#ifdef __cplusplus
}
#endif

#endif
