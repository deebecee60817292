/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/portmap/hold.c - a host port on every address, or on some
 *
 * What:  the two have different keys, so that the kernel does not see that they
 *        overlap. Who has a port on some address is numbered, in "holder4", and
 *        so is who waits for one that another attachment of its container has.
 * How:   whoever adds a port says, in the same transaction, which others must be
 *        absent.
 *        Where attachments of one container share a port "upto4" has one more
 *        element, with a number that nobody gets: without it no DEL has to find
 *        out whose attachments the holders are, for which it would read all records.
 * Rules: the numbers are found again on DEL; the record does not have them. Where
 *        somebody has emptied "upto4", a holder still tells that numbers go on.
 */
#include <errno.h>

#include "base/err.h"
#include "base/str.h"
#include "plugins/portmap/portmap.h"

#define SHARED UINT32_MAX

static struct nft_elem number_elem(const char *set, const struct portmap_port *port,
				   const struct hw_prefix *pod, enum nft_mode mode, uint32_t number)
{
	struct nft_elem elem = nft_elem_for(set, &pod->ip, mode);

	nft_key_proto(&elem, port->proto);
	nft_key_port(&elem, port->host_port);
	nft_key_number(&elem, number);
	return elem;
}

struct number {
	bool given;	       /* "upto" has it */
	bool held;	       /* "holder" has it */
	struct nft_elem there; /* that holder */
};

/* Return: 1 when it is one of the numbers, 0 when they have ended */
static int look_at(const struct portmap_work *work, const struct portmap_port *port,
		   const struct hw_prefix *pod, uint32_t number, struct number *ret,
		   struct hw_err *e)
{
	struct nft_elem upto = number_elem("upto", port, pod, NFT_SHARED, number);
	struct nft_elem holder = number_elem("holder", port, pod, NFT_OWNED, number);

	int r = nft_get(work->nft, &upto, &ret->there, e);
	ret->given = r > 0;
	if (r >= 0)
		r = nft_get(work->nft, &holder, &ret->there, e);
	ret->held = r > 0;
	return r < 0 ? r : ret->given || ret->held;
}

static bool is_ours(const struct portmap_work *work, const struct number *number)
{
	return number->held && str_equal(number->there.owner, work->elems.owner);
}

static void put_shared(struct portmap_work *work, const struct portmap_port *port,
		       const struct hw_prefix *pod)
{
	nft_elems_add_once(&work->elems, number_elem("upto", port, pod, NFT_SHARED, SHARED));
}

/* Return: 1, or 0 when attachments of one container have never shared it */
static int is_shared(const struct portmap_work *work, const struct portmap_port *port,
		     const struct hw_prefix *pod, struct hw_err *e)
{
	struct nft_elem shared = number_elem("upto", port, pod, NFT_SHARED, SHARED), there;

	return nft_get(work->nft, &shared, &there, e);
}

/* For a port on every address: nobody else has it on some, and nobody begins to. */
static int guard_any(struct portmap_work *work, const struct portmap_port *port,
		     const struct hw_prefix *pod, struct hw_err *e)
{
	struct number there;
	uint32_t number = 0;
	int r;

	for (; (r = look_at(work, port, pod, number, &there, e)) > 0; number++)
		if (there.held && portmap_is_sibling(&work->siblings, there.there.owner))
			put_shared(work, port, pod);
		else
			nft_elems_add(&work->elems,
				      number_elem("holder", port, pod, NFT_ABSENT, number));
	if (r >= 0)
		nft_elems_add(&work->elems, number_elem("upto", port, pod, NFT_ABSENT, number));
	return r;
}

/* The first number that is free, or ours already */
static int take_number(struct portmap_work *work, const struct portmap_port *port,
		       const struct hw_prefix *pod, struct hw_err *e)
{
	for (uint32_t number = 0;; number++) {
		struct number there;

		int r = look_at(work, port, pod, number, &there, e);
		if (r < 0)
			return r;
		if (!there.given)
			nft_elems_add_once(&work->elems,
					   number_elem("upto", port, pod, NFT_SHARED, number));
		if (there.held && !is_ours(work, &there))
			continue;
		nft_elems_add_once(&work->elems,
				   number_elem("holder", port, pod, NFT_EXCLUSIVE, number));
		return 0;
	}
}

/* For a port on some address: nobody else has it on every one, and we are numbered. */
static int hold_some(struct portmap_work *work, const struct portmap_port *port,
		     const struct hw_prefix *pod, struct hw_err *e)
{
	struct portmap_port any = { .proto = port->proto, .host_port = port->host_port };

	int r = portmap_is_siblings(work, &any, pod, e);
	if (r < 0)
		return r;
	if (r == 0)
		nft_elems_add(&work->elems, portmap_port_elem("port", &any, pod, NFT_ABSENT));
	return take_number(work, port, pod, e);
}

/**
 * portmap_hold() - what must be there, and what must not, for the port to be ours
 */
int portmap_hold(struct portmap_work *work, const struct portmap_port *port,
		 const struct hw_prefix *pod, struct hw_err *e)
{
	int r = portmap_is_siblings(work, port, pod, e);

	if (r < 0)
		return r;
	if (r > 0) {
		put_shared(work, port, pod);
		return take_number(work, port, pod, e);
	}
	return port->host.family ? hold_some(work, port, pod, e) : guard_any(work, port, pod, e);
}

/**
 * portmap_find_numbers() - all numbers of a port: what is not ours is not deleted
 */
int portmap_find_numbers(struct portmap_work *work, const struct portmap_port *port,
			 const struct hw_prefix *pod, struct hw_err *e)
{
	struct number there;
	bool others = false;
	int r;

	for (uint32_t number = 0; (r = look_at(work, port, pod, number, &there, e)) > 0; number++)
		if (is_ours(work, &there))
			nft_elems_add_once(&work->elems,
					   number_elem("holder", port, pod, NFT_OWNED, number));
		else
			others |= there.held;
	if (r >= 0 && others)
		r = is_shared(work, port, pod, e);
	work->shared |= r > 0;
	return r;
}

/**
 * portmap_is_held() - have we a number, and is it found by those who look for it?
 *
 * Return: 1 or 0
 */
int portmap_is_held(const struct portmap_work *work, const struct portmap_port *port,
		    const struct hw_prefix *pod, struct hw_err *e)
{
	struct number there;
	int r;

	for (uint32_t number = 0; (r = look_at(work, port, pod, number, &there, e)) > 0; number++)
		if (!there.given || is_ours(work, &there))
			return there.given;
	return r;
}

/**
 * portmap_is_others() - has somebody a number who is neither we nor a sibling that we know?
 *
 * Return: 1 or 0
 */
int portmap_is_others(const struct portmap_work *work, const struct portmap_port *port,
		      const struct hw_prefix *pod, struct hw_err *e)
{
	struct number there;
	int r;

	for (uint32_t number = 0; (r = look_at(work, port, pod, number, &there, e)) > 0; number++)
		if (there.held && !is_ours(work, &there) &&
		    !portmap_is_sibling(&work->siblings, there.there.owner))
			return 1;
	return r;
}

/**
 * portmap_hold_check() - has the port a number, if it needs one?
 */
int portmap_hold_check(struct portmap_work *work, const struct portmap_port *port,
		       const struct hw_prefix *pod, struct hw_err *e)
{
	struct nft_elem first = number_elem("holder", port, pod, NFT_OWNED, 0);
	char text[NFT_ELEM_TEXT];
	int r = port->host.family ? 1 : portmap_is_siblings(work, port, pod, e);

	if (r <= 0)
		return r;
	r = portmap_is_held(work, port, pod, e);
	if (r != 0)
		return r < 0 ? r : 0;
	return err_text(
		e, -ENOENT,
		"nftables set %s lacks %s, or another number; hawser-plugin repair restores it",
		first.set, nft_elem_format(&first, text));
}
