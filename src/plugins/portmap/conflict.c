/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/portmap/conflict.c - error message for a host port that is already in use
 *
 * What:  the message names the container that uses the port, and says how to free
 *        the port if that container no longer exists.
 * How:   the owner of an element is stored as a hash of the attachment's names; the
 *        names themselves are read from the attachment records. All records are
 *        read; the time does not matter because the ADD fails anyway.
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

/* All sets in which each element belongs to one host port */
static const char *const sets[] = {
	"port4",    "port6", "anyport4", "anyport6", "cond4",	 "cond6",   "anycond4",
	"anycond6", "mark4", "mark6",	 "anymark4", "anymark6", "holder4", "holder6",
};

/* Finds the port in a key. A key consists of protocol, address (in some sets), port, and number (in
 * some sets). */
static const uint8_t *key_port(const struct nft_elem *elem)
{
	bool no_address = str_starts(elem->set, "any") || str_starts(elem->set, "holder") ||
			  str_starts(elem->set, "upto");

	return elem->key.v + 4 + (no_address ? 0 : str_ends(elem->set, "6") ? 16 : 4);
}

/* For example "8080/tcp". */
static void format_port(const struct nft_elem *elem, char buf[NFT_ELEM_TEXT])
{
	const uint8_t *port = key_port(elem);
	char text[NFT_ELEM_TEXT];

	nft_elem_format(elem, text);
	snprintf(buf, NFT_ELEM_TEXT, "%u/%.*s", (unsigned)port[0] << 8 | port[1],
		 (int)strcspn(text, " "), text);
}

struct owner_search {
	const char *owner;
	char *found; /* NULL: not found yet */
};

static int compare_owner(void *ctx, const struct record *r, struct hw_err *e)
{
	struct owner_search *search = ctx;
	char owner[NFT_OWNER];

	(void)e;
	nft_owner(r->network, r->container_id, r->ifname, owner);
	if (search->found || !str_equal(owner, search->owner))
		return 0;
	search->found = str_printf(
		"container %s, interface %s, network %s%s; if that container no longer exists, DEL "
		"with CNI_CONTAINERID=%s CNI_IFNAME=%s, or GC, on network %s frees the port",
		r->container_id, r->ifname, r->network,
		access(str_or(r->netns, ""), F_OK) < 0 ? " (its network namespace no longer exists)"
						       : "",
		r->container_id, r->ifname, r->network);
	return 0;
}

struct delete_commands {
	const struct nft_elem *elem;
	struct buf text;
};

static int put_command(void *ctx, const struct nft_elem *elem, struct hw_err *e)
{
	struct delete_commands *commands = ctx;
	const struct nft_elem *taken = commands->elem;
	struct nft_elem key = *elem;
	char text[NFT_ELEM_TEXT];

	(void)e;
	if (!str_equal(elem->owner, taken->owner) || elem->key.v[0] != taken->key.v[0] ||
	    memcmp(key_port(elem), key_port(taken), sizeof(uint16_t)) != 0)
		return 0;
	key.data.len = 0;
	key.chain[0] = '\0';
	buf_printf(&commands->text, "%sdelete element inet hawser %s { %s }",
		   commands->text.len ? "; " : "", elem->set, nft_elem_format(&key, text));
	return 0;
}

/* Without a record, the message contains the commands that delete all elements of the owner for
 * this port. */
static int conflict_without_record(struct nft *nft, const struct nft_elem *elem, const char *port,
				   struct hw_err *e)
{
	struct delete_commands commands = { .elem = elem };
	int r = 0;

	for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(sets); i++)
		r = nft_list(nft, elem->table, sets[i], put_command, &commands, e);
	AUTO(buf_done) struct buf text = commands.text;
	if (r < 0)
		return r;
	return err_text(e, -EADDRINUSE,
			"host port %s is taken by an attachment whose record is missing; if its "
			"container no longer exists, this frees the port: nft '%s'",
			port, str_or(text.data, ""));
}

int portmap_conflict(struct nft *nft, const struct nft_elem *elem, struct hw_err *e)
{
	autofree char *state = state_dir_default();
	struct owner_search search = { .owner = elem->owner };
	struct errors ignored = { 0 };
	char port[NFT_ELEM_TEXT];

	record_each_of_plugin(state, "portmap", compare_owner, &search, &ignored);
	autofree char *found = search.found;
	format_port(elem, port);
	if (!found)
		return conflict_without_record(nft, elem, port, e);
	return err_text(e, -EADDRINUSE, "host port %s is taken by %s", port, found);
}
