/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/ip.c - IP addresses, prefixes and MAC addresses: text and arithmetic
 *
 * What:  reads and writes the same texts as Go's net.ParseIP, net.ParseCIDR,
 *        net.ParseMAC and their String(); Go's results are in test/data/go-net.tsv.
 * How:   inet_pton() accepts exactly the texts that Go accepts. IPv6 is formatted here,
 *        because inet_ntop() prints ::1.2.3.4 where Go prints ::102:304.
 * Rules: ::ffff:a.b.c.d is the IPv4 address a.b.c.d. Its prefix length is reduced
 *        by 96; a length below 96 is rejected, where Go silently returns /0.
 */
#include "base/ip.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/str.h"

static const uint8_t mapped_prefix[12] = { [10] = 0xff, 0xff };

/* ---- text ------------------------------------------------------------------ */

/* An IPv4-mapped address becomes IPv4. *ret_text_bits is the width of the address in the text: 32,
 * or 128 for an IPv6 or IPv4-mapped address. */
static bool parse_address(const char *text, struct hw_ip *ret_ip, unsigned *ret_text_bits)
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
	if (ip.family == AF_INET6 && memcmp(ip.bytes, mapped_prefix, sizeof(mapped_prefix)) == 0) {
		ip.family = AF_INET;
		memcpy(ip.bytes, ip.bytes + 12, 4);
		memset(ip.bytes + 4, 0, 12);
	}
	*ret_ip = ip;
	return true;
}

int hw_ip_parse(const char *text, struct hw_ip *ret_ip, struct hw_err *e)
{
	unsigned bits;

	if (!parse_address(text, ret_ip, &bits))
		return hw_err_text(e, -EINVAL, "invalid IP address: %.100s", text);
	return 0;
}

/* Writes "::" for the longest run of two or more zero groups. If several runs have the same length,
 * for the first one. */
static void format_ipv6(const uint8_t bytes[16], char *buf, size_t room)
{
	uint16_t groups[8];
	size_t zeros = 8, zeros_len = 1, at = 0;

	for (size_t i = 0; i < 8; i++)
		groups[i] = bytes[2 * i] << 8 | bytes[2 * i + 1];
	for (size_t i = 0, n; i < 8; i += n + 1) {
		for (n = 0; i + n < 8 && groups[i + n] == 0;)
			n++;
		if (n > zeros_len) {
			zeros = i;
			zeros_len = n;
		}
	}
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

const char *hw_ip_format(const struct hw_ip *ip, char buf[HW_IP_TEXT])
{
	const uint8_t *b = ip->bytes;

	buf[0] = '\0';
	if (ip->family == AF_INET)
		snprintf(buf, HW_IP_TEXT, "%u.%u.%u.%u", b[0], b[1], b[2], b[3]);
	else if (ip->family == AF_INET6)
		format_ipv6(b, buf, HW_IP_TEXT);
	return buf;
}

static bool parse_prefix(const char *text, struct hw_prefix *ret_prefix)
{
	char address[HW_IP_TEXT];
	const char *slash;
	unsigned bits, len = 0, mapped_bits;
	struct hw_ip ip;

	slash = strchr(text, '/');
	if (!slash || (size_t)(slash - text) >= sizeof(address))
		return false;
	memcpy(address, text, slash - text);
	address[slash - text] = '\0';
	if (!parse_address(address, &ip, &bits) || !slash[1])
		return false;
	/* digits only; leading zeros are accepted, as in Go's ParseCIDR */
	for (const char *p = slash + 1; *p; p++) {
		if (*p < '0' || *p > '9')
			return false;
		len = len * 10 + (*p - '0');
		if (len > bits)
			return false;
	}
	mapped_bits = bits - ip_bits(&ip);
	if (len < mapped_bits)
		return false;
	*ret_prefix = (struct hw_prefix){ .ip = ip, .len = len - mapped_bits };
	return true;
}

int hw_prefix_parse(const char *text, struct hw_prefix *ret_prefix, struct hw_err *e)
{
	if (!parse_prefix(text, ret_prefix))
		return hw_err_text(e, -EINVAL, "invalid CIDR address: %.100s", text);
	return 0;
}

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
	const char *found;

	found = c ? strchr(digits, c) : NULL;
	if (!found)
		return -1;
	return found - digits < 16 ? found - digits : found - digits - 6;
}

/* Parses groups of @per bytes with @separator between the groups. */
static bool parse_mac(const char *text, size_t per, char separator, struct hw_mac *ret_mac)
{
	struct hw_mac mac = { 0 };
	size_t n = strlen(text), group = 2 * per + 1;

	if ((n + 1) % group != 0)
		return false;
	mac.len = (n + 1) / group * per;
	if (mac.len != 6 && mac.len != 8 && mac.len != 20)
		return false;
	for (size_t i = 0; i < mac.len; i++) {
		int high, low;

		high = hex_digit(text[0]);
		low = hex_digit(text[1]);
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

int hw_mac_parse(const char *text, struct hw_mac *ret_mac, struct hw_err *e)
{
	size_t n = strnlen(text, HW_MAC_TEXT);
	bool ok;

	if (n < 12 || n >= HW_MAC_TEXT)
		ok = false;
	else if (text[2] == ':' || text[2] == '-')
		ok = parse_mac(text, 1, text[2], ret_mac);
	else if (text[4] == '.')
		ok = parse_mac(text, 2, '.', ret_mac);
	else
		ok = parse_mac(text, n / 2, '\0', ret_mac);
	if (!ok)
		return hw_err_text(e, -EINVAL, "address %.100s: invalid MAC address", text);
	return 0;
}

const char *hw_mac_format(const struct hw_mac *mac, char buf[HW_MAC_TEXT])
{
	buf[0] = '\0';
	for (size_t i = 0; i < mac->len && i < sizeof(mac->bytes); i++)
		snprintf(buf + (i ? 3 * i - 1 : 0), 4, i ? ":%02x" : "%02x", mac->bytes[i]);
	return buf;
}

/* ---- comparison ------------------------------------------------------------ */

unsigned ip_bits(const struct hw_ip *ip)
{
	return ip->family == AF_INET ? 32 : ip->family == AF_INET6 ? 128 : 0;
}

static size_t ip_size(const struct hw_ip *ip)
{
	return ip_bits(ip) / 8;
}

int ip_compare(const struct hw_ip *a, const struct hw_ip *b)
{
	if (ip_bits(a) != ip_bits(b))
		return ip_bits(a) < ip_bits(b) ? -1 : 1;
	return memcmp(a->bytes, b->bytes, ip_size(a));
}

bool hw_ip_equal(const struct hw_ip *a, const struct hw_ip *b)
{
	return ip_compare(a, b) == 0;
}

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

bool hw_prefix_contains(const struct hw_prefix *prefix, const struct hw_ip *ip)
{
	return same_network(&prefix->ip, ip, prefix->len);
}

bool prefix_overlaps(const struct hw_prefix *a, const struct hw_prefix *b)
{
	return same_network(&a->ip, &b->ip, a->len < b->len ? a->len : b->len);
}

/* ---- arithmetic ------------------------------------------------------------ */

bool ip_add(const struct hw_ip *ip, uint64_t n, struct hw_ip *ret_ip)
{
	struct hw_ip sum = *ip;
	size_t i = ip_size(ip);

	if (i == 0)
		return false;
	while (i-- > 0 && n > 0) {
		/* the sum (n >> 8) + carry below cannot overflow */
		unsigned byte = sum.bytes[i] + (n & 0xff);

		sum.bytes[i] = byte;
		n = (n >> 8) + (byte >> 8);
	}
	if (n > 0)
		return false;
	*ret_ip = sum;
	return true;
}

bool ip_next(const struct hw_ip *ip, struct hw_ip *ret_ip)
{
	return ip_add(ip, 1, ret_ip);
}

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

static struct hw_ip set_host_bits(const struct hw_prefix *p, bool ones)
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

struct hw_ip prefix_network(const struct hw_prefix *p)
{
	return set_host_bits(p, false);
}

struct hw_ip prefix_last(const struct hw_prefix *p)
{
	return set_host_bits(p, true);
}

/* ---- classification --------------------------------------------------------- */

bool ip_is_loopback(const struct hw_ip *ip)
{
	static const uint8_t one[16] = { [15] = 1 };

	return (ip->family == AF_INET && ip->bytes[0] == 127) ||
	       (ip->family == AF_INET6 && memcmp(ip->bytes, one, 16) == 0);
}

bool ip_is_unspecified(const struct hw_ip *ip)
{
	static const uint8_t zero[16];

	return ip->family && memcmp(ip->bytes, zero, ip_size(ip)) == 0;
}

bool ip_is_multicast(const struct hw_ip *ip)
{
	return (ip->family == AF_INET && (ip->bytes[0] & 0xf0) == 0xe0) ||
	       (ip->family == AF_INET6 && ip->bytes[0] == 0xff);
}

bool ip_is_link_local(const struct hw_ip *ip)
{
	const uint8_t *b = ip->bytes;

	return (ip->family == AF_INET && b[0] == 169 && b[1] == 254) ||
	       (ip->family == AF_INET6 && b[0] == 0xfe && (b[1] & 0xc0) == 0x80);
}
