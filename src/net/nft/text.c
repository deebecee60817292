/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/nft/text.c - an element as text, as nft prints it
 */
#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "net/nft/elem.h"

struct text {
	char *buf;
	size_t len;
};

__attribute__((format(printf, 2, 3))) static void add(struct text *text, const char *fmt, ...)
{
	size_t room = NFT_ELEM_TEXT - text->len;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(text->buf + text->len, room, fmt, ap);
	va_end(ap);
	text->len += (size_t)n < room ? (size_t)n : room - 1;
}

static void add_proto(struct text *text, uint8_t proto)
{
	if (proto == IPPROTO_TCP)
		add(text, "tcp");
	else if (proto == IPPROTO_UDP)
		add(text, "udp");
	else if (proto == IPPROTO_SCTP)
		add(text, "sctp");
	else
		add(text, "%u", proto);
}

/* The length of the network from @first to @last; the whole address for an empty @last */
static unsigned prefix_len(const uint8_t *first, const uint8_t *last, unsigned bytes)
{
	unsigned bits = 0;

	while (bits < bytes * 8 && !((first[bits / 8] ^ last[bits / 8]) & (0x80 >> bits % 8)))
		bits++;
	return bits;
}

static void add_ip(struct text *text, const uint8_t *first, const uint8_t *last, int family)
{
	struct hw_ip ip = { .family = (uint8_t)family };
	unsigned bytes = family == AF_INET ? 4 : 16;
	unsigned len = prefix_len(first, last, bytes);
	char address[HW_IP_TEXT];

	memcpy(ip.bytes, first, bytes);
	add(text, "%s", hw_ip_format(&ip, address));
	if (len < bytes * 8)
		add(text, "/%u", len);
}

/* One field; return the room that it takes. */
static size_t add_field(struct text *text, char type, const uint8_t *v, const uint8_t *end)
{
	struct hw_mac mac = { .len = 6 };
	char address[HW_MAC_TEXT];

	switch (type) {
	case '4':
		add_ip(text, v, end, AF_INET);
		return 4;
	case '6':
		add_ip(text, v, end, AF_INET6);
		return 16;
	case 'p':
		add_proto(text, v[0]);
		return 4;
	case 's':
		add(text, "%u", (unsigned)v[0] << 8 | v[1]);
		return 4;
	case 'i':
		add(text, "%.*s", IFNAMSIZ, (const char *)v);
		return IFNAMSIZ;
	case 'm':
		memcpy(mac.bytes, v, mac.len);
		add(text, "%s", hw_mac_format(&mac, address));
		return 8;
	default: /* numbers are in our own order */
		add(text, "%u", *(const uint32_t *)v);
		return 4;
	}
}

static void add_fields(struct text *text, const char *types, const struct nft_bytes *bytes,
		       const struct nft_bytes *end)
{
	const uint8_t *last = end->len ? end->v : bytes->v;
	size_t at = 0;

	for (; *types && at < bytes->len; types++) {
		add(text, "%s", at ? " . " : "");
		at += add_field(text, *types, bytes->v + at, last + at);
	}
}

/**
 * nft_elem_format() - an element as text
 *
 * Return: @buf
 */
const char *nft_elem_format(const struct nft_elem *elem, char buf[NFT_ELEM_TEXT])
{
	const struct nft_set *set = nft_set_find(elem->table, elem->set);
	struct text text = { .buf = buf };

	buf[0] = '\0';
	if (!set)
		return buf;
	add_fields(&text, set->key, &elem->key, &elem->end);
	if (*elem->chain)
		add(&text, " : %s %s", elem->is_goto ? "goto" : "jump", elem->chain);
	else if (elem->data.len) {
		add(&text, " : ");
		add_fields(&text, set->data, &elem->data, &elem->data);
	}
	return buf;
}
