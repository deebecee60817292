/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/portmap/conflict.c - error message for a host port that is already in use
 *
 * What:  the message names the container that uses the port, and says how to free
 *        the port if that container no longer exists.
 * How:   the owner of an element is stored as a hash. The names are read from the
 *        record of the attachment that the port leads to. All records are read; the
 *        time does not matter because the ADD fails anyway.
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
	"port4",    "port6",	"anyport4", "anyport6", "cond4",    "cond6",
	"anycond4", "anycond6", "mark4",    "mark6",	"anymark4", "anymark6",
};

/* For example "8080/tcp". */
static void format_port(const struct nft_elem *elem, char buf[NFT_ELEM_TEXT])
{
	char text[NFT_ELEM_TEXT];

	nft_elem_format(elem, text);
	snprintf(buf, NFT_ELEM_TEXT, "%u/%.*s", portmap_key_port(elem), (int)strcspn(text, " "),
		 text);
}

struct owner_search {
	struct nft_elem elem;
	char *found; /* NULL: not found yet */
};

/* The owner is the container; of an element that 0.1.0 added, it is the attachment. */
static bool is_owner(const struct record *r, const char *owner)
{
	char container[NFT_OWNER], attachment[NFT_OWNER];

	nft_container_owner(r->container_id, container);
	nft_owner(r->network, r->container_id, r->ifname, attachment);
	return str_equal(owner, container) || str_equal(owner, attachment);
}

static int compare_record(void *ctx, const struct record *r, struct hw_err *e)
{
	AUTO(portmap_record_done) struct portmap_record record = { 0 };
	struct owner_search *search = ctx;

	if (search->found || !is_owner(r, search->elem.owner) || !r->created ||
	    hw_field_decode(portmap_record_fields, r->created, strlen(r->created), &record, e) < 0)
		return 0;
	if (!portmap_record_has(&record, &search->elem))
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
	    portmap_key_port(elem) != portmap_key_port(taken))
		return 0;
	key.data.len = 0;
	key.chain[0] = '\0';
	buf_printf(&commands->text, "%sdelete element inet hawser %s { %s }",
		   commands->text.len ? "; " : "", elem->set, nft_elem_format(&key, text));
	return 0;
}

/* Without a record, the message contains the commands that delete all elements of the owner for
 * this port. If a DEL has just removed the record, the element has changed, too. */
static int conflict_without_record(struct nft *nft, const struct nft_elem *elem, const char *port,
				   struct hw_err *e)
{
	struct delete_commands commands = { .elem = elem };
	struct nft_elem now;

	int r = nft_get(nft, elem, &now, e);
	if (r < 0)
		return r;
	if (r == 0 || !str_equal(now.owner, elem->owner) || !nft_elem_same_data(&now, elem))
		return err_text(e, -ERESTART, "the owner of host port %s has just changed", port);
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
	struct owner_search search = { .elem = *elem };
	struct errors ignored = { 0 };
	char port[NFT_ELEM_TEXT];

	record_each_of_plugin(state, "portmap", compare_record, &search, &ignored);
	autofree char *found = search.found;
	format_port(elem, port);
	if (!found)
		return conflict_without_record(nft, elem, port, e);
	return err_text(e, -EADDRINUSE, "host port %s is taken by %s", port, found);
}
