/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/portmap/owner.c - ownership of host ports
 *
 * What:  on each address of the host, a port belongs to one container; its elements
 *        have the container as owner. Runtimes request the same host ports on each
 *        network of a container. The port leads to the first attachment that
 *        requested it. A DEL of this attachment transfers the port to the oldest
 *        other attachment that requested it (rules.c). An attachment whose network
 *        namespace no longer exists gets no port; its own DEL or GC removes it.
 *        Two containers request the same port only if the rules were flushed between
 *        their ADDs. Repair gives the port to the container whose ADD finished last:
 *        that ADD has reported the port as working, and its clients may use it.
 * How:   a port is mapped either on one address or on every address. The two cases
 *        have different keys in nftables, so the kernel does not detect an overlap
 *        between them. Therefore each port also has a claim: an element with
 *        protocol and port in the set "claimed". If it is missing, or if its owner is
 *        this container, no other container has the port on any address.
 *        So an ADD usually reads nothing: it adds its elements in one transaction,
 *        which fails if one of them exists. Then everything is read.
 *        The requests of the other attachments are in their records. Only if the
 *        set "sharing" has the container must DEL look for them, for which it reads
 *        the records of all containers.
 * Rules: the attachments of a container are on different networks, so the lock on a
 *        network does not exclude them from each other. The lock on the container's
 *        ports does: from the moment when an ADD has written its record until a DEL
 *        has removed it, a port can be transferred to the attachment.
 *        The lock on the elements excludes all other changes of host ports, so that
 *        programs that change other parts of nftables delay no ADD or DEL. Also a
 *        transaction that only adds new elements holds it exclusively: the kernel
 *        executes one transaction at a time, and with a shared lock, ADDs that overlap
 *        could keep a DEL waiting.
 *        0.1.0 stored the attachment as the owner of a port. Such a port counts as
 *        the container's own if the container has a record of that attachment. Its
 *        claim, which load.c adds, has no container as owner.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/ip.h"
#include "base/os/file.h"
#include "base/str.h"
#include "base/time.h"
#include "cni/lock.h"
#include "cni/plugin/attach.h"
#include "plugins/portmap/portmap.h"

#define LOCKS	64
#define SKIPPED 3 /* how many elements may be skipped that were read in advance */

/* ---- locks ----------------------------------------------------------------------------------- */

/* No other lock is acquired while one of these is held, except as documented in portmap.h. Lock
 * files are never deleted: a process that waits on a deleted file would not exclude a process that
 * creates the file again. */
static int acquire_lock(const char *name, const char *what, int *ret_fd, struct hw_err *e)
{
	autofree char *state = state_dir_default();
	autofree char *file = str_printf("portmap-%s", name);
	int r;

	r = lock_file(state, file, true, time_deadline(LOCK_TIMEOUT_MS), ret_fd, e);
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

int portmap_lock_elements(int *ret_fd, struct hw_err *e)
{
	return acquire_lock("elements", "nftables elements of host ports", ret_fd, e);
}

int portmap_lock_chains(int *ret_fd, struct hw_err *e)
{
	return acquire_lock("chains", "nftables chains for host ports", ret_fd, e);
}

/* ---- sets of ports --------------------------------------------------------------------------- */

#define PORTS (UINT16_MAX + 1)

/* One bit for each port of each protocol. Most of the memory is never touched, and so costs nothing. */
static size_t port_index(const struct portmap_port *port)
{
	size_t proto = port->proto == IPPROTO_TCP ? 0 : port->proto == IPPROTO_UDP ? 1 : 2;

	return proto * PORTS + port->host_port;
}

bool portmap_ports_has(const struct portmap_ports *ports, const struct portmap_port *port)
{
	size_t i = port_index(port);

	return ports->bits && ports->bits[i / 8] & 1 << i % 8;
}

bool portmap_ports_add(struct portmap_ports *ports, const struct portmap_port *port)
{
	size_t i = port_index(port);

	if (portmap_ports_has(ports, port))
		return false;
	if (!ports->bits)
		ports->bits = mem_new(3 * PORTS / 8);
	ports->bits[i / 8] |= (uint8_t)(1 << i % 8);
	return true;
}

void portmap_ports_done(struct portmap_ports *ports)
{
	free(take_ptr(ports->bits));
}

/* ---- other attachments of the same container ------------------------------------------------- */

void portmap_attachments_done(struct portmap_attachments *attachments)
{
	for (size_t i = 0; i < attachments->n; i++)
		portmap_record_done(&attachments->v[i].record);
	free(attachments->v);
	portmap_ports_done(&attachments->ports);
	*attachments = (struct portmap_attachments){ 0 };
}

static int append_port(void *ctx, const struct portmap_record *record,
		       const struct portmap_port *port, const struct hw_prefix *pod,
		       struct hw_err *e)
{
	(void)record;
	(void)pod;
	(void)e;
	portmap_ports_add(ctx, port);
	return 0;
}

static int append_attachment(void *ctx, const struct record *r, struct hw_err *e)
{
	struct portmap_batch *batch = ctx;
	struct portmap_attachments *others = &batch->others;
	struct portmap_attachment other = { .finished = r->finished ? r->finished : INT64_MAX };

	if (!str_equal(r->container_id, batch->call->container_id))
		return 0;
	nft_owner(r->network, r->container_id, r->ifname, other.owner);
	if (str_equal(other.owner, batch->elems.owner)) {
		others->own_finished = other.finished;
		return 0;
	}
	if (r->created && hw_field_decode(portmap_record_fields, r->created, strlen(r->created),
					  &other.record, e) < 0)
		return 0;
	other.alive = attach_has_netns(r);
	others->v = mem_resize(others->v, others->n + 1, sizeof(*others->v));
	others->v[others->n++] = other;
	return portmap_for_each_port(&other.record, append_port, &others->ports, e);
}

static int compare_finished(const void *a, const void *b)
{
	int64_t first = ((const struct portmap_attachment *)a)->finished;
	int64_t second = ((const struct portmap_attachment *)b)->finished;

	return first < second ? -1 : first > second;
}

int portmap_attachments_read(struct portmap_batch *batch, struct hw_err *e)
{
	struct portmap_attachments *others = &batch->others;
	autofree char *state = state_dir_default();
	struct errors unreadable = { 0 };
	int r;

	if (others->read)
		return 0;
	portmap_attachments_done(others);
	record_each_of_plugin(state, "portmap", append_attachment, batch, &unreadable);
	if (others->n)
		qsort(others->v, others->n, sizeof(*others->v), compare_finished);
	r = errors_result(&unreadable, e);
	others->read = r >= 0;
	return r;
}

static int compare_target(void *ctx, const struct portmap_record *record,
			  const struct portmap_port *port, const struct hw_prefix *pod,
			  struct hw_err *e)
{
	const struct nft_elem *elem = ctx;
	struct nft_elem target;

	(void)record;
	(void)e;
	if (port->host_port != portmap_key_port(elem)) /* usual, and fast */
		return 0;
	target = portmap_target(port, pod);
	return nft_elem_same_key(&target, elem) && nft_elem_same_data(&target, elem);
}

/* Does the record map this host port to this target? */
static bool record_has(const struct portmap_record *record, struct nft_elem *target)
{
	struct hw_err ignored;

	return portmap_for_each_port(record, compare_target, target, &ignored) > 0;
}

const struct portmap_attachment *portmap_attachments_find(
	const struct portmap_attachments *attachments, struct nft_elem *target)
{
	for (size_t i = 0; i < attachments->n; i++)
		if (attachments->v[i].alive && record_has(&attachments->v[i].record, target))
			return &attachments->v[i];
	return NULL;
}

struct nft_elem portmap_sharing_elem(const char *container)
{
	struct nft_elem elem = nft_elem(NFT_INET, "sharing", NFT_OWNED);
	unsigned long long hash = strtoull(container, NULL, 16);

	nft_key_number(&elem, (uint32_t)(hash >> 32));
	nft_key_number(&elem, (uint32_t)hash);
	memcpy(elem.owner, container, NFT_OWNER);
	return elem;
}

/* ---- ports ----------------------------------------------------------------------------------- */

struct nft_elem portmap_claim(const struct portmap_port *port)
{
	struct nft_elem claim = nft_elem(NFT_INET, "claimed", NFT_OWNED);

	nft_key_proto(&claim, port->proto);
	nft_key_port(&claim, port->host_port);
	return claim;
}

void portmap_ahead_done(struct portmap_ahead *ahead)
{
	nft_elems_done(&ahead->wanted);
	free(ahead->found);
	*ahead = (struct portmap_ahead){ 0 };
}

static int append_wanted(void *ctx, const struct portmap_record *record,
			 const struct portmap_port *port, const struct hw_prefix *pod,
			 struct hw_err *e)
{
	struct portmap_ahead *ahead = ctx;

	(void)record;
	(void)e;
	nft_elems_add(&ahead->wanted, portmap_target(port, pod));
	nft_elems_add(&ahead->wanted, portmap_claim(port));
	return 0;
}

int portmap_read_ahead(struct portmap_batch *batch, struct hw_err *e)
{
	struct portmap_ahead *ahead = &batch->ahead;
	int r;

	portmap_ahead_done(ahead);
	nft_elems_add(&ahead->wanted, portmap_sharing_elem(batch->container));
	r = portmap_for_each_port(batch->record, append_wanted, ahead, e);
	if (r < 0)
		return r;
	ahead->found = mem_new(ahead->wanted.n * sizeof(*ahead->found));
	return nft_get_all(batch->nft, ahead->wanted.v, ahead->wanted.n, ahead->found, e);
}

/* An element that is skipped was not needed. */
int portmap_get(struct portmap_batch *batch, const struct nft_elem *elem, struct nft_elem *ret_elem,
		struct hw_err *e)
{
	struct portmap_ahead *ahead = &batch->ahead;

	for (size_t i = ahead->next; i < ahead->wanted.n && i < ahead->next + SKIPPED; i++) {
		if (!nft_elem_same_key(&ahead->wanted.v[i], elem))
			continue;
		ahead->next = i + 1;
		if (!nft_elem_exists(&ahead->found[i]))
			return 0;
		*ret_elem = ahead->found[i];
		return 1;
	}
	return nft_get(batch->nft, elem, ret_elem, e);
}

static int append_single(void *ctx, const struct nft_elem *elem, struct hw_err *e)
{
	(void)e;
	nft_elems_add(ctx, *elem);
	return 0;
}

static int read_singles(struct portmap_batch *batch, struct hw_err *e)
{
	int r;

	if (batch->has_singles)
		return 0;
	batch->singles.n = 0;
	r = nft_list(batch->nft, NFT_INET, "port4", append_single, &batch->singles, e);
	if (r >= 0)
		r = nft_list(batch->nft, NFT_INET, "port6", append_single, &batch->singles, e);
	batch->has_singles = r >= 0;
	return r;
}

/* Is the owner of a mapping this container, or an attachment of it that 0.1.0 made? The records are
 * read only if the ADD would fail otherwise. */
static bool is_own(struct portmap_batch *batch, const char *owner)
{
	struct hw_err ignored;

	if (str_equal(owner, batch->container) || str_equal(owner, batch->elems.owner))
		return true;
	(void)portmap_attachments_read(batch, &ignored);
	for (size_t i = 0; i < batch->others.n; i++)
		if (str_equal(owner, batch->others.v[i].owner))
			return true;
	return false;
}

int portmap_get_mapping(struct portmap_batch *batch, const struct portmap_port *port,
			const struct hw_prefix *pod, struct nft_elem *ret_elem, struct hw_err *e)
{
	struct nft_elem target = portmap_target(port, pod);
	int r;

	r = portmap_get(batch, &target, ret_elem, e);
	if (r <= 0)
		return r;
	return is_own(batch, ret_elem->owner) ? 1 : 2;
}

static bool is_excepted(struct portmap_batch *batch, const struct nft_elem *elem,
			const struct nft_elems *except)
{
	return except ? nft_elems_has(except, elem) : is_own(batch, elem->owner);
}

int portmap_find_other(struct portmap_batch *batch, const struct portmap_port *port, int family,
		       const struct nft_elems *except, struct nft_elem *ret_elem, struct hw_err *e)
{
	int r;

	static const struct {
		const char *map;
		int family;
	} any[] = { { "anyport4", AF_INET }, { "anyport6", AF_INET6 } };

	for (size_t i = 0; i < ARRAY_SIZE(any); i++) {
		struct nft_elem elem = nft_elem(NFT_INET, any[i].map, NFT_OWNED);

		if (family && family != any[i].family)
			continue;
		elem.key = portmap_claim(port).key;
		r = nft_get(batch->nft, &elem, ret_elem, e);
		if (r < 0 || (r > 0 && !is_excepted(batch, ret_elem, except)))
			return r;
	}
	r = read_singles(batch, e);
	if (r < 0)
		return r;
	for (size_t i = 0; i < batch->singles.n; i++) {
		const struct nft_elem *elem = &batch->singles.v[i];

		if (elem->key.v[0] != port->proto || portmap_key_port(elem) != port->host_port ||
		    (family && str_ends(elem->set, "4") != (family == AF_INET)) ||
		    is_excepted(batch, elem, except))
			continue;
		*ret_elem = *elem;
		return 1;
	}
	return 0;
}

int portmap_get_port(struct portmap_batch *batch, const struct portmap_port *port,
		     const struct hw_prefix *pod, struct nft_elem *ret_elem, struct hw_err *e)
{
	struct nft_elem claim = portmap_claim(port);
	struct portmap_port any = *port;
	int r;

	r = portmap_get_mapping(batch, port, pod, ret_elem, e);
	if (r != 0)
		return r;
	r = portmap_get(batch, &claim, &claim, e);
	if (r <= 0 || str_equal(claim.owner, batch->container))
		return r < 0 ? r : 0;
	if (!port->host.family) {
		r = portmap_find_other(batch, port, pod->ip.family, NULL, ret_elem, e);
		return r > 0 ? 2 : r;
	}
	any.host = (struct hw_ip){ 0 };
	r = portmap_get_mapping(batch, &any, pod, ret_elem, e);
	return r == 1 ? 0 : r;
}

/* ---- the error for a port that is in use ------------------------------------------------------ */

/* The owner of an element is stored as a hash. The names are read from the record of the attachment
 * that the port leads to. All records are read; the time does not matter because the ADD fails. */

/* All sets in which each element belongs to one host port */
static const char *const sets[] = {
	"port4",    "port6", "anyport4", "anyport6", "cond4",	 "cond6",   "anycond4",
	"anycond6", "mark4", "mark6",	 "anymark4", "anymark6", "claimed",
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
	char *found; /* text for the error; NULL: not found yet */
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

	if (!is_owner(r, search->elem.owner) || !r->created ||
	    hw_field_decode(portmap_record_fields, r->created, strlen(r->created), &record, e) < 0)
		return 0;
	if (!record_has(&record, &search->elem))
		return 0;
	search->found = str_printf(
		"container %s, interface %s, network %s%s; if that container no longer exists, DEL "
		"with CNI_CONTAINERID=%s CNI_IFNAME=%s, or GC, on network %s frees the port",
		r->container_id, r->ifname, r->network,
		attach_has_netns(r) ? "" : " (its network namespace no longer exists)",
		r->container_id, r->ifname, r->network);
	return 1;
}

/* Finds the attachment that a port of another container leads to; the caller frees .found. */
static struct owner_search find_owner(const struct nft_elem *elem)
{
	autofree char *state = state_dir_default();
	struct owner_search search = { .elem = *elem };
	struct errors ignored = { 0 };

	record_each_of_plugin(state, "portmap", compare_record, &search, &ignored);
	return search;
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
	struct owner_search owner = find_owner(elem);
	autofree char *found = owner.found;
	char port[NFT_ELEM_TEXT];

	format_port(elem, port);
	if (!found)
		return conflict_without_record(nft, elem, port, e);
	return err_text(e, -EADDRINUSE, "host port %s is taken by %s", port, found);
}

/* ---- repair ---------------------------------------------------------------------------------- */

/* Two containers that request a port. Of each: when its last ADD that requested the port finished.
 * Attachments whose namespace no longer exists do not count; 0: there is no other. */
struct rivals {
	const struct portmap_batch *batch;
	const struct nft_elem *elem;
	int64_t own, owner;
};

static int compare_number(void *ctx, const struct portmap_record *record,
			  const struct portmap_port *port, const struct hw_prefix *pod,
			  struct hw_err *e)
{
	const struct nft_elem *elem = ctx;

	(void)record;
	(void)e;
	return port->proto == elem->key.v[0] && port->host_port == portmap_key_port(elem) &&
	       str_ends(elem->set, "4") == (pod->ip.family == AF_INET);
}

/* An unfinished ADD of the owner counts as the last one: it may be running, and must not succeed without
 * its port. */
static int compare_rival(void *ctx, const struct record *r, struct hw_err *e)
{
	AUTO(portmap_record_done) struct portmap_record record = { 0 };
	struct rivals *rivals = ctx;
	bool own = str_equal(r->container_id, rivals->batch->call->container_id);
	int64_t *newest = own ? &rivals->own : &rivals->owner;
	int64_t finished = r->finished || own ? r->finished : INT64_MAX;

	if (!own && !is_owner(r, rivals->elem->owner))
		return 0;
	if (finished <= *newest || !r->created ||
	    hw_field_decode(portmap_record_fields, r->created, strlen(r->created), &record, e) < 0)
		return 0;
	if (portmap_for_each_port(&record, compare_number, (void *)rivals->elem, e) > 0 &&
	    attach_has_netns(r))
		*newest = finished;
	return 0;
}

int portmap_take_over(struct portmap_batch *batch, const struct nft_elem *elem, struct hw_err *e)
{
	int r;

	static const char *const maps[] = { "port", "cond", "mark" };
	const char *any = str_starts(elem->set, "any") ? "any" : "";
	const char family = elem->set[strlen(elem->set) - 1];
	struct owner_search owner = find_owner(elem);
	autofree char *found = owner.found;
	autofree char *state = state_dir_default();
	struct rivals rivals = { .batch = batch, .elem = elem };
	struct nft_elem gone[ARRAY_SIZE(maps)];
	struct errors ignored = { 0 };

	/* The netns is empty if it no longer exists (cni/plugin/attach.c). */
	if (!found || str_empty(batch->call->netns))
		return 0;
	record_each_of_plugin(state, "portmap", compare_rival, &rivals, &ignored);
	if (rivals.own <= rivals.owner)
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(maps); i++) {
		char name[NFT_NAME];

		snprintf(name, sizeof(name), "%s%s%c", any, maps[i], family);
		gone[i] = nft_elem(NFT_INET, name, NFT_OWNED);
		gone[i].key = elem->key;
	}
	r = nft_del(batch->nft, gone, ARRAY_SIZE(gone), elem->owner, e);
	batch->has_singles = false;
	return r < 0 ? r : 1;
}
