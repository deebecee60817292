/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/nft/elem.c - set elements: key, data, wire format, text, lists
 *
 * How:   a key is the sequence of its fields in network byte order, each padded
 *        to a multiple of four bytes, as in the kernel's registers. The owner is
 *        stored in the format of nft's comments: type 0, the length, and the text
 *        with its NUL, in the attribute userdata.
 */
#include "net/nft/elem.h"

#include <arpa/inet.h>
#include <assert.h>
#include <libmnl/libmnl.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/hash.h"
#include "base/ip.h"
#include "base/mem.h"
#include "base/str.h"

#define COMMENT 0 /* the userdata type of nft's comments */
#define ALIGN	4
#define ETHER	6
#define ROOM	16 /* initial capacity of a list */

/* Field types: 4 and 6: IP address, p: protocol, s: port, i: interface name, m: MAC address,
 * n: number, f: protocol family, v: verdict. A name that ends with _ is the beginning of the names of
 * sets that are created for networks. */
/* clang-format off */
const struct nft_set nft_sets[] = {
	{ NFT_INET, "version", "n", "" },
	{ NFT_INET, "masq4", "4", "v", "masqall" },
	{ NFT_INET, "masq6", "6", "v", "masqall" },
	{ NFT_INET, "direct4_", "44", "" },
	{ NFT_INET, "direct6_", "66", "" },
	{ NFT_INET, "iptables", "ff", "" },
	{ NFT_INET, "near4", "4", "v" },
	{ NFT_INET, "near6", "6", "v" },
	{ NFT_INET, "own4", "44", "" },
	{ NFT_INET, "own6", "66", "" },
	{ NFT_INET, "port4", "p4s", "4s" },
	{ NFT_INET, "port6", "p6s", "6s" },
	{ NFT_INET, "anyport4", "ps", "4s" },
	{ NFT_INET, "anyport6", "ps", "6s" },
	{ NFT_INET, "cond4", "p4s", "v" },
	{ NFT_INET, "cond6", "p6s", "v" },
	{ NFT_INET, "anycond4", "ps", "v" },
	{ NFT_INET, "anycond6", "ps", "v" },
	{ NFT_INET, "mark4", "p4s", "v", "snat13" },
	{ NFT_INET, "mark6", "p6s", "v", "snat13" },
	{ NFT_INET, "anymark4", "ps", "v", "snat13" },
	{ NFT_INET, "anymark6", "ps", "v", "snat13" },
	{ NFT_INET, "snatall4", "p4s", "" },
	{ NFT_INET, "snatall6", "p6s", "" },
	{ NFT_INET, "self4", "44", "" },
	{ NFT_INET, "self6", "66", "" },
	{ NFT_INET, "claimed", "ps", "" },
	{ NFT_INET, "sharing", "nn", "" },
	{ NFT_INET, "allow4", "4", "v", "allow12" },
	{ NFT_INET, "allow6", "6", "v", "allow12" },
	{ NFT_INET, "protected", "i", "" },
	{ NFT_INET, "samebridge", "ii", "" },
	{ NFT_INET, "isolated", "ii", "" },
	{ NFT_BRIDGE, "version", "n", "" },
	{ NFT_BRIDGE, "mac_checked", "i", "" },
	{ NFT_BRIDGE, "mac_ok", "im", "" },
	{ 0 },
};
/* clang-format on */

static const struct nft_set *find_set(enum nft_table table, const char *name)
{
	for (const struct nft_set *set = nft_sets; set->name; set++)
		if (set->table == table && (str_ends(set->name, "_") ? str_starts(name, set->name)
								     : str_equal(name, set->name)))
			return set;
	return NULL;
}

/* ---- fill an element --------------------------------------------------------------------- */

struct nft_elem nft_elem(enum nft_table table, const char *set, enum nft_mode mode)
{
	struct nft_elem elem = { .table = table, .mode = mode };

	assert(strlen(set) < sizeof(elem.set));
	memcpy(elem.set, set, strlen(set));
	return elem;
}

struct nft_elem nft_elem_for(const char *set, const struct hw_ip *ip, enum nft_mode mode)
{
	struct nft_elem elem = nft_elem(NFT_INET, set, mode);
	size_t len = strlen(elem.set);

	assert(len + 1 < sizeof(elem.set));
	elem.set[len] = ip->family == AF_INET ? '4' : '6';
	return elem;
}

static void put_field(struct nft_bytes *bytes, const void *field, size_t len)
{
	size_t padded = (len + ALIGN - 1) / ALIGN * ALIGN;

	assert(bytes->len + padded <= sizeof(bytes->v));
	memcpy(bytes->v + bytes->len, field, len);
	bytes->len += padded;
}

static void put_port(struct nft_bytes *bytes, uint16_t port)
{
	uint16_t wire = htons(port);

	put_field(bytes, &wire, sizeof(wire));
}

void nft_key_ip(struct nft_elem *elem, const struct hw_ip *ip)
{
	put_field(&elem->key, ip->bytes, ip_bits(ip) / 8);
}

void nft_key_network(struct nft_elem *elem, const struct hw_prefix *prefix)
{
	struct hw_ip first = prefix_network(prefix), last = prefix_last(prefix);

	put_field(&elem->key, first.bytes, ip_bits(&first) / 8);
	put_field(&elem->end, last.bytes, ip_bits(&last) / 8);
}

void nft_key_port(struct nft_elem *elem, uint16_t port)
{
	put_port(&elem->key, port);
}

void nft_key_proto(struct nft_elem *elem, uint8_t proto)
{
	put_field(&elem->key, &proto, sizeof(proto));
}

void nft_key_number(struct nft_elem *elem, uint32_t number)
{
	put_field(&elem->key, &number, sizeof(number));
}

void nft_key_ifname(struct nft_elem *elem, const char *ifname)
{
	char field[IFNAMSIZ] = { 0 };

	snprintf(field, sizeof(field), "%s", ifname);
	put_field(&elem->key, field, sizeof(field));
}

void nft_key_mac(struct nft_elem *elem, const struct hw_mac *mac)
{
	put_field(&elem->key, mac->bytes, ETHER);
}

void nft_data_ip(struct nft_elem *elem, const struct hw_ip *ip)
{
	put_field(&elem->data, ip->bytes, ip_bits(ip) / 8);
}

void nft_data_port(struct nft_elem *elem, uint16_t port)
{
	put_port(&elem->data, port);
}

void nft_data_jump(struct nft_elem *elem, const char *chain)
{
	assert(strlen(chain) < sizeof(elem->chain));
	memcpy(elem->chain, chain, strlen(chain) + 1);
}

void nft_data_goto(struct nft_elem *elem, const char *chain)
{
	nft_data_jump(elem, chain);
	elem->is_goto = true;
}

void nft_owner(const char *network, const char *container_id, const char *ifname,
	       char ret_owner[NFT_OWNER])
{
	const char *parts[] = { network, container_id, ifname };

	hash_parts(parts, ARRAY_SIZE(parts), NFT_OWNER - 1, ret_owner);
}

void nft_container_owner(const char *container_id, char ret_owner[NFT_OWNER])
{
	hash_parts(&container_id, 1, NFT_OWNER - 1, ret_owner);
}

/* ---- on the wire ------------------------------------------------------------------------- */

static void encode_value(struct nlmsghdr *m, uint16_t type, const struct nft_bytes *bytes)
{
	struct nlattr *nest;

	if (!bytes->len)
		return;
	nest = mnl_attr_nest_start(m, type);
	mnl_attr_put(m, NFTA_DATA_VALUE, bytes->len, bytes->v);
	mnl_attr_nest_end(m, nest);
}

static void encode_verdict(struct nlmsghdr *m, const struct nft_elem *elem)
{
	struct nlattr *data = mnl_attr_nest_start(m, NFTA_SET_ELEM_DATA);
	struct nlattr *verdict = mnl_attr_nest_start(m, NFTA_DATA_VERDICT);
	const struct nft_set *set = find_set(elem->table, elem->set);
	bool is_default = set && set->default_chain && !elem->is_goto &&
			  str_equal(elem->chain, set->default_chain);
	int code = is_default ? NFT_CONTINUE : elem->is_goto ? NFT_GOTO : NFT_JUMP;

	mnl_attr_put_u32(m, NFTA_VERDICT_CODE, htonl((uint32_t)code));
	if (!is_default)
		mnl_attr_put_strz(m, NFTA_VERDICT_CHAIN, elem->chain);
	mnl_attr_nest_end(m, verdict);
	mnl_attr_nest_end(m, data);
}

void nft_elem_encode(struct nlmsghdr *m, const struct nft_elem *elem, const char *owner)
{
	uint8_t comment[2 + NFT_OWNER] = { COMMENT, NFT_OWNER };
	struct nlattr *list, *item;

	mnl_attr_put_strz(m, NFTA_SET_ELEM_LIST_TABLE, NFT_TABLE);
	mnl_attr_put_strz(m, NFTA_SET_ELEM_LIST_SET, elem->set);
	list = mnl_attr_nest_start(m, NFTA_SET_ELEM_LIST_ELEMENTS);
	item = mnl_attr_nest_start(m, NFTA_LIST_ELEM);
	encode_value(m, NFTA_SET_ELEM_KEY, &elem->key);
	encode_value(m, NFTA_SET_ELEM_KEY_END, &elem->end);
	if (owner && *elem->chain)
		encode_verdict(m, elem);
	else if (owner)
		encode_value(m, NFTA_SET_ELEM_DATA, &elem->data);
	if (owner && elem->mode != NFT_SHARED) {
		memcpy(comment + 2, owner, NFT_OWNER);
		mnl_attr_put(m, NFTA_SET_ELEM_USERDATA, sizeof(comment), comment);
	}
	mnl_attr_nest_end(m, item);
	mnl_attr_nest_end(m, list);
}

static void decode_verdict(const struct nlattr *verdict, struct nft_elem *ret)
{
	const struct nft_set *set = find_set(ret->table, ret->set);
	const char *chain = set ? str_or(set->default_chain, "") : "";
	int len = (int)strlen(chain);
	const struct nlattr *attr;

	mnl_attr_for_each_nested(attr, verdict) {
		if (mnl_attr_get_type(attr) == NFTA_VERDICT_CHAIN) {
			chain = mnl_attr_get_str(attr);
			len = mnl_attr_get_payload_len(attr);
		} else if (mnl_attr_get_type(attr) == NFTA_VERDICT_CODE) {
			ret->is_goto = (int)ntohl(mnl_attr_get_u32(attr)) == NFT_GOTO;
		}
	}
	snprintf(ret->chain, sizeof(ret->chain), "%.*s", len, chain);
}

static void decode_data(const struct nlattr *nest, struct nft_bytes *ret, struct nft_elem *elem)
{
	const struct nlattr *attr;

	mnl_attr_for_each_nested(attr, nest) {
		size_t len = mnl_attr_get_payload_len(attr);

		if (mnl_attr_get_type(attr) == NFTA_DATA_VALUE && len <= sizeof(ret->v)) {
			memcpy(ret->v, mnl_attr_get_payload(attr), len);
			ret->len = (uint8_t)((len + ALIGN - 1) / ALIGN * ALIGN);
		} else if (mnl_attr_get_type(attr) == NFTA_DATA_VERDICT) {
			decode_verdict(attr, elem);
		}
	}
}

void nft_elem_decode(const struct nlattr *item, struct nft_elem *ret_elem)
{
	const struct nlattr *attr;
	const uint8_t *comment;

	mnl_attr_for_each_nested(attr, item) {
		switch (mnl_attr_get_type(attr)) {
		case NFTA_SET_ELEM_KEY:
			decode_data(attr, &ret_elem->key, ret_elem);
			break;
		case NFTA_SET_ELEM_KEY_END:
			decode_data(attr, &ret_elem->end, ret_elem);
			break;
		case NFTA_SET_ELEM_DATA:
			decode_data(attr, &ret_elem->data, ret_elem);
			break;
		case NFTA_SET_ELEM_USERDATA:
			/* A comment in any other format is not an owner. */
			comment = mnl_attr_get_payload(attr);
			if (mnl_attr_get_payload_len(attr) == 2 + NFT_OWNER &&
			    comment[0] == COMMENT && comment[1] == NFT_OWNER &&
			    comment[1 + NFT_OWNER] == '\0')
				memcpy(ret_elem->owner, comment + 2, NFT_OWNER);
			break;
		default:
			break;
		}
	}
}

bool nft_elem_covers(const struct nft_elem *a, const struct nft_elem *b)
{
	const struct nft_bytes *last = a->end.len ? &a->end : &a->key;
	const struct nft_bytes *wanted = b->end.len ? &b->end : &b->key;
	size_t field = str_ends(b->set, "6") ? 16 : 4;

	if (a->key.len != b->key.len || last->len != wanted->len)
		return false;
	for (size_t i = 0; i + field <= b->key.len; i += field)
		if (memcmp(a->key.v + i, b->key.v + i, field) > 0 ||
		    memcmp(last->v + i, wanted->v + i, field) < 0)
			return false;
	return true;
}

static bool is_same_bytes(const struct nft_bytes *a, const struct nft_bytes *b)
{
	return a->len == b->len && !memcmp(a->v, b->v, a->len);
}

bool nft_elem_same_key(const struct nft_elem *a, const struct nft_elem *b)
{
	return a->table == b->table && is_same_bytes(&a->key, &b->key) &&
	       is_same_bytes(&a->end, &b->end) && str_equal(a->set, b->set);
}

bool nft_elem_same_data(const struct nft_elem *a, const struct nft_elem *b)
{
	return is_same_bytes(&a->data, &b->data) && str_equal(a->chain, b->chain) &&
	       a->is_goto == b->is_goto;
}

/* ---- as text ---------------------------------------------------------------------------- */

struct elem_text {
	char *buf;
	size_t len;
};

__attribute__((format(printf, 2, 3))) static void add_text(struct elem_text *text, const char *fmt,
							   ...)
{
	size_t room = NFT_ELEM_TEXT - text->len;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(text->buf + text->len, room, fmt, ap);
	va_end(ap);
	text->len += (size_t)n < room ? (size_t)n : room - 1;
}

static void add_proto(struct elem_text *text, uint8_t proto)
{
	if (proto == IPPROTO_TCP)
		add_text(text, "tcp");
	else if (proto == IPPROTO_UDP)
		add_text(text, "udp");
	else if (proto == IPPROTO_SCTP)
		add_text(text, "sctp");
	else
		add_text(text, "%u", proto);
}

/* Adds the network that begins at @first and ends at @last; a single address if both are equal. */
static void add_ip(struct elem_text *text, const uint8_t *first, const uint8_t *last, int family)
{
	struct hw_ip ip = { .family = (uint8_t)family };
	unsigned bytes = family == AF_INET ? 4 : 16, len = 0;
	char address[HW_IP_TEXT];

	while (len < bytes * 8 && !((first[len / 8] ^ last[len / 8]) & (0x80 >> len % 8)))
		len++;
	memcpy(ip.bytes, first, bytes);
	add_text(text, "%s", hw_ip_format(&ip, address));
	if (len < bytes * 8)
		add_text(text, "/%u", len);
}

/* Return: the size of the field, with padding */
static size_t add_field(struct elem_text *text, char type, const uint8_t *v, const uint8_t *end)
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
	case 'f':
		add_text(text, v[0] == NFPROTO_IPV4 ? "ipv4" : "ipv6");
		return 4;
	case 's':
		add_text(text, "%u", (unsigned)v[0] << 8 | v[1]);
		return 4;
	case 'i':
		add_text(text, "%.*s", IFNAMSIZ, (const char *)v);
		return IFNAMSIZ;
	case 'm':
		memcpy(mac.bytes, v, mac.len);
		add_text(text, "%s", hw_mac_format(&mac, address));
		return 8;
	default: /* a number in host byte order */
		add_text(text, "%u", *(const uint32_t *)v);
		return 4;
	}
}

static void add_fields(struct elem_text *text, const char *types, const struct nft_bytes *bytes,
		       const struct nft_bytes *end)
{
	const uint8_t *last = end->len ? end->v : bytes->v;
	size_t at = 0;

	for (; *types && at < bytes->len; types++) {
		add_text(text, "%s", at ? " . " : "");
		at += add_field(text, *types, bytes->v + at, last + at);
	}
}

const char *nft_elem_format(const struct nft_elem *elem, char buf[NFT_ELEM_TEXT])
{
	const struct nft_set *set = find_set(elem->table, elem->set);
	struct elem_text text = { .buf = buf };

	buf[0] = '\0';
	if (!set)
		return buf;
	add_fields(&text, set->key, &elem->key, &elem->end);
	if (*elem->chain)
		add_text(&text, " : %s %s", elem->is_goto ? "goto" : "jump", elem->chain);
	else if (elem->data.len) {
		add_text(&text, " : ");
		add_fields(&text, set->data, &elem->data, &elem->data);
	}
	return buf;
}

/* ---- lists ------------------------------------------------------------------------------ */

void nft_elems_done(struct nft_elems *elems)
{
	free(elems->v);
	*elems = (struct nft_elems){ 0 };
}

void nft_elems_add(struct nft_elems *elems, struct nft_elem elem)
{
	if (elems->n == elems->room) {
		elems->room = elems->room ? 2 * elems->room : ROOM;
		elems->v = mem_resize(elems->v, elems->room, sizeof(*elems->v));
	}
	elems->v[elems->n++] = elem;
}

bool nft_elems_has(const struct nft_elems *elems, const struct nft_elem *elem)
{
	for (size_t i = 0; i < elems->n; i++)
		if (nft_elem_same_key(&elems->v[i], elem))
			return true;
	return false;
}

bool nft_elems_has_set(const struct nft_elems *elems, const char *set)
{
	for (size_t i = 0; i < elems->n; i++)
		if (str_equal(elems->v[i].set, set))
			return true;
	return false;
}

void nft_elems_add_once(struct nft_elems *elems, struct nft_elem elem)
{
	if (!nft_elems_has(elems, &elem))
		nft_elems_add(elems, elem);
}
