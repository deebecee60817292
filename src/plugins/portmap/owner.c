/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/portmap/owner.c - ownership of host ports
 *
 * What:  on each address of the host, a port belongs to one container; its elements
 *        have the container as owner. Runtimes request the same host ports on each
 *        network of a container. The port leads to the first attachment that
 *        requested it. A DEL of this attachment transfers the port to the oldest
 *        other attachment that requested it (rules.c).
 * How:   a port is mapped either on one address or on every address. The two cases
 *        have different keys in nftables, so the kernel does not detect an overlap
 *        between them. Therefore the sets hostip4 and hostip6 have all addresses
 *        with ports of their own, and an ADD looks up the port on each of them.
 *        nft_update() repeats the ADD if anything changes before it is committed.
 *        The requests of the other attachments are in their records. Only if the
 *        set "sharing" has the container must DEL look for them, for which it reads
 *        the records of all containers.
 * Rules: the attachments of a container are on different networks, so the lock on a
 *        network does not exclude them from each other. The lock on the container's
 *        ports does: from the moment when an ADD has written its record until a DEL
 *        has removed it, a port can be transferred to the attachment.
 *        0.1.0 stored the attachment as the owner of a port. Such a port counts as
 *        the container's own in calls for that attachment.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/ip.h"
#include "base/os/file.h"
#include "base/str.h"
#include "base/time.h"
#include "cni/lock.h"
#include "cni/plugin/record.h"
#include "plugins/portmap/portmap.h"

#define LOCKS 64

/* ---- locks ----------------------------------------------------------------------------------- */

/* No other lock is acquired while one of these is held, except as documented in portmap.h. Lock
 * files are never deleted: a process that waits on a deleted file would not exclude a process that
 * creates the file again. */
static int acquire_lock(const char *name, const char *what, int *ret_fd, struct hw_err *e)
{
	autofree char *state = state_dir_default();
	autofree char *dir = str_printf("%s/locks", state);
	autofree char *path = str_printf("%s/portmap-%s", dir, name);

	int r = file_lock(AT_FDCWD, path, true, time_deadline(LOCK_TIMEOUT_MS), ret_fd, e);
	if (r == -ENOENT) {
		r = file_mkdirs(AT_FDCWD, dir, 0700, e);
		if (r >= 0)
			r = file_lock(AT_FDCWD, path, true, time_deadline(LOCK_TIMEOUT_MS), ret_fd,
				      e);
	}
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
	char owner[NFT_OWNER];

	nft_owner(r->network, r->container_id, r->ifname, owner);
	if (!str_equal(r->container_id, batch->call->container_id) ||
	    str_equal(owner, batch->elems.owner))
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

	if (others->read)
		return 0;
	record_each_of_plugin(state, "portmap", append_attachment, batch, &unreadable);
	if (others->n)
		qsort(others->v, others->n, sizeof(*others->v), compare_started);
	int r = errors_result(&unreadable, e);
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

bool portmap_record_has(const struct portmap_record *record, struct nft_elem *target)
{
	struct hw_err ignored;

	return portmap_for_each_port(record, compare_target, target, &ignored) > 0;
}

bool portmap_attachments_have(const struct portmap_attachments *attachments,
			      struct nft_elem *target)
{
	for (size_t i = 0; i < attachments->n; i++)
		if (portmap_record_has(&attachments->v[i].record, target))
			return true;
	return false;
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

static int append_host(void *ctx, const struct nft_elem *elem, struct hw_err *e)
{
	(void)e;
	nft_elems_add(ctx, *elem);
	return 0;
}

static int read_hosts(struct portmap_batch *batch, struct hw_err *e)
{
	if (batch->has_hosts)
		return 0;
	batch->hosts.n = 0;
	int r = nft_list(batch->nft, NFT_INET, "hostip4", append_host, &batch->hosts, e);
	if (r >= 0)
		r = nft_list(batch->nft, NFT_INET, "hostip6", append_host, &batch->hosts, e);
	batch->has_hosts = r >= 0;
	return r;
}

/* Return: 1 if found with this container as owner, 2 with another one, 0 if not found */
static int get_mapping(const struct portmap_batch *batch, const struct portmap_port *port,
		       const struct hw_prefix *pod, struct nft_elem *ret_elem, struct hw_err *e)
{
	struct nft_elem target = portmap_target(port, pod);

	int r = nft_get(batch->nft, &target, ret_elem, e);
	if (r <= 0)
		return r;
	return str_equal(ret_elem->owner, batch->container) ||
			       str_equal(ret_elem->owner, batch->elems.owner)
		       ? 1
		       : 2;
}

int portmap_get_port(struct portmap_batch *batch, const struct portmap_port *port,
		     const struct hw_prefix *pod, struct nft_elem *ret_elem, struct hw_err *e)
{
	struct portmap_port other = *port;

	int r = get_mapping(batch, port, pod, ret_elem, e);
	if (r != 0)
		return r;
	if (port->host.family) {
		other.host = (struct hw_ip){ 0 };
		r = get_mapping(batch, &other, pod, ret_elem, e);
		return r == 1 ? 0 : r;
	}
	r = read_hosts(batch, e);
	for (size_t i = 0; r >= 0 && r < 2 && i < batch->hosts.n; i++) {
		const struct nft_bytes *host = &batch->hosts.v[i].key;

		if (host->len != ip_bits(&pod->ip) / 8)
			continue;
		other.host.family = pod->ip.family;
		memcpy(other.host.bytes, host->v, host->len);
		r = get_mapping(batch, &other, pod, ret_elem, e);
	}
	return r == 1 ? 0 : r;
}

/* ---- the error for a port that is in use ------------------------------------------------------ */

/* The owner of an element is stored as a hash. The names are read from the record of the attachment
 * that the port leads to. All records are read; the time does not matter because the ADD fails. */

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
