/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/portmap/owner.c - a host port on every address, or on some
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
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/errors.h"
#include "base/hash.h"
#include "base/os/file.h"
#include "base/str.h"
#include "base/time.h"
#include "cni/lock.h"
#include "cni/plugin/record.h"
#include "plugins/portmap/portmap.h"

#define LOCKS  64
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

/*
 * plugins/portmap/lock.c - one change at a time to the ports of a container
 *
 * What:  attachments of one container share host ports (share.c). They are
 *        of different networks, and the locks of networks do not keep them apart.
 * How:   flock() of one of 64 files, chosen by a hash of the container's id; it ends
 *        with the process that holds it.
 *        One more, for chains, is for all containers, and taken only where one
 *        has to be made.
 * Rules: the innermost locks, the one for chains last. The files stay: removing one
 *        that somebody waits for would split the lock in two.
 */
static int lock(const char *name, const char *what, int *ret_fd, struct hw_err *e)
{
	autofree char *state = lock_state_dir();
	autofree char *path = str_printf("%s/locks/portmap-%s", state, name);

	int r = file_lock(AT_FDCWD, path, true, time_deadline(LOCK_TIMEOUT_MS), ret_fd, e);
	if (r == -ETIMEDOUT)
		return err_cni(e, HW_CNI_TRY_AGAIN,
			       "%s are busy: gave up waiting for another ADD or DEL to end", what);
	return r < 0 ? err_ctx(e, "lock %s", what) : 0;
}

/**
 * portmap_lock() - keep other attachments of this container from changing their ports
 * @ret_fd: the lock; closing it, or dying, releases it
 *
 * Return: 0, or a negative errno; CNI code 11 when others do not end
 */
int portmap_lock(const struct hw_call *call, int *ret_fd, struct hw_err *e)
{
	autofree char *what = str_printf("the host ports of container %s", call->container_id);
	char hash[9], name[16];

	hash_hex(call->container_id, sizeof(hash) - 1, hash);
	snprintf(name, sizeof(name), "container-%02lu", strtoul(hash, NULL, 16) % LOCKS);
	return lock(name, what, ret_fd, e);
}

/**
 * portmap_lock_chains() - keep everybody else from making chains
 */
int portmap_lock_chains(int *ret_fd, struct hw_err *e)
{
	return lock("chains", "nftables chains for host ports", ret_fd, e);
}
