/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/portmap/owner.c - ownership of host ports
 *
 * What:  on each address of the host, a port belongs to one container. A port is
 *        mapped either on one address or on every address. The two cases have
 *        different keys in nftables, so the kernel does not detect an overlap
 *        between them; claims (below) detect it.
 *        Runtimes request the same host ports on each network of a container. The
 *        first attachment owns the port; later attachments of the same container
 *        wait for it. A DEL of the owner transfers the port to the attachment that
 *        has waited longest.
 * How:   an attachment that maps a port on one address, or that waits for a port,
 *        has a claim: an element (protocol, port, number) in the set holder4 or
 *        holder6. Numbers start at 0. Each number that was ever used is also in the
 *        set upto4 or upto6, without an owner. The list of claims ends at the first
 *        number that is in neither set. The transaction of an ADD also lists the
 *        elements that must not exist, and fails if one of them exists.
 *        If the set upto4 or upto6 contains the number SHARED for a port,
 *        attachments of one container have shared this port. Otherwise DEL need not
 *        look for attachments that wait, for which it would read all records.
 *        The owner of an element is stored as a hash of the attachment's names; the
 *        names themselves are read from the attachment records, but only if an ADD
 *        finds an existing element, or if a port is shared.
 * Rules: a port is transferred in one transaction, so that no other container can
 *        get it. While it is transferred, the lock on the container's ports prevents
 *        the deletion of an attachment that waits. The lock on a network would not
 *        be enough, because the attachments of a container are on different
 *        networks.
 *        Numbers are not part of the record: DEL looks them up. If upto4 or upto6
 *        was flushed, the list of claims continues as long as the elements in
 *        holder4 or holder6 have consecutive numbers.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/hash.h"
#include "base/os/file.h"
#include "base/str.h"
#include "base/time.h"
#include "cni/lock.h"
#include "cni/plugin/record.h"
#include "plugins/portmap/portmap.h"

#define LOCKS  64
#define SHARED UINT32_MAX /* special number in upto4 and upto6; never the number of a claim */

/* ---- locks ----------------------------------------------------------------------------------- */

/* No other lock is acquired while one of these is held, except as documented in portmap.h. Lock
 * files are never deleted: a process that waits on a deleted file would not exclude a process that
 * creates the file again. */
static int acquire_lock(const char *name, const char *what, int *ret_fd, struct hw_err *e)
{
	autofree char *state = state_dir_default();
	autofree char *path = str_printf("%s/locks/portmap-%s", state, name);

	int r = file_lock(AT_FDCWD, path, true, time_deadline(LOCK_TIMEOUT_MS), ret_fd, e);
	if (r == -ETIMEDOUT)
		return err_cni(
			e, HW_CNI_TRY_AGAIN,
			"timed out waiting for the lock on %s: another ADD or DEL is running",
			what);
	return r < 0 ? err_ctx(e, "lock %s", what) : 0;
}

/* All containers together use 64 lock files; a hash of the container ID selects one. */
int portmap_lock(const struct hw_call *call, int *ret_fd, struct hw_err *e)
{
	autofree char *what = str_printf("the host ports of container %s", call->container_id);
	char hash[9], name[16];

	hash_hex(call->container_id, sizeof(hash) - 1, hash);
	snprintf(name, sizeof(name), "container-%02lu", strtoul(hash, NULL, 16) % LOCKS);
	return acquire_lock(name, what, ret_fd, e);
}

int portmap_lock_chains(int *ret_fd, struct hw_err *e)
{
	return acquire_lock("chains", "nftables chains for host ports", ret_fd, e);
}

/* ---- other attachments of the same container ------------------------------------------------- */

void portmap_attachments_done(struct portmap_attachments *attachments)
{
	for (size_t i = 0; i < attachments->n; i++)
		portmap_record_done(&attachments->v[i].record);
	free(attachments->v);
	*attachments = (struct portmap_attachments){ 0 };
}

static int append_attachment(void *ctx, const struct record *r, struct hw_err *e)
{
	struct portmap_batch *batch = ctx;
	struct portmap_attachments *others = &batch->others;
	struct portmap_attachment other = { .started = r->started };

	nft_owner(r->network, r->container_id, r->ifname, other.owner);
	if (!str_equal(r->container_id, batch->call->container_id) ||
	    str_equal(other.owner, batch->elems.owner))
		return 0;
	if (r->created && hw_field_decode(portmap_record_fields, r->created, strlen(r->created),
					  &other.record, e) < 0)
		return 0;
	others->v = mem_resize(others->v, others->n + 1, sizeof(*others->v));
	others->v[others->n++] = other;
	return 0;
}

static int compare_started(const void *a, const void *b)
{
	int64_t first = ((const struct portmap_attachment *)a)->started;
	int64_t second = ((const struct portmap_attachment *)b)->started;

	return first < second ? -1 : first > second;
}

int portmap_attachments_read(struct portmap_batch *batch, struct hw_err *e)
{
	struct portmap_attachments *others = &batch->others;
	autofree char *state = state_dir_default();
	struct errors unreadable = { 0 };

	portmap_attachments_done(others);
	record_each_of_plugin(state, "portmap", append_attachment, batch, &unreadable);
	if (others->n)
		qsort(others->v, others->n, sizeof(*others->v), compare_started);
	int r = errors_result(&unreadable, e);
	return r < 0 ? r : others->n > 0;
}

bool portmap_attachments_has(const struct portmap_attachments *attachments, const char *owner)
{
	for (size_t i = 0; i < attachments->n; i++)
		if (str_equal(attachments->v[i].owner, owner))
			return true;
	return false;
}

/* ---- mappings -------------------------------------------------------------------------------- */

int portmap_find_mapping(struct nft *nft, const struct portmap_port *port,
			 const struct hw_prefix *pod, struct nft_elem *ret_elem, struct hw_err *e)
{
	struct portmap_port any = { .proto = port->proto, .host_port = port->host_port };
	struct nft_elem elem = portmap_port_elem("port", port, pod, NFT_OWNED);

	int r = nft_get(nft, &elem, ret_elem, e);
	if (r != 0 || !port->host.family)
		return r;
	elem = portmap_port_elem("port", &any, pod, NFT_OWNED);
	return nft_get(nft, &elem, ret_elem, e);
}

int portmap_is_owned_by_container(const struct portmap_batch *batch,
				  const struct portmap_port *port, const struct hw_prefix *pod,
				  struct hw_err *e)
{
	struct nft_elem mapping;

	if (!batch->others.n)
		return 0;
	int r = portmap_find_mapping(batch->nft, port, pod, &mapping, e);
	return r <= 0 ? r : portmap_attachments_has(&batch->others, mapping.owner);
}

/* ---- claims ---------------------------------------------------------------------------------- */

/* @set: "holder" or "upto" */
static struct nft_elem number_elem(const char *set, const struct portmap_port *port,
				   const struct hw_prefix *pod, enum nft_mode mode, uint32_t number)
{
	struct nft_elem elem = nft_elem_for(set, &pod->ip, mode);

	nft_key_proto(&elem, port->proto);
	nft_key_port(&elem, port->host_port);
	nft_key_number(&elem, number);
	return elem;
}

struct claim {
	bool listed;	      /* the number is in "upto" */
	bool held;	      /* the number is in "holder" */
	struct nft_elem elem; /* in "holder", if held */
};

/* Return: 1 if the number is part of the list of claims, 0 if the list ends before it */
static int get_claim(const struct portmap_batch *batch, const struct portmap_port *port,
		     const struct hw_prefix *pod, uint32_t number, struct claim *ret_claim,
		     struct hw_err *e)
{
	struct nft_elem upto = number_elem("upto", port, pod, NFT_SHARED, number);
	struct nft_elem holder = number_elem("holder", port, pod, NFT_OWNED, number);

	int r = nft_get(batch->nft, &upto, &ret_claim->elem, e);
	ret_claim->listed = r > 0;
	if (r >= 0)
		r = nft_get(batch->nft, &holder, &ret_claim->elem, e);
	ret_claim->held = r > 0;
	return r < 0 ? r : ret_claim->listed || ret_claim->held;
}

static bool is_own_claim(const struct portmap_batch *batch, const struct claim *claim)
{
	return claim->held && str_equal(claim->elem.owner, batch->elems.owner);
}

static void put_shared_mark(struct portmap_batch *batch, const struct portmap_port *port,
			    const struct hw_prefix *pod)
{
	nft_elems_add_once(&batch->elems, number_elem("upto", port, pod, NFT_SHARED, SHARED));
}

/* For a port on every address: appends elements that make the transaction fail if another container
 * has a claim, or gets one before the transaction. */
static int put_no_claims(struct portmap_batch *batch, const struct portmap_port *port,
			 const struct hw_prefix *pod, struct hw_err *e)
{
	struct claim claim;
	uint32_t number = 0;
	int r;

	for (; (r = get_claim(batch, port, pod, number, &claim, e)) > 0; number++)
		if (claim.held && portmap_attachments_has(&batch->others, claim.elem.owner))
			put_shared_mark(batch, port, pod);
		else
			nft_elems_add(&batch->elems,
				      number_elem("holder", port, pod, NFT_ABSENT, number));
	if (r >= 0)
		nft_elems_add(&batch->elems, number_elem("upto", port, pod, NFT_ABSENT, number));
	return r;
}

/* Appends a claim with the first number that is free or already belongs to this attachment. */
static int put_own_claim(struct portmap_batch *batch, const struct portmap_port *port,
			 const struct hw_prefix *pod, struct hw_err *e)
{
	for (uint32_t number = 0;; number++) {
		struct claim claim;

		int r = get_claim(batch, port, pod, number, &claim, e);
		if (r < 0)
			return r;
		if (!claim.listed)
			nft_elems_add_once(&batch->elems,
					   number_elem("upto", port, pod, NFT_SHARED, number));
		if (claim.held && !is_own_claim(batch, &claim))
			continue;
		nft_elems_add_once(&batch->elems,
				   number_elem("holder", port, pod, NFT_EXCLUSIVE, number));
		return 0;
	}
}

int portmap_put_claim(struct portmap_batch *batch, const struct portmap_port *port,
		      const struct hw_prefix *pod, struct hw_err *e)
{
	struct portmap_port any = { .proto = port->proto, .host_port = port->host_port };

	int r = portmap_is_owned_by_container(batch, port, pod, e);
	if (r < 0)
		return r;
	if (r > 0) { /* wait for the port */
		put_shared_mark(batch, port, pod);
		return put_own_claim(batch, port, pod, e);
	}
	if (!port->host.family)
		return put_no_claims(batch, port, pod, e);
	/* The port is on one address: no other container may have it on every address. */
	r = portmap_is_owned_by_container(batch, &any, pod, e);
	if (r < 0)
		return r;
	if (r == 0)
		nft_elems_add(&batch->elems, portmap_port_elem("port", &any, pod, NFT_ABSENT));
	return put_own_claim(batch, port, pod, e);
}

int portmap_find_claims(struct portmap_batch *batch, const struct portmap_port *port,
			const struct hw_prefix *pod, struct hw_err *e)
{
	struct nft_elem mark = number_elem("upto", port, pod, NFT_SHARED, SHARED), found;
	struct claim claim;
	bool others = false;
	int r;

	for (uint32_t number = 0; (r = get_claim(batch, port, pod, number, &claim, e)) > 0;
	     number++)
		if (is_own_claim(batch, &claim))
			nft_elems_add_once(&batch->elems,
					   number_elem("holder", port, pod, NFT_OWNED, number));
		else
			others |= claim.held;
	if (r >= 0 && others)
		r = nft_get(batch->nft, &mark, &found, e);
	batch->shared |= r > 0;
	return r;
}

/* Does this attachment have a claim in the list, with its own number and all lower ones in "upto"?
 * Return: 1 if so, 0 if not, or a negative errno */
static int has_listed_claim(const struct portmap_batch *batch, const struct portmap_port *port,
			    const struct hw_prefix *pod, struct hw_err *e)
{
	struct claim claim;
	int r;

	for (uint32_t number = 0; (r = get_claim(batch, port, pod, number, &claim, e)) > 0;
	     number++)
		if (!claim.listed || is_own_claim(batch, &claim))
			return claim.listed;
	return r;
}

int portmap_check_claim(struct portmap_batch *batch, const struct portmap_port *port,
			const struct hw_prefix *pod, struct hw_err *e)
{
	struct nft_elem first = number_elem("holder", port, pod, NFT_OWNED, 0);
	char text[NFT_ELEM_TEXT];
	int r = port->host.family ? 1 : portmap_is_owned_by_container(batch, port, pod, e);

	if (r <= 0)
		return r;
	r = has_listed_claim(batch, port, pod, e);
	if (r != 0)
		return r < 0 ? r : 0;
	return err_text(e, -ENOENT,
			"nftables set %s lacks %s (the last number may differ); "
			"hawser-plugin repair restores it",
			first.set, nft_elem_format(&first, text));
}

int portmap_is_claimed_by_others(const struct portmap_batch *batch, const struct portmap_port *port,
				 const struct hw_prefix *pod, struct hw_err *e)
{
	struct claim claim;
	int r;

	for (uint32_t number = 0; (r = get_claim(batch, port, pod, number, &claim, e)) > 0;
	     number++)
		if (claim.held && !is_own_claim(batch, &claim) &&
		    !portmap_attachments_has(&batch->others, claim.elem.owner))
			return 1;
	return r;
}

/* ---- transfer -------------------------------------------------------------------------------- */

struct transfer {
	struct portmap_batch to;      /* must be first: put_transferred() casts it */
	const char *from;	      /* the present owner */
	const struct nft_elems *keep; /* elements that are not transferred; NULL: transfer all */
};

static int put_transferred(struct portmap_batch *to, const struct portmap_port *port,
			   const struct hw_prefix *pod, struct hw_err *e)
{
	const struct transfer *transfer = (const struct transfer *)to;
	struct nft_elem mapping;

	int r = portmap_find_mapping(to->nft, port, pod, &mapping, e);
	if (r <= 0 || !str_equal(mapping.owner, transfer->from) ||
	    (transfer->keep && nft_elems_has(transfer->keep, &mapping)))
		return r;
	r = has_listed_claim(to, port, pod, e);
	if (r > 0)
		portmap_put_mapping(to, port, pod, NFT_OWNED);
	return r;
}

static int transfer_to(struct transfer *transfer, struct hw_err *e)
{
	struct portmap_batch *to = &transfer->to;

	int r = portmap_for_each_port(to, put_transferred, e);
	if (r < 0 || !to->elems.n)
		return r;
	r = portmap_chains_create(to->nft, to->record, e);
	if (r >= 0)
		r = nft_add(to->nft, to->elems.v, to->elems.n, to->elems.owner, NULL, e);
	if (r >= 0)
		portmap_flush_udp(to);
	return r;
}

int portmap_transfer_ports(struct portmap_batch *batch, const struct nft_elems *keep,
			   struct hw_err *e)
{
	int r = portmap_attachments_read(batch, e);

	for (size_t i = 0; r >= 0 && i < batch->others.n; i++) {
		const struct portmap_attachment *other = &batch->others.v[i];
		struct transfer transfer = { .to = { .nft = batch->nft, .record = &other->record },
					     .from = batch->elems.owner,
					     .keep = keep };

		memcpy(transfer.to.elems.owner, other->owner, NFT_OWNER);
		r = transfer_to(&transfer, e);
		nft_elems_done(&transfer.to.elems);
	}
	return r;
}
