/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/portmap-clash.c - a host port that somebody else has: who, and what can be done
 *
 * How:   the element in the way has its owner as a hash; the attachment records
 *        have the names behind it. They are read only here, where all is lost.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/errors.h"
#include "base/str.h"
#include "cni/lock.h"
#include "cni/record.h"
#include "plugins/portmap.h"

/* "8080/tcp": the key is protocol, perhaps an address, port, perhaps a number. */
static void format_port(const struct nft_elem *there, char buf[NFT_ELEM_TEXT])
{
	bool v6 = str_ends(there->set, "6"), addressed = str_starts(there->set, "port");
	const uint8_t *port = there->key.v + 4 + (addressed ? (v6 ? 16 : 4) : 0);
	char text[NFT_ELEM_TEXT];

	nft_elem_format(there, text);
	snprintf(buf, NFT_ELEM_TEXT, "%u/%.*s", (unsigned)port[0] << 8 | port[1],
		 (int)strcspn(text, " "), text);
}

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

/**
 * portmap_clash() - say who has the port
 * @there: the element that was in the way
 *
 * Return: -EADDRINUSE
 */
int portmap_clash(const struct nft_elem *there, struct hw_err *e)
{
	autofree char *state = lock_state_dir();
	struct search search = { .owner = there->owner };
	struct errors unreadable = { 0 };
	char port[NFT_ELEM_TEXT], element[NFT_ELEM_TEXT];

	record_each_of(state, "portmap", look, &search, &unreadable);
	autofree char *who = search.who, *way_out = search.way_out;
	format_port(there, port);
	nft_elem_format(there, element);
	element[strcspn(element, ":") - (strchr(element, ':') ? 1 : 0)] = '\0';
	if (!who)
		return err_text(e, -EADDRINUSE,
				"host port %s is taken by somebody whose record is lost. If it is "
				"dead: nft delete element inet hawser %s { %s } frees the port",
				port, there->set, element);
	return err_text(e, -EADDRINUSE, "host port %s is taken by %s. %s", port, who, way_out);
}
