/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/portmap/rules.c - a pod's elements in the nftables maps of portmap
 *
 * What:  each port has an element with its target, one with its conditions, and one
 *        that selects the packets to masquerade (see ruleset.nft). They belong to
 *        the container and always change together, in one transaction. So if the
 *        target of a port is this pod, the other elements of the port are also of
 *        this attachment. The claim of the port (owner.c) also belongs to the
 *        container.
 *        Elements whose key is the pod's address belong to the attachment.
 * How:   ADD first assumes that none of its elements exists. If one does, and for
 *        DEL, CHECK and repair, the elements are read under the exclusive lock.
 * Rules: a port that leads to another attachment of the same container is not
 *        changed, except by a DEL of that attachment.
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/err.h"
#include "base/ip.h"
#include "base/log.h"
#include "base/str.h"
#include "net/conntrack.h"
#include "plugins/portmap/portmap.h"

static void batch_init(struct portmap_batch *batch, const struct hw_call *call,
		       const struct portmap_record *record)
{
	*batch = (struct portmap_batch){ .call = call, .record = record };
	nft_container_owner(call->container_id, batch->container);
	nft_owner(call->network, call->container_id, call->ifname, batch->elems.owner);
}

static void batch_done(struct portmap_batch *batch)
{
	nft_elems_done(&batch->elems);
	nft_elems_done(&batch->mine);
	nft_elems_done(&batch->transferred);
	nft_elems_done(&batch->singles);
	portmap_ports_done(&batch->seen);
	portmap_ports_done(&batch->dropped);
	portmap_ahead_done(&batch->ahead);
	portmap_attachments_done(&batch->others);
	nft_close(batch->nft);
}
AUTO_VALUE_DEFINE(batch_done, struct portmap_batch);

int portmap_for_each_port(const struct portmap_record *record, portmap_each_fn *each, void *ctx,
			  struct hw_err *e)
{
	const struct portmap_entry *entries = record->entries.v;
	struct hw_prefix pods[2];
	struct portmap_port port;
	size_t n = portmap_pod_addresses(record, pods);
	int r = 0;

	for (size_t p = 0; p < n; p++)
		for (size_t i = 0; r == 0 && i < record->entries.n; i++)
			if (portmap_entry_applies(&entries[i], &pods[p], &port))
				r = each(ctx, record, &port, &pods[p], e);
	return r;
}

/* ---- the pod's elements ---------------------------------------------------------------------- */

/* Creates an element without data whose key is the port.
 * @map: name of the map without "any" and family: "port" becomes port4 or port6, or for a port on
 *       every address anyport4 or anyport6 */
static struct nft_elem port_elem(const char *map, const struct portmap_port *port,
				 const struct hw_prefix *pod)
{
	char name[NFT_NAME];
	struct nft_elem elem;

	snprintf(name, sizeof(name), "%s%s", port->host.family ? "" : "any", map);
	elem = nft_elem_for(name, &pod->ip, NFT_OWNED);
	nft_key_proto(&elem, port->proto);
	if (port->host.family)
		nft_key_ip(&elem, &port->host);
	nft_key_port(&elem, port->host_port);
	return elem;
}

struct nft_elem portmap_target(const struct portmap_port *port, const struct hw_prefix *pod)
{
	struct nft_elem target = port_elem("port", port, pod);

	nft_data_ip(&target, &pod->ip);
	nft_data_port(&target, port->pod_port);
	return target;
}

uint16_t portmap_key_port(const struct nft_elem *elem)
{
	/* The port is the last field: two bytes in network byte order, and two bytes of padding. */
	const uint8_t *port = elem->key.v + elem->key.len - 4;

	return (uint16_t)(port[0] << 8 | port[1]);
}

static void put_owned(struct nft_elems *elems, struct nft_elem elem, const char *owner)
{
	memcpy(elem.owner, owner, NFT_OWNER);
	nft_elems_add(elems, elem);
}

/* Appends the elements that map a host port to the pod. */
static void put_mapping(struct nft_elems *elems, const struct portmap_record *record,
			const struct portmap_port *port, const struct hw_prefix *pod,
			const char *owner)
{
	const char *condition = pod->ip.family == AF_INET ? record->cond4 : record->cond6;
	char chain[PORTMAP_CHAIN];

	put_owned(elems, portmap_target(port, pod), owner);
	if (condition) {
		struct nft_elem cond = port_elem("cond", port, pod);

		portmap_condition_chain(condition, chain);
		nft_data_goto(&cond, chain);
		put_owned(elems, cond, owner);
	}
	if (record->snat) {
		struct nft_elem mark = port_elem("mark", port, pod);

		portmap_mark_chain(record, chain);
		nft_data_jump(&mark, chain);
		put_owned(elems, mark, owner);
	}
}

/* Appends the elements that identify packets from the pod's own network. If the network consists of
 * the pod's address alone, they identify packets from the pod itself. */
static void put_network(struct nft_elems *elems, const struct hw_prefix *pod)
{
	struct nft_elem self = nft_elem_for("self", &pod->ip, NFT_OWNED);
	struct nft_elem own = nft_elem_for("own", &pod->ip, NFT_SHARED);
	struct nft_elem near = nft_elem_for("near", &pod->ip, NFT_OWNED);

	if (pod->len == ip_bits(&pod->ip)) {
		nft_key_ip(&self, &pod->ip);
		nft_key_ip(&self, &pod->ip);
		nft_elems_add_once(elems, self);
		return;
	}
	nft_key_network(&own, pod);
	nft_key_network(&own, pod);
	nft_elems_add_once(elems, own);
	nft_key_ip(&near, &pod->ip);
	nft_data_network_chain(&near, NFT_HAIRPIN, pod);
	nft_elems_add_once(elems, near);
}

/* Appends the elements whose key is the pod's address. */
static void put_address(struct nft_elems *elems, const struct portmap_record *record,
			const struct portmap_port *port, const struct hw_prefix *pod)
{
	if (record->masq_all) {
		struct nft_elem all = nft_elem_for("snatall", &pod->ip, NFT_OWNED);

		nft_key_proto(&all, port->proto);
		nft_key_ip(&all, &pod->ip);
		nft_key_port(&all, port->pod_port);
		nft_elems_add_once(elems, all);
	}
	if (record->snat)
		put_network(elems, pod);
}

/* ---- ADD, CHECK and repair ------------------------------------------------------------------- */

/* Appends the elements of a port that no container has yet. */
static int put_new_port(void *ctx, const struct portmap_record *record,
			const struct portmap_port *port, const struct hw_prefix *pod,
			struct hw_err *e)
{
	struct portmap_batch *batch = ctx;

	(void)e;
	put_mapping(&batch->elems, record, port, pod, batch->container);
	if (portmap_ports_add(&batch->seen, port))
		put_owned(&batch->elems, portmap_claim(port), batch->container);
	put_address(&batch->elems, record, port, pod);
	return 0;
}

/* Does the container's port @there lead to another attachment, so that both share it? CHECK and
 * repair need not ask if it leads to this attachment. A first ADD does: the address may have been
 * that of another attachment, which still has a record. Repair takes a port back from a younger
 * attachment of the container.
 * Return: 1 if so, 0 if not */
static int is_shared(struct portmap_batch *batch, const struct nft_elem *target,
		     struct nft_elem *there, struct hw_err *e)
{
	int r;

	if (nft_elem_same_data(target, there) && (batch->is_check || batch->is_repair))
		return 0;
	r = portmap_attachments_read(batch, e);
	if (r < 0)
		return r;
	const struct portmap_attachment *other = portmap_attachments_find(&batch->others, there);
	return other && !(batch->is_repair && other->finished > batch->others.own_finished);
}

/* Does the claim of a port belong, or shall it belong, to this container alone? Repair corrects the
 * claim of a port that only one container has left, or that 0.1.0 added.
 * Return: 1 if so, 0 if not */
static int is_own_claim(struct portmap_batch *batch, const struct portmap_port *port,
			const char *owner, struct hw_err *e)
{
	struct nft_elem found;
	int r;

	if (str_equal(owner, batch->container) || !batch->is_repair)
		return str_equal(owner, batch->container);
	r = portmap_find_other(batch, port, 0, NULL, &found, e);
	return r < 0 ? r : !r;
}

/* Appends the claim of a port and, if another attachment of the container also needs it, the element
 * that makes DEL look for that attachment. @is_mapped: this attachment has the port already */
static int put_claim(struct portmap_batch *batch, const struct portmap_port *port, bool is_mapped,
		     struct hw_err *e)
{
	struct nft_elem claim = portmap_claim(port), there;
	int r;

	r = portmap_get(batch, &claim, &there, e);
	if (r < 0)
		return r;
	bool exists = r > 0;
	r = exists ? is_own_claim(batch, port, there.owner, e) : 1;
	if (r < 0)
		return r;
	if (portmap_ports_add(&batch->seen, port))
		put_owned(&batch->elems, claim, r ? batch->container : NFT_SEVERAL);
	if (!exists || r == 0 || (is_mapped && str_equal(there.owner, batch->container)))
		return 0;
	r = portmap_attachments_read(batch, e);
	if (r < 0)
		return r;
	if (portmap_ports_has(&batch->others.ports, port))
		nft_elems_add_once(&batch->elems, portmap_sharing_elem(batch->container));
	return 0;
}

/* Repair continues with the other ports. */
static int put_conflict(struct portmap_batch *batch, const struct nft_elem *there, struct hw_err *e)
{
	int r;

	r = portmap_conflict(batch->nft, there, e);
	if (!batch->is_repair || r != -EADDRINUSE)
		return r;
	if (!batch->conflicts.n)
		errors_add(&batch->conflicts, e);
	return 0;
}

static int put_port(void *ctx, const struct portmap_record *record, const struct portmap_port *port,
		    const struct hw_prefix *pod, struct hw_err *e)
{
	struct portmap_batch *batch = ctx;
	struct nft_elem target = portmap_target(port, pod), there;
	bool has_mapping, is_old = false, shared = false;
	int r;

	while ((r = portmap_get_port(batch, port, pod, &there, e)) == 2) {
		r = batch->is_repair ? portmap_take_over(batch, &there, e) : 0;
		if (r <= 0)
			return r < 0 ? r : put_conflict(batch, &there, e);
	}
	has_mapping = r == 1;
	if (has_mapping) {
		is_old = batch->is_check && !str_equal(there.owner, batch->container);
		r = is_shared(batch, &target, &there, e);
		shared = r > 0;
	}
	if (r < 0)
		return r;
	if (!shared)
		put_mapping(&batch->elems, record, port, pod,
			    is_old ? there.owner : batch->container);
	else if (!is_old)
		nft_elems_add_once(&batch->elems, portmap_sharing_elem(batch->container));
	put_address(&batch->elems, record, port, pod);
	return is_old ? 0 : put_claim(batch, port, has_mapping, e);
}

/* Appends the elements of all ports; the caller has the lock on the elements. */
static int put_all(struct portmap_batch *batch, struct hw_err *e)
{
	int r;

	batch->elems.n = 0;
	batch->conflicts = (struct errors){ 0 };
	portmap_ports_done(&batch->seen);
	r = portmap_read_ahead(batch, e);
	return r < 0 ? r : portmap_for_each_port(batch->record, put_port, batch, e);
}

/* ---- DEL ------------------------------------------------------------------------------------- */

/* Does the container's port @there lead to this attachment? */
static bool is_mine(const struct portmap_batch *batch, const struct nft_elem *target,
		    struct nft_elem *there)
{
	return batch->no_address ? !portmap_attachments_find(&batch->others, there)
				 : nft_elem_same_data(target, there);
}

static int put_mine(void *ctx, const struct portmap_record *record, const struct portmap_port *port,
		    const struct hw_prefix *pod, struct hw_err *e)
{
	struct portmap_batch *batch = ctx;
	struct nft_elem target = portmap_target(port, pod), there;
	int r;

	r = portmap_get_mapping(batch, port, pod, &there, e);
	if (r == 1 && is_mine(batch, &target, &there)) {
		put_mapping(&batch->mine, record, port, pod, there.owner);
		portmap_ports_add(&batch->dropped, port);
		/* 0.1.0 did not add the container to the set "sharing". */
		r = str_equal(there.owner, batch->container) ? 0
							     : portmap_attachments_read(batch, e);
	}
	if (r < 0)
		return r;
	put_address(&batch->mine, record, port, pod);
	return 0;
}

static int put_transferred(void *ctx, const struct portmap_record *record,
			   const struct portmap_port *port, const struct hw_prefix *pod,
			   struct hw_err *e)
{
	struct portmap_batch *batch = ctx;
	struct nft_elem target = portmap_target(port, pod);

	(void)e;
	if (nft_elems_has(&batch->mine, &target) && !nft_elems_has(&batch->transferred, &target))
		put_mapping(&batch->transferred, record, port, pod, batch->container);
	return 0;
}

/* Appends the ports that another attachment gets, and creates the chains that they need: the rules
 * may have been flushed since its ADD. */
static int transfer_ports(struct portmap_batch *batch, const struct portmap_attachment *to,
			  struct hw_err *e)
{
	size_t before = batch->transferred.n;
	int r;

	r = portmap_for_each_port(&to->record, put_transferred, batch, e);
	if (r < 0 || batch->transferred.n == before)
		return r;
	return portmap_chains_create(batch->nft, &to->record, e);
}

static void put_gone(struct nft_elems *elems, struct nft_elem elem)
{
	elem.mode = NFT_GONE;
	nft_elems_add(elems, elem);
}

/* Is the claim of a port still needed when this attachment is deleted? If the port does not lead to
 * this attachment, another one may have it even if the set "sharing" does not say so: this DEL may
 * undo an ADD that failed before.
 * Return: 1 if so, 0 if not */
static int is_claim_needed(struct portmap_batch *batch, const struct portmap_port *port,
			   const char *owner, struct hw_err *e)
{
	struct nft_elem found;
	int r = 0;

	if (str_equal(owner, NFT_SEVERAL))
		return portmap_ports_has(&batch->others.ports, port)
			       ? 1
			       : portmap_find_other(batch, port, 0, &batch->mine, &found, e);
	if (!str_equal(owner, batch->container))
		return 1;
	if (!portmap_ports_has(&batch->dropped, port))
		r = portmap_attachments_read(batch, e);
	return r < 0 ? r : portmap_ports_has(&batch->others.ports, port);
}

static int put_unclaimed(void *ctx, const struct portmap_record *record,
			 const struct portmap_port *port, const struct hw_prefix *pod,
			 struct hw_err *e)
{
	struct portmap_batch *batch = ctx;
	struct nft_elem claim = portmap_claim(port);
	int r;

	(void)record;
	(void)pod;
	if (!portmap_ports_add(&batch->seen, port))
		return 0;
	r = portmap_get(batch, &claim, &claim, e);
	if (r <= 0)
		return r;
	r = is_claim_needed(batch, port, claim.owner, e);
	if (r == 0)
		put_gone(&batch->elems, claim);
	return r < 0 ? r : 0;
}

static int put_deletions(struct portmap_batch *batch, struct hw_err *e)
{
	struct nft_elem sharing = portmap_sharing_elem(batch->container), found;
	const struct portmap_attachments *others = &batch->others;
	int r;

	r = portmap_read_ahead(batch, e);
	if (r >= 0)
		r = portmap_get(batch, &sharing, &found, e);
	if (r > 0 || (r == 0 && batch->no_address))
		r = portmap_attachments_read(batch, e);
	if (r >= 0)
		r = portmap_for_each_port(batch->record, put_mine, batch, e);
	for (size_t i = 0; r >= 0 && i < others->n; i++)
		if (others->v[i].alive)
			r = transfer_ports(batch, &others->v[i], e);
	if (r < 0)
		return r;
	for (size_t i = 0; i < batch->mine.n; i++)
		if (batch->mine.v[i].mode != NFT_SHARED &&
		    !nft_elems_has(&batch->transferred, &batch->mine.v[i]))
			put_gone(&batch->elems, batch->mine.v[i]);
	for (size_t i = 0; i < batch->transferred.n; i++)
		nft_elems_add(&batch->elems, batch->transferred.v[i]);
	if (others->read && others->n < 2)
		put_gone(&batch->elems, sharing);
	batch->ahead.next = 0;
	return portmap_for_each_port(batch->record, put_unclaimed, batch, e);
}

/* ---- UDP ------------------------------------------------------------------------------------- */

/* A UDP flow has no end: as long as packets arrive, conntrack would use the old target. The entries
 * are kept if the port leads elsewhere, unless this DEL has transferred it. An error is only
 * logged: the entries expire when no packets arrive for some time. */
static int flush_udp_port(void *ctx, const struct portmap_record *record,
			  const struct portmap_port *port, const struct hw_prefix *pod,
			  struct hw_err *e)
{
	struct portmap_batch *batch = ctx;
	struct conntrack_tuple tuple = { .family = pod->ip.family,
					 .proto = IPPROTO_UDP,
					 .dst = port->host,
					 .dport = port->host_port };
	struct nft_elem target = portmap_target(port, pod), there;
	int r;

	(void)record;
	if (port->proto != IPPROTO_UDP)
		return 0;
	r = portmap_get_port(batch, port, pod, &there, e);
	if (r == 1)
		r = !nft_elem_same_data(&target, &there) &&
		    !nft_elems_has(&batch->transferred, &target);
	if (r == 0)
		r = conntrack_flush(nft_socket(batch->nft), &tuple, e);
	if (r < 0)
		log_warn("portmap: flush conntrack entries of UDP port %u: %s", port->host_port,
			 e->msg);
	return 0;
}

static int is_udp_port(void *ctx, const struct portmap_record *record,
		       const struct portmap_port *port, const struct hw_prefix *pod,
		       struct hw_err *e)
{
	(void)ctx;
	(void)record;
	(void)pod;
	(void)e;
	return port->proto == IPPROTO_UDP;
}

static void flush_udp(struct portmap_batch *batch)
{
	struct hw_err ignored;

	if (portmap_for_each_port(batch->record, is_udp_port, NULL, &ignored) > 0 &&
	    portmap_read_ahead(batch, &ignored) >= 0)
		(void)portmap_for_each_port(batch->record, flush_udp_port, batch, &ignored);
}

/* ---- used by the verbs ----------------------------------------------------------------------- */

static int write_rules(struct portmap_batch *batch, struct hw_err *e)
{
	autoclose int lock = -1;
	int r;

	r = portmap_lock_elements(&lock, e);
	if (r >= 0)
		r = portmap_for_each_port(batch->record, put_new_port, batch, e);
	if (r >= 0)
		r = nft_add_new(batch->nft, &batch->elems, e);
	if (r != -EEXIST)
		return r;
	r = put_all(batch, e);
	if (r >= 0 && batch->elems.n) /* repair: none if other containers keep all ports */
		r = nft_change(batch->nft, &batch->elems, e);
	return r;
}

static int add_rules(struct portmap_batch *batch, struct hw_err *e)
{
	int r;

	if (!batch->record->entries.n)
		return 0;
	r = nft_open(&batch->nft, e);
	/* Create the chains even if all ports are shared: CHECK expects them, and invalid
	 * conditions must make this ADD fail, not a later transfer. */
	if (r >= 0)
		r = portmap_chains_create(batch->nft, batch->record, e);
	if (r >= 0)
		r = write_rules(batch, e);
	if (r >= 0)
		flush_udp(batch);
	return r;
}

int portmap_rules_add(const struct hw_call *call, struct hw_err *e)
{
	AUTO(batch_done) struct portmap_batch batch;

	batch_init(&batch, call, call->created);
	return add_rules(&batch, e);
}

int portmap_rules_repair(const struct hw_call *call, struct hw_err *e)
{
	AUTO(batch_done) struct portmap_batch batch;
	int r;

	batch_init(&batch, call, call->created);
	batch.is_repair = true;
	r = add_rules(&batch, e);
	return r < 0 ? r : errors_result(&batch.conflicts, e);
}

static int delete_mine(struct portmap_batch *batch, struct hw_err *e)
{
	autoclose int lock = -1;
	int r;

	r = portmap_lock_elements(&lock, e);
	if (r >= 0)
		r = put_deletions(batch, e);
	return r < 0 || !batch->elems.n ? r : nft_change(batch->nft, &batch->elems, e);
}

int portmap_rules_del(const struct hw_call *call, const struct portmap_record *record,
		      struct hw_err *e)
{
	AUTO(batch_done) struct portmap_batch batch;
	int r;

	batch_init(&batch, call, record);
	batch.no_address = !call->recorded && !call->prev;
	if (!record->entries.n)
		return 0;
	r = nft_open(&batch.nft, e);
	if (r < 0)
		return r;
	r = delete_mine(&batch, e);
	if (r < 0)
		return nft_is_unsupported(batch.nft) ? 0 : r;
	flush_udp(&batch);
	return 0;
}

int portmap_rules_sweep(const struct hw_call *call, struct hw_err *e)
{
	int r;

	static const char *const sets[] = { "snatall4", "snatall6", "near4",
					    "near6",	"self4",    "self6" };
	AUTO(nft_close) struct nft *nft = NULL;
	char owner[NFT_OWNER];

	nft_owner(call->network, call->container_id, call->ifname, owner);
	r = nft_open(&nft, e);
	for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(sets); i++)
		r = nft_del_owned(nft, NFT_INET, sets[i], owner, e);
	return r;
}

int portmap_rules_check(const struct hw_call *call, const struct portmap_record *record,
			struct hw_err *e)
{
	AUTO(batch_done) struct portmap_batch batch;
	const struct nft_elems *elems = &batch.elems;
	autoclose int lock = -1;
	int r;

	batch_init(&batch, call, record);
	batch.is_check = true;
	if (!record->entries.n)
		return 0;
	r = nft_open(&batch.nft, e);
	if (r >= 0)
		r = portmap_lock_elements(&lock, e);
	if (r >= 0)
		r = put_all(&batch, e);
	if (r >= 0)
		r = nft_check(batch.nft, elems->v, elems->n, elems->owner, e);
	return r < 0 ? r : portmap_chains_check(batch.nft, record, e);
}
