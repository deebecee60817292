/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/portmap/share.c - several attachments of one container that publish the same port
 *
 * What:  a runtime asks for the same host ports on each network of a container.
 *        The first attachment has them; the others wait, with a number
 *        (hold.c), and on DEL the oldest of them gets them.
 * How:   an element in the way has its owner as a hash; the attachment records
 *        have the names behind it. They are read only when something is in the
 *        way, or a port is known to be shared.
 * Rules: a port changes hands in one transaction, so that nobody else gets it.
 *        lock.c keeps whoever waits from being deleted meanwhile.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/str.h"
#include "cni/lock.h"
#include "cni/plugin/record.h"
#include "plugins/portmap/portmap.h"

/* ---- who they are -------------------------------------------------------------------------------- */

/**
 * portmap_siblings_done() - free what is known of them
 */
void portmap_siblings_done(struct portmap_siblings *siblings)
{
	for (size_t i = 0; i < siblings->n; i++)
		portmap_made_done(&siblings->v[i].made);
	free(siblings->v);
	*siblings = (struct portmap_siblings){ 0 };
}

static int learn(void *ctx, const struct record *r, struct hw_err *e)
{
	struct portmap_work *work = ctx;
	struct portmap_siblings *siblings = &work->siblings;
	struct portmap_sibling sibling = { .started = r->started };

	nft_owner(r->network, r->container_id, r->ifname, sibling.owner);
	if (!str_equal(r->container_id, work->call->container_id) ||
	    str_equal(sibling.owner, work->elems.owner))
		return 0;
	if (r->made &&
	    hw_field_decode(portmap_made_fields, r->made, strlen(r->made), &sibling.made, e) < 0)
		return 0;
	siblings->v = mem_resize(siblings->v, siblings->n + 1, sizeof(*siblings->v));
	siblings->v[siblings->n++] = sibling;
	return 0;
}

static int compare(const void *a, const void *b)
{
	int64_t first = ((const struct portmap_sibling *)a)->started;
	int64_t second = ((const struct portmap_sibling *)b)->started;

	return first < second ? -1 : first > second;
}

/**
 * portmap_siblings_read() - the other attachments of this container, oldest first
 *
 * Return: 1; 0: there are none
 */
int portmap_siblings_read(struct portmap_work *work, struct hw_err *e)
{
	autofree char *state = lock_state_dir();
	struct errors unreadable = { 0 };

	portmap_siblings_done(&work->siblings);
	record_each_of(state, "portmap", learn, work, &unreadable);
	if (work->siblings.n)
		qsort(work->siblings.v, work->siblings.n, sizeof(*work->siblings.v), compare);
	int r = errors_end(&unreadable, e);
	return r < 0 ? r : work->siblings.n > 0;
}

/**
 * portmap_is_sibling() - does it belong to one of them, as far as they are known?
 */
bool portmap_is_sibling(const struct portmap_siblings *siblings, const char *owner)
{
	for (size_t i = 0; i < siblings->n; i++)
		if (str_equal(siblings->v[i].owner, owner))
			return true;
	return false;
}

/* ---- what they have ------------------------------------------------------------------------------ */

/**
 * portmap_find_way() - what leads the port somewhere: itself, or the same on every address
 *
 * Return: 1; 0: it leads nowhere
 */
int portmap_find_way(struct nft *nft, const struct portmap_port *port, const struct hw_prefix *pod,
		     struct nft_elem *ret_there, struct hw_err *e)
{
	struct portmap_port any = { .proto = port->proto, .host_port = port->host_port };
	struct nft_elem to = portmap_port_elem("port", port, pod, NFT_OWNED);

	int r = nft_get(nft, &to, ret_there, e);
	if (r != 0 || !port->host.family)
		return r;
	to = portmap_port_elem("port", &any, pod, NFT_OWNED);
	return nft_get(nft, &to, ret_there, e);
}

/**
 * portmap_is_siblings() - is the port one that a sibling has?
 *
 * Return: 1; 0, too, as long as no siblings are known
 */
int portmap_is_siblings(const struct portmap_work *work, const struct portmap_port *port,
			const struct hw_prefix *pod, struct hw_err *e)
{
	struct nft_elem there;

	if (!work->siblings.n)
		return 0;
	int r = portmap_find_way(work->nft, port, pod, &there, e);
	return r <= 0 ? r : portmap_is_sibling(&work->siblings, there.owner);
}

/* ---- giving -------------------------------------------------------------------------------------- */

struct gift {
	struct portmap_work to;	      /* first: whoever gets one gets the other */
	const char *from;	      /* the owner until now */
	const struct nft_elems *keep; /* what he keeps; NULL: nothing */
};

static int put_gift(struct portmap_work *to, const struct portmap_port *port,
		    const struct hw_prefix *pod, struct hw_err *e)
{
	const struct gift *gift = (const struct gift *)to;
	struct nft_elem there;

	int r = portmap_find_way(to->nft, port, pod, &there, e);
	if (r <= 0 || !str_equal(there.owner, gift->from) ||
	    (gift->keep && nft_elems_has(gift->keep, &there)))
		return r;
	r = portmap_is_held(to, port, pod, e);
	if (r > 0)
		portmap_put_way(to, port, pod, NFT_OWNED);
	return r;
}

static int add(struct portmap_work *to, struct hw_err *e)
{
	const struct nft_elems *elems = &to->elems;

	int r = portmap_chains_make(to->nft, to->made, e);
	return r < 0 ? r : nft_add(to->nft, elems->v, elems->n, elems->owner, NULL, e);
}

static int give(struct gift *gift, struct hw_err *e)
{
	struct portmap_work *to = &gift->to;

	int r = portmap_for_ports(to, put_gift, e);
	if (r < 0 || !to->elems.n)
		return r;
	r = add(to, e);
	if (r >= 0)
		portmap_forget_udp(to);
	return r;
}

/**
 * portmap_hand_over() - give our ports to siblings who wait for them
 * @keep: those that we keep; NULL: none
 */
int portmap_hand_over(struct portmap_work *work, const struct nft_elems *keep, struct hw_err *e)
{
	int r = portmap_siblings_read(work, e);

	for (size_t i = 0; r >= 0 && i < work->siblings.n; i++) {
		const struct portmap_sibling *sibling = &work->siblings.v[i];
		struct gift gift = { .to = { .nft = work->nft, .made = &sibling->made },
				     .from = work->elems.owner,
				     .keep = keep };

		memcpy(gift.to.elems.owner, sibling->owner, NFT_OWNER);
		r = give(&gift, e);
		nft_elems_done(&gift.to.elems);
	}
	return r;
}
