/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/host-local/host-local.c - IPAM plugin host-local: addresses from ranges of this host
 *
 * What:  ADD leases one address of each range set, round robin. DEL releases the
 *        owner's leases. CHECK verifies them. GC (gc.c) releases the leases of
 *        invalid attachments. STATUS fails if a set has no free address.
 * How:   pool.c reads range sets and requested addresses from the configuration.
 *        lease.c stores the leases in the same files as upstream. The leases and
 *        their index replace the attachment record that other plugins write: they
 *        are written before any other process learns the address, an owner's
 *        leases are found without a search, and an index entry contains the time
 *        when its ADD finished. So this plugin writes no attachment record, and
 *        has its own GC.
 *        If the next 64 addresses are all leased, the directory is read once to
 *        find the free ones. If no address is free, the leases that this machine
 *        created before its last boot are released: their pods no longer exist.
 * Rules: a failed ADD releases only the addresses that it leased itself. Leases of
 *        an earlier ADD of the same attachment are kept.
 *        DEL does not use the ranges, so they may have changed since the ADD.
 */
#include "plugins/host-local/host-local.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <hawser/plugin.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/os/file.h"
#include "base/str.h"
#include "plugins/host-local/pool.h"
#include "plugins/host-local/resolv.h"

#define HOST_LOCAL_DIR	 "/var/lib/cni/networks"
#define HOST_LOCAL_TRIES 64 /* addresses to try before the directory is read */

/* hw_call.created: the addresses that this ADD has leased so far, for its undo. Never written to a
 * record. */
struct host_local_undo {
	struct hw_strings addresses;
};

static const struct hw_field host_local_undo_fields[] = {
	{ "addresses", HW_STRINGS, HW_AT(struct host_local_undo, addresses) },
	{ 0 },
};

static struct lease_owner owner_of(const struct hw_call *call)
{
	return (struct lease_owner){ call->container_id, call->ifname };
}

static const char *data_dir_of(const struct hw_call *call)
{
	const struct pool_conf *conf = call->conf;

	return str_empty(conf->ipam.data_dir) ? HOST_LOCAL_DIR : conf->ipam.data_dir;
}

int host_local_open(const struct hw_call *call, enum lease_mode mode, struct lease_store *store,
		    struct hw_err *e)
{
	return lease_open(store, data_dir_of(call), call->network, mode, e);
}

/* ---- ADD ------------------------------------------------------------------------------- */

struct allocation {
	struct hw_call *call;
	struct lease_owner owner;
	struct lease_store store;
	struct ip_list held; /* addresses that an earlier ADD of the same owner leased */
	struct pool pool;
};

static void allocation_done(struct allocation *a)
{
	lease_close(&a->store);
	ip_list_done(&a->held);
	pool_done(&a->pool);
}
AUTO_VALUE_DEFINE(allocation_done, struct allocation);

/* Leases one address and adds it to the result. Return: 0; 1 if the address is already leased */
static int allocate_address(struct allocation *a, size_t set, const struct range *range,
			    const struct hw_ip *ip, struct hw_err *e)
{
	struct host_local_undo *undo = a->call->created;
	char text[HW_IP_TEXT];
	int r;

	r = lease_allocate(&a->store, &a->owner, ip, e);
	if (r != 0)
		return r;
	strings_add(&undo->addresses, hw_ip_format(ip, text));
	*hw_result_add_ip(a->call->result) = (struct hw_ipconf){
		.address = { *ip, range->subnet.len },
		.gateway = range->gateway,
	};
	return lease_set_last_reserved(&a->store, set, ip, e);
}

/* Leases the first requested address that is in the set, and removes it from the requested
 * addresses.
 * Return: 0; 1 if no requested address is in the set */
static int allocate_requested(struct allocation *a, size_t set, struct hw_err *e)
{
	struct ip_list *requested = &a->pool.requested;
	const struct range *range = NULL;
	char text[HW_IP_TEXT];
	struct hw_ip ip;
	size_t i;
	int r;

	for (i = 0; i < requested->n; i++) {
		range = range_set_find(&a->pool.sets[set], &requested->v[i]);
		if (range)
			break;
	}
	if (!range)
		return 1;
	ip = requested->v[i];
	requested->n--;
	memmove(&requested->v[i], &requested->v[i + 1], (requested->n - i) * sizeof(*requested->v));
	hw_ip_format(&ip, text);
	if (hw_ip_equal(&ip, &range->gateway))
		return err_text(e, -EADDRNOTAVAIL, "requested ip %s is subnet's gateway", text);
	r = allocate_address(a, set, range, &ip, e);
	if (r <= 0)
		return r;
	autofree char *ranges = range_set_format(&a->pool.sets[set]);
	return err_text(e, -EADDRINUSE, "requested IP address %s is not available in range set %s",
			text, ranges);
}

/* Leases the next free address, round robin. Return: 0; 1 if all addresses are leased */
static int allocate_next(struct allocation *a, size_t set, struct hw_err *e)
{
	AUTO(ip_list_done) struct ip_list leased = { 0 };
	struct hw_ip last = lease_last_reserved(&a->store, set);
	const struct range *range;
	struct range_walk w;
	int r = 1;

	range_walk_init(&w, &a->pool.sets[set], &last);
	for (int n = 0; r > 0 && (range = range_walk_next(&w)); n++) {
		if (n == HOST_LOCAL_TRIES) {
			r = lease_list_all(&a->store, &leased, e);
			if (r < 0)
				break;
			r = 1;
		}
		if (!ip_list_has(&leased, &w.cur))
			r = allocate_address(a, set, range, &w.cur, e);
	}
	return r;
}

static int allocate_any(struct allocation *a, size_t set, struct hw_err *e)
{
	char text[HW_IP_TEXT];
	int r;

	for (size_t i = 0; i < a->held.n; i++)
		if (range_set_find(&a->pool.sets[set], &a->held.v[i]))
			return err_text(e, -EEXIST,
					"%s has been allocated to %s, duplicate allocation is not "
					"allowed",
					hw_ip_format(&a->held.v[i], text), a->owner.container_id);
	r = allocate_next(a, set, e);
	if (r > 0 && lease_release_stale(&a->store, e) > 0)
		r = allocate_next(a, set, e);
	if (r <= 0)
		return r;
	autofree char *ranges = range_set_format(&a->pool.sets[set]);
	return err_text(e, -EADDRNOTAVAIL, "no IP addresses available in range set: %s", ranges);
}

/* The result of an IPAM plugin contains only addresses, routes and dns: a previous result is not
 * passed on. */
static int host_local_add(struct hw_call *call, struct hw_err *e)
{
	const struct pool_conf *conf = call->conf;
	AUTO(allocation_done)
	struct allocation a = {
		.call = call,
		.owner = owner_of(call),
		.store = LEASE_STORE_INIT,
	};
	AUTO(buf_done) struct buf rest = { 0 };
	char text[HW_IP_TEXT];
	int r;

	hw_result_free(call->result);
	call->result = hw_result_new();
	r = pool_init(&a.pool, conf, call->args, call->version, e);
	if (r < 0)
		return r;
	if (!str_empty(conf->ipam.resolv_conf))
		r = resolv_read(conf->ipam.resolv_conf, &call->result->dns, e);
	if (r < 0)
		return r;
	r = host_local_open(call, LEASE_CREATE, &a.store, e);
	if (r < 0)
		return r;
	r = lease_list_owned(&a.store, &a.owner, &a.held, e);
	if (r < 0)
		return r;
	for (size_t set = 0; set < a.pool.n; set++) {
		r = allocate_requested(&a, set, e);
		if (r > 0)
			r = allocate_any(&a, set, e);
		if (r < 0)
			return err_ctx(e, "failed to allocate for range %zu", set);
	}
	for (size_t i = 0; i < a.pool.requested.n; i++)
		buf_printf(&rest, " %s", hw_ip_format(&a.pool.requested.v[i], text));
	if (rest.len)
		return err_text(e, -EADDRNOTAVAIL, "failed to allocate all requested IPs:%s",
				rest.data);
	r = lease_finish(&a.store, &a.owner, e);
	if (r < 0)
		return r;
	for (size_t i = 0; i < conf->ipam.routes.n; i++)
		*hw_result_add_route(call->result) = ((struct hw_route *)conf->ipam.routes.v)[i];
	return 0;
}

/* ---- DEL ------------------------------------------------------------------------------- */

static int host_local_del(struct hw_call *call, struct hw_err *e)
{
	AUTO(lease_close) struct lease_store store = LEASE_STORE_INIT;
	AUTO(ip_list_done) struct ip_list known = { 0 };
	const struct host_local_undo *undo = call->created;
	struct lease_owner owner = owner_of(call);
	bool undoing = str_equal(call->command, "ADD");
	struct hw_ip ip;
	int r;

	if (undoing && undo->addresses.n == 0)
		return 0;
	r = host_local_open(call, LEASE_WRITE, &store, e);
	if (r <= 0)
		return r;
	if (!undoing) {
		for (size_t i = 0; call->prev && i < call->prev->n_ips; i++)
			ip_list_add(&known, &call->prev->ips[i].address.ip);
		return lease_release_all(&store, &owner, &known, e);
	}
	for (size_t i = undo->addresses.n; i-- > 0;) {
		r = hw_ip_parse(undo->addresses.v[i], &ip, e);
		if (r >= 0)
			r = lease_release(&store, &owner, &ip, e);
		if (r < 0)
			return r;
	}
	return 0;
}

/* ---- CHECK ----------------------------------------------------------------------------- */

/* Each address of the result that is in a range set must be leased to the owner. Upstream only
 * requires that the owner has some lease. */
static int check_leases(const struct hw_call *call, const struct pool *pool,
			const struct lease_store *store, struct hw_err *e)
{
	struct lease_owner owner = owner_of(call);
	char text[HW_IP_TEXT];

	for (size_t i = 0; call->prev && i < call->prev->n_ips; i++) {
		const struct hw_ip *ip = &call->prev->ips[i].address.ip;
		bool in_pool = false;
		int m;

		for (size_t set = 0; set < pool->n; set++)
			in_pool = in_pool || range_set_find(&pool->sets[set], ip);
		m = in_pool ? lease_match(store, ip, &owner) : LEASE_OWNED;
		if (m < 0)
			return err_set(e, m, "host-local: read lease %s", hw_ip_format(ip, text));
		if (m == LEASE_FREE || m == LEASE_EMPTY)
			return err_text(e, -ENOENT, "host-local: address %s is not leased",
					hw_ip_format(ip, text));
		if (m == LEASE_OTHER)
			return err_text(e, -EADDRINUSE,
					"host-local: address %s is leased to another attachment",
					hw_ip_format(ip, text));
	}
	return 0;
}

static int host_local_check(struct hw_call *call, struct hw_err *e)
{
	AUTO(lease_close) struct lease_store store = LEASE_STORE_INIT;
	AUTO(pool_done) struct pool pool = { 0 };
	struct lease_owner owner = owner_of(call);
	int r;

	r = pool_init(&pool, call->conf, call->args, call->version, e);
	if (r < 0)
		return r;
	r = host_local_open(call, LEASE_READ, &store, e);
	if (r > 0)
		r = lease_has_any(&store, &owner, e);
	if (r < 0)
		return r;
	if (r == 0)
		return err_text(e, -ENOENT,
				"host-local: Failed to find address added by container %s",
				call->container_id);
	return check_leases(call, &pool, &store, e);
}

/* ---- STATUS ---------------------------------------------------------------------------- */

/* Can files be created in the directory, or in its nearest parent that exists? */
static int check_writable(const char *path, struct hw_err *e)
{
	/* Add "./" to a relative path, so that it has a parent directory. */
	autofree char *dir = str_printf("%s%s", *path == '/' ? "" : "./", path);
	autoclose int fd = -1;
	struct file_space fs;
	struct hw_err ignored;
	char *slash;

	while (access(dir, F_OK) < 0 && errno == ENOENT && (slash = strrchr(dir, '/')))
		slash[slash == dir && slash[1]] = '\0'; /* "/x" becomes "/" */
	if (access(dir, W_OK | X_OK) < 0)
		return err_cni(e, HW_CNI_NOT_AVAILABLE, "cannot write leases to %s: %s", path,
			       strerror(errno));
	fd = open(dir, O_PATH | O_CLOEXEC);
	if (fd < 0 || file_space(fd, &fs, &ignored) < 0)
		return 0;
	if ((fs.bytes && !fs.bytes_free) || (fs.inodes && !fs.inodes_free))
		return err_cni(e, HW_CNI_NOT_AVAILABLE, "cannot write leases to %s: %s", path,
			       strerror(ENOSPC));
	return 0;
}

static bool has_free(const struct range_set *set, const struct ip_list *leased,
		     const struct ip_list *stale)
{
	struct hw_ip none = { 0 };
	struct range_walk w;

	range_walk_init(&w, set, &none);
	while (range_walk_next(&w))
		if (!ip_list_has(leased, &w.cur) || ip_list_has(stale, &w.cur))
			return true;
	return false;
}

static int host_local_status(struct hw_call *call, struct hw_err *e)
{
	AUTO(lease_close) struct lease_store store = LEASE_STORE_INIT;
	AUTO(pool_done) struct pool pool = { 0 };
	AUTO(ip_list_done) struct ip_list leased = { 0 }, stale = { 0 };
	autofree char *path = str_printf("%s/%s", data_dir_of(call), call->network);
	int r;

	r = pool_init(&pool, call->conf, call->args, call->version, e);
	if (r < 0)
		return r;
	r = check_writable(path, e);
	if (r < 0)
		return r;
	r = host_local_open(call, LEASE_READ, &store, e);
	if (r <= 0)
		return r;
	r = lease_list_all(&store, &leased, e);
	if (r < 0)
		return r;
	r = lease_list_stale(&store, &stale, e);
	if (r < 0)
		return r;
	for (size_t i = 0; i < pool.n; i++) {
		autofree char *ranges = range_set_format(&pool.sets[i]);

		if (!has_free(&pool.sets[i], &leased, &stale))
			return err_cni(e, HW_CNI_NOT_AVAILABLE,
				       "no IP addresses available in range set: %s", ranges);
	}
	return 0;
}

const struct hw_plugin host_local_plugin = {
	.size = sizeof(struct hw_plugin),
	.name = "host-local",
	.summary = "leases addresses from ranges of this host",
	.add = host_local_add,
	.del = host_local_del,
	.check = host_local_check,
	.gc = host_local_gc,
	.status = host_local_status,
	.fields = pool_fields,
	.conf_size = sizeof(struct pool_conf),
	.created_fields = host_local_undo_fields,
	.created_size = sizeof(struct host_local_undo),
};
