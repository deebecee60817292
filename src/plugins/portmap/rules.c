/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/portmap/rules.c - a pod's elements in the nftables maps of portmap
 *
 * What:  each port has an element with its target, one with its conditions, and one
 *        that selects the packets to masquerade (see ruleset.nft). They belong to
 *        the container and always change together, in one transaction. So if the
 *        target of a port is this pod, the other elements of the port are also of
 *        this attachment.
 *        Elements whose key is the pod's address belong to the attachment.
 * How:   ADD and DEL read which container has the port (owner.c) and write the
 *        elements with nft_update().
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

#define CHECK_TRIES 10

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
	nft_elems_done(&batch->hosts);
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

/* ---- ADD and CHECK --------------------------------------------------------------------------- */

/* Does the container's port @there lead to another attachment, so that both share it? CHECK and
 * repair need not ask if it leads to this attachment. A first ADD does: the address may have been
 * that of another attachment, which still has a record.
 * Return: 1 if so, 0 if not */
static int is_shared(struct portmap_batch *batch, const struct nft_elem *target,
		     struct nft_elem *there, struct hw_err *e)
{
	if (nft_elem_same_data(target, there) && !str_equal(batch->call->command, "ADD"))
		return 0;
	int r = portmap_attachments_read(batch, e);
	return r < 0 ? r : portmap_attachments_have(&batch->others, there);
}

static int put_port(void *ctx, const struct portmap_record *record, const struct portmap_port *port,
		    const struct hw_prefix *pod, struct hw_err *e)
{
	struct portmap_batch *batch = ctx;
	struct nft_elem target = portmap_target(port, pod), there;

	int r = portmap_get_port(batch, port, pod, &there, e);
	if (r == 1)
		r = is_shared(batch, &target, &there, e);
	else if (r == 2)
		r = portmap_conflict(batch->nft, &there, e);
	if (r < 0)
		return r;
	if (r == 0)
		put_mapping(&batch->elems, record, port, pod, batch->container);
	else
		nft_elems_add_once(&batch->elems, portmap_sharing_elem(batch->container));
	if (port->host.family) {
		struct nft_elem host = nft_elem_for("hostip", &port->host, NFT_SHARED);

		nft_key_ip(&host, &port->host);
		nft_elems_add_once(&batch->elems, host);
	}
	put_address(&batch->elems, record, port, pod);
	return 0;
}

static int put_all(void *ctx, struct hw_err *e)
{
	struct portmap_batch *batch = ctx;

	batch->has_hosts = false;
	return portmap_for_each_port(batch->record, put_port, batch, e);
}

/* ---- DEL ------------------------------------------------------------------------------------- */

/* Does the container's port @there lead to this attachment? */
static bool is_mine(const struct portmap_batch *batch, const struct nft_elem *target,
		    struct nft_elem *there)
{
	return batch->no_address ? !portmap_attachments_have(&batch->others, there)
				 : nft_elem_same_data(target, there);
}

static int put_mine(void *ctx, const struct portmap_record *record, const struct portmap_port *port,
		    const struct hw_prefix *pod, struct hw_err *e)
{
	struct portmap_batch *batch = ctx;
	struct nft_elem target = portmap_target(port, pod), there;

	int r = portmap_get_port(batch, port, pod, &there, e);
	if (r < 0)
		return r;
	if (r == 1 && is_mine(batch, &target, &there))
		put_mapping(&batch->mine, record, port, pod, there.owner);
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

static void put_gone(struct nft_elems *elems, struct nft_elem elem)
{
	elem.mode = NFT_GONE;
	nft_elems_add(elems, elem);
}

/* Reads the other attachments of the container if they may get ports of this one, and creates their
 * chains: the rules may have been flushed since. */
static int prepare_transfer(struct portmap_batch *batch, struct hw_err *e)
{
	struct nft_elem sharing = portmap_sharing_elem(batch->container), found;

	int r = nft_get(batch->nft, &sharing, &found, e);
	if (r < 0 || (r == 0 && !batch->no_address))
		return r;
	r = portmap_attachments_read(batch, e);
	for (size_t i = 0; r >= 0 && i < batch->others.n; i++)
		r = portmap_chains_create(batch->nft, &batch->others.v[i].record, e);
	return r;
}

static int put_deletions(void *ctx, struct hw_err *e)
{
	struct portmap_batch *batch = ctx;
	const struct portmap_attachments *others = &batch->others;

	batch->mine.n = batch->transferred.n = 0;
	int r = prepare_transfer(batch, e);
	if (r >= 0)
		r = portmap_for_each_port(batch->record, put_mine, batch, e);
	for (size_t i = 0; r >= 0 && i < others->n; i++)
		r = portmap_for_each_port(&others->v[i].record, put_transferred, batch, e);
	if (r < 0)
		return r;
	for (size_t i = 0; i < batch->mine.n; i++)
		if (batch->mine.v[i].mode != NFT_SHARED &&
		    !nft_elems_has(&batch->transferred, &batch->mine.v[i]))
			put_gone(&batch->elems, batch->mine.v[i]);
	for (size_t i = 0; i < batch->transferred.n; i++)
		nft_elems_add(&batch->elems, batch->transferred.v[i]);
	if (others->read && others->n < 2)
		put_gone(&batch->elems, portmap_sharing_elem(batch->container));
	return 0;
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

	(void)record;
	if (port->proto != IPPROTO_UDP)
		return 0;
	int r = portmap_get_port(batch, port, pod, &there, e);
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

static void flush_udp(struct portmap_batch *batch)
{
	struct hw_err ignored;

	(void)portmap_for_each_port(batch->record, flush_udp_port, batch, &ignored);
}

/* ---- used by the verbs ----------------------------------------------------------------------- */

int portmap_rules_add(const struct hw_call *call, struct hw_err *e)
{
	AUTO(batch_done) struct portmap_batch batch;

	batch_init(&batch, call, call->created);
	if (!batch.record->entries.n)
		return 0;
	int r = nft_open(&batch.nft, e);
	/* Create the chains even if all ports are shared: CHECK expects them, and invalid
	 * conditions must make this ADD fail, not a later transfer. */
	if (r >= 0)
		r = portmap_chains_create(batch.nft, batch.record, e);
	if (r >= 0)
		r = nft_update(batch.nft, &batch.elems, put_all, &batch, e);
	if (r >= 0)
		flush_udp(&batch);
	return r;
}

int portmap_rules_del(const struct hw_call *call, const struct portmap_record *record,
		      struct hw_err *e)
{
	AUTO(batch_done) struct portmap_batch batch;

	batch_init(&batch, call, record);
	batch.no_address = !call->recorded && !call->prev;
	if (!record->entries.n)
		return 0;
	int r = nft_open(&batch.nft, e);
	if (r >= 0)
		r = nft_update(batch.nft, &batch.elems, put_deletions, &batch, e);
	if (r == -EPROTONOSUPPORT)
		return 0;
	if (r >= 0)
		flush_udp(&batch);
	return r;
}

int portmap_rules_sweep(const struct hw_call *call, struct hw_err *e)
{
	static const char *const sets[] = { "snatall4", "snatall6", "near4",
					    "near6",	"self4",    "self6" };
	AUTO(nft_close) struct nft *nft = NULL;
	char owner[NFT_OWNER];

	nft_owner(call->network, call->container_id, call->ifname, owner);
	int r = nft_open(&nft, e);
	for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(sets); i++)
		r = nft_del_owned(nft, NFT_INET, sets[i], owner, e);
	return r;
}

int portmap_rules_check(const struct hw_call *call, const struct portmap_record *record,
			struct hw_err *e)
{
	AUTO(batch_done) struct portmap_batch batch;
	const struct nft_elems *elems = &batch.elems;
	int tries = CHECK_TRIES;

	batch_init(&batch, call, record);
	if (!record->entries.n)
		return 0;
	int r = nft_open(&batch.nft, e);
	if (r < 0)
		return r;
	/* -ERESTART: the owner of a port has just changed */
	do {
		batch.elems.n = 0;
		r = put_all(&batch, e);
	} while (r == -ERESTART && --tries > 0);
	if (r >= 0)
		r = nft_check(batch.nft, elems->v, elems->n, elems->owner, e);
	return r < 0 ? r : portmap_chains_check(batch.nft, record, e);
}
