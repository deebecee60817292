/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/ip.c - addresses, prefixes and hardware addresses: text and arithmetic
 *
 * What:  reads and writes what Go's net.ParseIP, net.ParseCIDR, net.ParseMAC
 *        and their String() read and write; test/data/go-net.tsv holds Go's
 *        own answers.
 * How:   reading is inet_pton(), which accepts what Go accepts; writing IPv6 is
 *        ours, as inet_ntop() prints ::1.2.3.4 where Go prints ::102:304.
 * Rules: ::ffff:a.b.c.d is the IPv4 address a.b.c.d. A prefix of it is an IPv4
 *        prefix of 96 bits less; with fewer than 96 it is refused, where Go
 *        quietly calls it /0.
 */
#include "base/ip.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/str.h"

static const uint8_t mapped[12] = { [10] = 0xff, 0xff };

/* ---- text ------------------------------------------------------------------ */

/* A mapped address becomes IPv4; *ret_text_bits is the width of what was written. */
static bool ip_read(const char *text, struct hw_ip *ret_ip, unsigned *ret_text_bits)
{
	struct hw_ip ip = { 0 };

	if (inet_pton(AF_INET, text, ip.bytes) == 1) {
		ip.family = AF_INET;
		*ret_text_bits = 32;
	} else if (inet_pton(AF_INET6, text, ip.bytes) == 1) {
		ip.family = AF_INET6;
		*ret_text_bits = 128;
	} else {
		return false;
	}
	if (ip.family == AF_INET6 && memcmp(ip.bytes, mapped, sizeof(mapped)) == 0) {
		ip.family = AF_INET;
		memcpy(ip.bytes, ip.bytes + 12, 4);
		memset(ip.bytes + 4, 0, 12);
	}
	*ret_ip = ip;
	return true;
}

/**
 * hw_ip_parse() - read an address as net.ParseIP does
 *
 * Return: 0 or -EINVAL
 */
int hw_ip_parse(const char *text, struct hw_ip *ret_ip, struct hw_err *e)
{
	unsigned bits;

	if (!ip_read(text, ret_ip, &bits))
		return hw_err_text(e, -EINVAL, "invalid IP address: %.100s", text);
	return 0;
}

/* Where the longest run of two or more zero groups starts, the first of equals; its length. */
static size_t longest_zeros(const uint16_t groups[8], size_t *ret_len)
{
	size_t best = 8, best_len = 1;

	for (size_t i = 0, n; i < 8; i += n + 1) {
		for (n = 0; i + n < 8 && groups[i + n] == 0;)
			n++;
		if (n > best_len) {
			best = i;
			best_len = n;
		}
	}
	*ret_len = best_len;
	return best;
}

static void format6(const uint8_t bytes[16], char *buf, size_t room)
{
	uint16_t groups[8];
	size_t zeros, zeros_len, at = 0;

	for (size_t i = 0; i < 8; i++)
		groups[i] = bytes[2 * i] << 8 | bytes[2 * i + 1];
	zeros = longest_zeros(groups, &zeros_len);
	for (size_t i = 0; i < 8; i++) {
		if (i == zeros) {
			at += snprintf(buf + at, room - at, "::");
			i += zeros_len - 1;
			continue;
		}
		if (i > 0 && i != zeros + zeros_len)
			at += snprintf(buf + at, room - at, ":");
		at += snprintf(buf + at, room - at, "%x", groups[i]);
	}
}

/**
 * hw_ip_format() - write an address; "" for none
 *
 * Return: @buf
 */
const char *hw_ip_format(const struct hw_ip *ip, char buf[HW_IP_TEXT])
{
	const uint8_t *b = ip->bytes;

	buf[0] = '\0';
	if (ip->family == AF_INET)
		snprintf(buf, HW_IP_TEXT, "%u.%u.%u.%u", b[0], b[1], b[2], b[3]);
	else if (ip->family == AF_INET6)
		format6(b, buf, HW_IP_TEXT);
	return buf;
}

/* Digits only; zeros in front are fine, as to Go's ParseCIDR. */
static bool length_read(const char *text, unsigned max, unsigned *ret_len)
{
	unsigned n = 0;

	if (!*text)
		return false;
	for (; *text; text++) {
		if (*text < '0' || *text > '9')
			return false;
		n = n * 10 + (*text - '0');
		if (n > max)
			return false;
	}
	*ret_len = n;
	return true;
}

static bool prefix_read(const char *text, struct hw_prefix *ret_prefix)
{
	char address[HW_IP_TEXT];
	const char *slash = strchr(text, '/');
	unsigned bits, len, gone;
	struct hw_ip ip;

	if (!slash || (size_t)(slash - text) >= sizeof(address))
		return false;
	memcpy(address, text, slash - text);
	address[slash - text] = '\0';
	if (!ip_read(address, &ip, &bits) || !length_read(slash + 1, bits, &len))
		return false;
	gone = bits - ip_bits(&ip);
	if (len < gone)
		return false;
	*ret_prefix = (struct hw_prefix){ .ip = ip, .len = len - gone };
	return true;
}

/**
 * hw_prefix_parse() - read ADDRESS/LENGTH as net.ParseCIDR does; host bits stay
 *
 * Return: 0 or -EINVAL
 */
int hw_prefix_parse(const char *text, struct hw_prefix *ret_prefix, struct hw_err *e)
{
	if (!prefix_read(text, ret_prefix))
		return hw_err_text(e, -EINVAL, "invalid CIDR address: %.100s", text);
	return 0;
}

/**
 * hw_prefix_format() - write ADDRESS/LENGTH; "" for none
 *
 * Return: @buf
 */
const char *hw_prefix_format(const struct hw_prefix *prefix, char buf[HW_PREFIX_TEXT])
{
	char address[HW_IP_TEXT];

	buf[0] = '\0';
	if (prefix->ip.family)
		snprintf(buf, HW_PREFIX_TEXT, "%s/%u", hw_ip_format(&prefix->ip, address),
			 prefix->len);
	return buf;
}

static int hex_digit(char c)
{
	static const char digits[] = "0123456789abcdefABCDEF";
	const char *found = c ? strchr(digits, c) : NULL;

	if (!found)
		return -1;
	return found - digits < 16 ? found - digits : found - digits - 6;
}

/* Groups of @per bytes with @separator between them. */
static bool mac_read(const char *text, size_t per, char separator, struct hw_mac *ret_mac)
{
	struct hw_mac mac = { 0 };
	size_t n = strlen(text), group = 2 * per + 1;

	if ((n + 1) % group != 0)
		return false;
	mac.len = (n + 1) / group * per;
	if (mac.len != 6 && mac.len != 8 && mac.len != 20)
		return false;
	for (size_t i = 0; i < mac.len; i++) {
		int high = hex_digit(text[0]), low = hex_digit(text[1]);

		if (high < 0 || low < 0)
			return false;
		mac.bytes[i] = high << 4 | low;
		text += 2;
		if ((i + 1) % per == 0 && i + 1 < mac.len && *text++ != separator)
			return false;
	}
	*ret_mac = mac;
	return true;
}

/**
 * hw_mac_parse() - read a hardware address of 6, 8 or 20 bytes as net.ParseMAC does
 *
 * 00:00:5e:00:53:01, 00-00-5e-00-53-01, 0000.5e00.5301 or, as Go 1.26 takes too, 00005e005301
 *
 * Return: 0 or -EINVAL
 */
int hw_mac_parse(const char *text, struct hw_mac *ret_mac, struct hw_err *e)
{
	size_t n = strnlen(text, HW_MAC_TEXT);
	bool ok;

	if (n < 12 || n >= HW_MAC_TEXT)
		ok = false;
	else if (text[2] == ':' || text[2] == '-')
		ok = mac_read(text, 1, text[2], ret_mac);
	else if (text[4] == '.')
		ok = mac_read(text, 2, '.', ret_mac);
	else
		ok = mac_read(text, n / 2, '\0', ret_mac);
	if (!ok)
		return hw_err_text(e, -EINVAL, "address %.100s: invalid MAC address", text);
	return 0;
}

/**
 * hw_mac_format() - write a hardware address, lower case with colons; "" for none
 *
 * Return: @buf
 */
const char *hw_mac_format(const struct hw_mac *mac, char buf[HW_MAC_TEXT])
{
	buf[0] = '\0';
	for (size_t i = 0; i < mac->len && i < sizeof(mac->bytes); i++)
		snprintf(buf + (i ? 3 * i - 1 : 0), 4, i ? ":%02x" : "%02x", mac->bytes[i]);
	return buf;
}

/* ---- comparison ------------------------------------------------------------ */

/** ip_bits() - the width of an address: 32, 128, or 0 for none */
unsigned ip_bits(const struct hw_ip *ip)
{
	return ip->family == AF_INET ? 32 : ip->family == AF_INET6 ? 128 : 0;
}

static size_t ip_size(const struct hw_ip *ip)
{
	return ip_bits(ip) / 8;
}

/** ip_compare() - less than, equal to or greater than 0; none before IPv4 before IPv6 */
int ip_compare(const struct hw_ip *a, const struct hw_ip *b)
{
	if (ip_bits(a) != ip_bits(b))
		return ip_bits(a) < ip_bits(b) ? -1 : 1;
	return memcmp(a->bytes, b->bytes, ip_size(a));
}

/** hw_ip_equal() - the same address; none equals none */
bool hw_ip_equal(const struct hw_ip *a, const struct hw_ip *b)
{
	return ip_compare(a, b) == 0;
}

/** hw_prefix_equal() - the same address and the same length */
bool hw_prefix_equal(const struct hw_prefix *a, const struct hw_prefix *b)
{
	return hw_ip_equal(&a->ip, &b->ip) && a->len == b->len;
}

static bool same_network(const struct hw_ip *a, const struct hw_ip *b, unsigned len)
{
	unsigned whole = len / 8, rest = len % 8;
	uint8_t mask = 0xff << (8 - rest);

	if (!a->family || a->family != b->family || len > ip_bits(a))
		return false;
	if (memcmp(a->bytes, b->bytes, whole) != 0)
		return false;
	return rest == 0 || ((a->bytes[whole] ^ b->bytes[whole]) & mask) == 0;
}

/** hw_prefix_contains() - is the address inside the prefix's network? */
bool hw_prefix_contains(const struct hw_prefix *prefix, const struct hw_ip *ip)
{
	return same_network(&prefix->ip, ip, prefix->len);
}

/** prefix_overlaps() - is there an address that is in both? */
bool prefix_overlaps(const struct hw_prefix *a, const struct hw_prefix *b)
{
	return same_network(&a->ip, &b->ip, a->len < b->len ? a->len : b->len);
}

/* ---- arithmetic ------------------------------------------------------------ */

/**
 * ip_add() - the address @n further on
 *
 * Return: false when there is none, with @ret_ip untouched
 */
bool ip_add(const struct hw_ip *ip, uint64_t n, struct hw_ip *ret_ip)
{
	struct hw_ip sum = *ip;
	size_t i = ip_size(ip);

	if (i == 0)
		return false;
	while (i-- > 0 && n > 0) {
		/* n >> 8 leaves room for the carry */
		unsigned byte = sum.bytes[i] + (n & 0xff);

		sum.bytes[i] = byte;
		n = (n >> 8) + (byte >> 8);
	}
	if (n > 0)
		return false;
	*ret_ip = sum;
	return true;
}

/** ip_next() - the address after; false when it was the last */
bool ip_next(const struct hw_ip *ip, struct hw_ip *ret_ip)
{
	return ip_add(ip, 1, ret_ip);
}

/** ip_prev() - the address before; false when it was the first */
bool ip_prev(const struct hw_ip *ip, struct hw_ip *ret_ip)
{
	struct hw_ip before = *ip;

	for (size_t i = ip_size(ip); i-- > 0;) {
		if (before.bytes[i]-- > 0) {
			*ret_ip = before;
			return true;
		}
	}
	return false;
}

/* The host bits all zero or all one. */
static struct hw_ip with_host_bits(const struct hw_prefix *p, bool ones)
{
	struct hw_ip ip = p->ip;

	for (unsigned bit = p->len; bit < ip_bits(&ip); bit++) {
		uint8_t mask = 0x80 >> bit % 8;

		if (ones)
			ip.bytes[bit / 8] |= mask;
		else
			ip.bytes[bit / 8] &= ~mask;
	}
	return ip;
}

/** prefix_network() - the first address of the network: host bits zero */
struct hw_ip prefix_network(const struct hw_prefix *p)
{
	return with_host_bits(p, false);
}

/** prefix_last() - the last address of the network, host bits one: IPv4's broadcast */
struct hw_ip prefix_last(const struct hw_prefix *p)
{
	return with_host_bits(p, true);
}

/* ---- kinds of addresses ---------------------------------------------------- */

/** ip_is_loopback() - 127.0.0.0/8 or ::1 */
bool ip_is_loopback(const struct hw_ip *ip)
{
	static const uint8_t one[16] = { [15] = 1 };

	return (ip->family == AF_INET && ip->bytes[0] == 127) ||
	       (ip->family == AF_INET6 && memcmp(ip->bytes, one, 16) == 0);
}

/** ip_is_unspecified() - 0.0.0.0 or :: */
bool ip_is_unspecified(const struct hw_ip *ip)
{
	static const uint8_t zero[16];

	return ip->family && memcmp(ip->bytes, zero, ip_size(ip)) == 0;
}

/** ip_is_multicast() - 224.0.0.0/4 or ff00::/8 */
bool ip_is_multicast(const struct hw_ip *ip)
{
	return (ip->family == AF_INET && (ip->bytes[0] & 0xf0) == 0xe0) ||
	       (ip->family == AF_INET6 && ip->bytes[0] == 0xff);
}

/** ip_is_link_local() - 169.254.0.0/16 or fe80::/10 */
bool ip_is_link_local(const struct hw_ip *ip)
{
	const uint8_t *b = ip->bytes;

	return (ip->family == AF_INET && b[0] == 169 && b[1] == 254) ||
	       (ip->family == AF_INET6 && b[0] == 0xfe && (b[1] & 0xc0) == 0x80);
}
