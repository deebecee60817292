/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hawser/addr.h - IP addresses, prefixes and MAC addresses
 *
 * What:  plain structs, copied by assignment. They are parsed and formatted as
 *        in Go's net package; a text that Go rejects is rejected here, too.
 * Rules: an IPv4-mapped IPv6 address is parsed as IPv4. A zeroed struct is an
 *        unset address.
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
	uint8_t family;	   /* AF_INET, AF_INET6, or 0: unset */
	uint8_t bytes[16]; /* network byte order; IPv4 uses the first 4 bytes */
};

/* An address with a prefix length. Host bits are kept: 10.2.3.1/24. */
struct hw_prefix {
	struct hw_ip ip;
	uint8_t len;
};

struct hw_mac {
	uint8_t len; /* 6, 8, 20, or 0: unset */
	uint8_t bytes[20];
};

#define HW_IP_TEXT     46 /* sizes of buffers for the longest text and a NUL */
#define HW_PREFIX_TEXT 50
#define HW_MAC_TEXT    60

/**
 * hw_ip_parse() - parse an IP address
 * @text:   "10.0.0.1", "fe80::1"; no zone, no leading zeros in IPv4
 * @ret_ip: the address
 *
 * Return: 0, or -EINVAL
 */
HW_PUBLIC int hw_ip_parse(const char *text, struct hw_ip *ret_ip, struct hw_err *e);
/**
 * hw_ip_format() - format an IP address
 * @ip:  the address
 * @buf: receives the text
 *
 * Return: @buf; it contains "" if the address is unset
 */
HW_PUBLIC const char *hw_ip_format(const struct hw_ip *ip, char buf[HW_IP_TEXT]);
/**
 * hw_prefix_parse() - parse an IP address with a prefix length
 * @text:       "10.2.3.1/24"; the length is required, host bits are kept
 * @ret_prefix: address and length
 *
 * Return: 0, or -EINVAL
 */
HW_PUBLIC int hw_prefix_parse(const char *text, struct hw_prefix *ret_prefix, struct hw_err *e);
/**
 * hw_prefix_format() - format an IP address with a prefix length
 * @prefix: address and length
 * @buf:    receives the text
 *
 * Return: @buf; it contains "" if the address is unset
 */
HW_PUBLIC const char *hw_prefix_format(const struct hw_prefix *prefix, char buf[HW_PREFIX_TEXT]);
/**
 * hw_mac_parse() - parse a MAC address
 * @text:    6, 8 or 20 bytes in hex: bytes separated by ":" or "-", pairs of bytes separated by
 *           ".", or no separators
 * @ret_mac: the address
 *
 * Return: 0, or -EINVAL
 */
HW_PUBLIC int hw_mac_parse(const char *text, struct hw_mac *ret_mac, struct hw_err *e);
/**
 * hw_mac_format() - format a MAC address in lower case with colons
 * @mac: the address
 * @buf: receives the text
 *
 * Return: @buf; it contains "" if the address is unset
 */
HW_PUBLIC const char *hw_mac_format(const struct hw_mac *mac, char buf[HW_MAC_TEXT]);

/**
 * hw_ip_equal() - compare two IP addresses
 * @a: the first address
 * @b: the second address
 *
 * Return: true if the addresses are equal, or both are unset (family 0)
 */
HW_PUBLIC bool hw_ip_equal(const struct hw_ip *a, const struct hw_ip *b);
/**
 * hw_prefix_equal() - compare two prefixes, including host bits
 * @a: the first prefix
 * @b: the second prefix
 *
 * Return: true if the addresses are equal and the lengths are equal
 */
HW_PUBLIC bool hw_prefix_equal(const struct hw_prefix *a, const struct hw_prefix *b);
/**
 * hw_prefix_contains() - check if an address is in the network of a prefix
 * @prefix: the network; its host bits are ignored
 * @ip:     the address
 *
 * Return: true if the network contains the address; false if not, or if the families
 * differ
 */
HW_PUBLIC bool hw_prefix_contains(const struct hw_prefix *prefix, const struct hw_ip *ip);

#ifdef __cplusplus
}
#endif

#endif
