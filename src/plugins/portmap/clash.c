/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/portmap/clash.c - a host port that somebody else has: who, and what can be done
 *
 * How:   the element in the way has its owner as a hash; the attachment records
 *        have the names behind it. This reads them all, but all is lost.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "cni/lock.h"
#include "cni/plugin/record.h"
#include "plugins/portmap/portmap.h"

static const char *const sets[] = {
	"port4",    "port6", "anyport4", "anyport6", "cond4",	 "cond6",   "anycond4",
	"anycond6", "mark4", "mark6",	 "anymark4", "anymark6", "holder4", "holder6",
};

/* Where a key has its port: it is protocol, perhaps an address, port, perhaps a number. */
static const uint8_t *port_of(const struct nft_elem *elem)
{
	bool anywhere = str_starts(elem->set, "any") || str_starts(elem->set, "holder") ||
			str_starts(elem->set, "upto");

	return elem->key.v + 4 + (anywhere ? 0 : str_ends(elem->set, "6") ? 16 : 4);
}

/* "8080/tcp" */
static void format_port(const struct nft_elem *there, char buf[NFT_ELEM_TEXT])
{
	const uint8_t *port = port_of(there);
	char text[NFT_ELEM_TEXT];

	nft_elem_format(there, text);
	snprintf(buf, NFT_ELEM_TEXT, "%u/%.*s", (unsigned)port[0] << 8 | port[1],
		 (int)strcspn(text, " "), text);
}

/* ---- by its record ------------------------------------------------------------------------------- */

struct search {
	const char *owner;
	char *who; /* NULL: not found yet */
	char *way_out;
};

static int look(void *ctx, const struct record *r, struct hw_err *e)
{
	struct search *search = ctx;
	char owner[NFT_OWNER];

	(void)e;
	nft_owner(r->network, r->container_id, r->ifname, owner);
	if (search->who || !str_equal(owner, search->owner))
		return 0;
	search->who = str_printf(
		"container %s, interface %s, of network %s%s", r->container_id, r->ifname,
		r->network,
		access(str_or(r->netns, ""), F_OK) < 0 ? ", whose network namespace is gone," : "");
	search->way_out = str_printf("If it is dead: DEL with CNI_CONTAINERID=%s CNI_IFNAME=%s, or "
				     "GC, on network %s frees the port",
				     r->container_id, r->ifname, r->network);
	return 0;
}

/* ---- without one --------------------------------------------------------------------------------- */

struct leftovers {
	const struct nft_elem *there;
	struct buf commands;
};

static bool is_leftover(const struct nft_elem *elem, const struct nft_elem *there)
{
	return str_equal(elem->owner, there->owner) && elem->key.v[0] == there->key.v[0] &&
	       !memcmp(port_of(elem), port_of(there), sizeof(uint16_t));
}

static int put_command(void *ctx, const struct nft_elem *elem, struct hw_err *e)
{
	struct leftovers *left = ctx;
	struct nft_elem key = *elem;
	char text[NFT_ELEM_TEXT];

	(void)e;
	if (!is_leftover(elem, left->there))
		return 0;
	key.data.len = 0;
	key.chain[0] = '\0';
	buf_printf(&left->commands, "%sdelete element inet hawser %s { %s }",
		   left->commands.len ? "; " : "", elem->set, nft_elem_format(&key, text));
	return 0;
}

/* All that its owner has for this port: one that is left would still lead somewhere. */
static int clash_with_nobody(struct nft *nft, const struct nft_elem *there, const char *port,
			     struct hw_err *e)
{
	struct leftovers left = { .there = there };
	int r = 0;

	for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(sets); i++)
		r = nft_list(nft, there->table, sets[i], put_command, &left, e);
	AUTO(buf_done) struct buf commands = left.commands;
	if (r < 0)
		return r;
	return err_text(e, -EADDRINUSE,
			"host port %s is taken by somebody whose record is lost. If it is dead: "
			"nft '%s' frees the port",
			port, str_or(commands.data, ""));
}

/**
 * portmap_clash() - say who has the port
 * @there: the element that was in the way
 *
 * Return: -EADDRINUSE
 */
int portmap_clash(struct nft *nft, const struct nft_elem *there, struct hw_err *e)
{
	autofree char *state = lock_state_dir();
	struct search search = { .owner = there->owner };
	struct errors unreadable = { 0 };
	char port[NFT_ELEM_TEXT];

	record_each_of(state, "portmap", look, &search, &unreadable);
	autofree char *who = search.who, *way_out = search.way_out;
	format_port(there, port);
	if (!who)
		return clash_with_nobody(nft, there, port, e);
	return err_text(e, -EADDRINUSE, "host port %s is taken by %s. %s", port, who, way_out);
}
