/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/portmap/rules.c - a pod's elements in the nftables maps of portmap
 *
 * What:  each port has an element with its target, one with its conditions, and one
 *        that selects the packets to masquerade (see ruleset.nft).
 * How:   the kernel rejects a second element with the same key. Overlaps between a
 *        port on one address and a port on every address are handled in owner.c.
 * Rules: a port that another attachment of the same container owns is not mapped
 *        again (see owner.c).
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

/* Between the search for a free claim number and the transaction, another process may use it. */
#define TRIES 1000

static void batch_init(struct portmap_batch *batch, const struct hw_call *call,
		       const struct portmap_record *record, struct nft *nft)
{
	*batch = (struct portmap_batch){ .nft = nft, .call = call, .record = record };
	nft_owner(call->network, call->container_id, call->ifname, batch->elems.owner);
}

static void batch_done(struct portmap_batch *batch)
{
	nft_elems_done(&batch->elems);
	portmap_attachments_done(&batch->others);
}
AUTO_VALUE_DEFINE(batch_done, struct portmap_batch);

int portmap_for_each_port(struct portmap_batch *batch, portmap_each_fn *each, struct hw_err *e)
{
	const struct portmap_entry *entries = batch->record->entries.v;
	struct hw_prefix pods[2];
	struct portmap_port port;
	size_t n = portmap_pod_addresses(batch->record, pods);
	int r = 0;

	for (size_t p = 0; p < n; p++)
		for (size_t i = 0; r >= 0 && i < batch->record->entries.n; i++)
			if (portmap_entry_applies(&entries[i], &pods[p], &port))
				r = each(batch, &port, &pods[p], e);
	return r < 0 ? r : 0;
}

/* ---- the pod's elements ---------------------------------------------------------------------- */

struct nft_elem portmap_port_elem(const char *map, const struct portmap_port *port,
				  const struct hw_prefix *pod, enum nft_mode mode)
{
	char name[NFT_NAME];
	struct nft_elem elem;

	snprintf(name, sizeof(name), "%s%s", port->host.family ? "" : "any", map);
	elem = nft_elem_for(name, &pod->ip, mode);
	nft_key_proto(&elem, port->proto);
	if (port->host.family)
		nft_key_ip(&elem, &port->host);
	nft_key_port(&elem, port->host_port);
	return elem;
}

void portmap_put_mapping(struct portmap_batch *batch, const struct portmap_port *port,
			 const struct hw_prefix *pod, enum nft_mode mode)
{
	const struct portmap_record *record = batch->record;
	const char *condition = pod->ip.family == AF_INET ? record->cond4 : record->cond6;
	struct nft_elem target = portmap_port_elem("port", port, pod, mode);
	char chain[PORTMAP_CHAIN];

	nft_data_ip(&target, &pod->ip);
	nft_data_port(&target, port->pod_port);
	nft_elems_add(&batch->elems, target);
	if (condition) {
		struct nft_elem cond = portmap_port_elem("cond", port, pod, NFT_OWNED);

		portmap_condition_chain(condition, chain);
		nft_data_goto(&cond, chain);
		nft_elems_add(&batch->elems, cond);
	}
	if (record->snat) {
		struct nft_elem mark = portmap_port_elem("mark", port, pod, NFT_OWNED);

		portmap_mark_chain(record, chain);
		nft_data_jump(&mark, chain);
		nft_elems_add(&batch->elems, mark);
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

static int put_port(struct portmap_batch *batch, const struct portmap_port *port,
		    const struct hw_prefix *pod, struct hw_err *e)
{
	int r = portmap_is_owned_by_container(batch, port, pod, e);
	if (r < 0)
		return r;
	if (r == 0)
		portmap_put_mapping(batch, port, pod, NFT_EXCLUSIVE);
	if (batch->record->masq_all) {
		struct nft_elem all = nft_elem_for("snatall", &pod->ip, NFT_OWNED);

		nft_key_proto(&all, port->proto);
		nft_key_ip(&all, &pod->ip);
		nft_key_port(&all, port->pod_port);
		nft_elems_add_once(&batch->elems, all);
	}
	if (batch->record->snat)
		put_network(&batch->elems, pod);
	return 0;
}

static int fill_batch(struct portmap_batch *batch, struct hw_err *e)
{
	batch->elems.n = 0;
	return portmap_for_each_port(batch, put_port, e);
}

/* ---- adding ---------------------------------------------------------------------------------- */

/* Return: 1 if the transaction can be tried again, 0 if another container has the port */
static int can_retry(struct portmap_batch *batch, const struct nft_conflict *clash,
		     struct hw_err *e)
{
	const struct nft_elem *wanted = &batch->elems.v[clash->index];
	bool is_number = (wanted->mode == NFT_EXCLUSIVE && str_starts(wanted->set, "holder")) ||
			 (wanted->mode == NFT_ABSENT && str_starts(wanted->set, "upto"));

	if (is_number || portmap_attachments_has(&batch->others, clash->there.owner))
		return 1;
	int r = portmap_attachments_read(batch, e);
	return r < 0 ? r : portmap_attachments_has(&batch->others, clash->there.owner);
}

/* Return: 0 if added, 1 if the caller should try again, or a negative errno */
static int try_add(struct portmap_batch *batch, struct hw_err *e)
{
	struct nft_conflict clash = { 0 };

	int r = fill_batch(batch, e);
	if (r >= 0)
		r = portmap_for_each_port(batch, portmap_put_claim, e);
	if (r < 0 || !batch->elems.n)
		return r;
	r = nft_add(batch->nft, batch->elems.v, batch->elems.n, batch->elems.owner, &clash, e);
	if (r != -EEXIST)
		return r;
	r = can_retry(batch, &clash, e);
	return r == 0 ? portmap_conflict(batch->nft, &clash.there, e) : r;
}

static int add_elements(struct portmap_batch *batch, struct hw_err *e)
{
	/* Create the chains even if the attachment only waits for its ports: CHECK expects them,
	 * and invalid conditions must make this ADD fail, not a later transfer. */
	int r = portmap_chains_create(batch->nft, batch->record, e);

	if (r < 0)
		return r;
	r = 1;
	for (int tries = 0; r > 0 && tries < TRIES; tries++)
		r = try_add(batch, e);
	if (r > 0)
		return err_text(e, -EAGAIN,
				"gave up after %d attempts: other processes change the same host "
				"ports all the time",
				TRIES);
	return r;
}

/* ---- deleting -------------------------------------------------------------------------------- */

static int delete_elements(struct portmap_batch *batch, struct hw_err *e)
{
	const struct nft_elems *elems = &batch->elems;

	int r = fill_batch(batch, e);
	if (r >= 0)
		r = portmap_for_each_port(batch, portmap_find_claims, e);
	if (r >= 0 && batch->shared)
		r = portmap_transfer_ports(batch, NULL, e);
	return r < 0 || !elems->n ? r : nft_del(batch->nft, elems->v, elems->n, elems->owner, e);
}

/* ---- UDP ------------------------------------------------------------------------------------- */

/* A UDP flow has no end: as long as packets arrive, conntrack would use the old target. */
static int flush_udp_port(struct portmap_batch *batch, const struct portmap_port *port,
			  const struct hw_prefix *pod, struct hw_err *e)
{
	struct conntrack_tuple tuple = { .family = pod->ip.family,
					 .proto = IPPROTO_UDP,
					 .dst = port->host,
					 .dport = port->host_port };
	struct nft_elem mapping;

	if (port->proto != IPPROTO_UDP)
		return 0;
	/* r > 0: another attachment has the port, possibly only on some addresses of the host */
	int r = portmap_find_mapping(batch->nft, port, pod, &mapping, e);
	if (r > 0)
		r = !str_equal(mapping.owner, batch->elems.owner);
	else if (r == 0 && !port->host.family)
		r = portmap_is_claimed_by_others(batch, port, pod, e);
	if (r == 0)
		r = conntrack_flush(nft_socket(batch->nft), &tuple, e);
	if (r < 0)
		log_warn("portmap: flush conntrack entries of UDP port %u: %s", port->host_port,
			 e->msg);
	return 0;
}

void portmap_flush_udp(struct portmap_batch *batch)
{
	struct hw_err ignored;

	(void)portmap_for_each_port(batch, flush_udp_port, &ignored);
}

/* ---- used by the verbs ----------------------------------------------------------------------- */

int portmap_rules_add(const struct hw_call *call, struct hw_err *e)
{
	const struct portmap_record *record = call->created;
	AUTO(nft_close) struct nft *nft = NULL;
	AUTO(batch_done) struct portmap_batch batch;

	batch_init(&batch, call, record, NULL);
	if (!record->entries.n)
		return 0;
	int r = nft_open(&nft, e);
	if (r < 0)
		return r;
	batch.nft = nft;
	r = add_elements(&batch, e);
	if (r >= 0)
		portmap_flush_udp(&batch);
	return r;
}

int portmap_rules_del(const struct hw_call *call, const struct portmap_record *record,
		      struct hw_err *e)
{
	AUTO(nft_close) struct nft *nft = NULL;
	AUTO(batch_done) struct portmap_batch batch;

	batch_init(&batch, call, record, NULL);
	if (!record->entries.n)
		return 0;
	int r = nft_open(&nft, e);
	if (r < 0)
		return r;
	batch.nft = nft;
	r = delete_elements(&batch, e);
	if (r >= 0)
		portmap_flush_udp(&batch);
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

static int check_elements(struct portmap_batch *batch, struct hw_err *e)
{
	int r = fill_batch(batch, e);
	if (r >= 0)
		r = nft_check(batch->nft, batch->elems.v, batch->elems.n, batch->elems.owner, e);
	return r < 0 ? r : portmap_for_each_port(batch, portmap_check_claim, e);
}

int portmap_rules_check(const struct hw_call *call, const struct portmap_record *record,
			struct hw_err *e)
{
	AUTO(nft_close) struct nft *nft = NULL;
	AUTO(batch_done) struct portmap_batch batch;
	struct hw_err ignored;

	batch_init(&batch, call, record, NULL);
	if (!record->entries.n)
		return 0;
	int r = nft_open(&nft, e);
	if (r < 0)
		return r;
	batch.nft = nft;
	r = check_elements(&batch, e);
	/* The owner of the port may be another attachment of the same container: read these
	 * attachments, and check again. */
	if (r < 0 && portmap_attachments_read(&batch, &ignored) > 0)
		r = check_elements(&batch, e);
	return r < 0 ? r : portmap_chains_check(nft, record, e);
}
