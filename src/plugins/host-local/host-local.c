/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/host-local/host-local.c - addresses from ranges of this host's own
 *
 * What:  ADD leases one address of each set of ranges, round robin; DEL ends the
 *        owner's leases; CHECK looks whether they are there; GC ends those whose
 *        owner is gone; STATUS tells when a set has nothing left to give.
 * How:   pool.c says what may be handed out, lease.c keeps the leases in
 *        upstream's files. The leases and their index are the attachment record:
 *        they are written before anything else knows of an address, an
 *        owner's are found directly, and they tell when their ADD was done; so
 *        there is no second record, and GC is our own.
 *        GC and STATUS, which look at all leases, are in gc.c.
 *        Where the next 64 addresses are all taken one walk through the directory
 *        tells which are free. Where none is, those that this machine leased
 *        before it was last booted are: their pods are gone.
 * Rules: a failed ADD ends what it leased itself and nothing else: an earlier ADD
 *        of the same attachment keeps its lease.
 *        DEL needs no ranges, so they may have changed.
 */
#include "plugins/host-local/host-local.h"

#include <errno.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <hawser/plugin.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "plugins/host-local/pool.h"
#include "plugins/host-local/resolv.h"

#define HOST_LOCAL_DIR	 "/var/lib/cni/networks"
#define HOST_LOCAL_TRIES 64 /* before the directory is read */

/* What an ADD has leased so far, for its undo. */
struct host_local_made {
	struct hw_strings addresses;
};

static const struct hw_field host_local_made_fields[] = {
	{ "addresses", HW_STRINGS, HW_AT(struct host_local_made, addresses) },
	{ 0 },
};

static struct lease_owner owner_of(const struct hw_call *call)
{
	return (struct lease_owner){ call->container_id, call->ifname };
}

/* The directory of all networks' leases. */
static const char *host_local_dir(const struct hw_call *call)
{
	const struct pool_conf *conf = call->conf;

	return str_empty(conf->ipam.data_dir) ? HOST_LOCAL_DIR : conf->ipam.data_dir;
}

/**
 * host_local_open() - the leases of a call's network
 */
int host_local_open(const struct hw_call *call, enum lease_open how, struct lease_store *store,
		    struct hw_err *e)
{
	return lease_open(store, host_local_dir(call), call->network, how, e);
}

/* ---- ADD ------------------------------------------------------------------------------- */

struct adding {
	struct hw_call *call;
	struct lease_owner owner;
	struct lease_store store;
	struct ip_list held; /* by the same owner, from before */
	struct pool pool;
};

static void adding_done(struct adding *a)
{
	lease_close(&a->store);
	ip_list_done(&a->held);
	pool_done(&a->pool);
}
AUTO_VALUE_DEFINE(adding_done, struct adding);

/* Return: 1 when somebody has it */
static int take(struct adding *a, size_t set, const struct range *range, const struct hw_ip *ip,
		struct hw_err *e)
{
	struct host_local_made *made = a->call->made;
	char text[HW_IP_TEXT];

	int r = lease_take(&a->store, &a->owner, ip, e);
	if (r != 0)
		return r;
	strings_add(&made->addresses, hw_ip_format(ip, text));
	*hw_result_add_ip(a->call->result) = (struct hw_ipconf){
		.address = { *ip, range->subnet.len },
		.gateway = range->gateway,
	};
	return lease_set_last(&a->store, set, ip, e);
}

/* The first address asked for that the set has; it counts as given. */
static bool next_asked(struct adding *a, size_t set, struct hw_ip *ret_ip)
{
	struct ip_list *asked = &a->pool.asked;

	for (size_t i = 0; i < asked->n; i++) {
		if (!range_set_find(&a->pool.sets[set], &asked->v[i]))
			continue;
		*ret_ip = asked->v[i];
		asked->n--;
		memmove(&asked->v[i], &asked->v[i + 1], (asked->n - i) * sizeof(*asked->v));
		return true;
	}
	return false;
}

static int take_asked(struct adding *a, size_t set, const struct hw_ip *ip, struct hw_err *e)
{
	const struct range *range = range_set_find(&a->pool.sets[set], ip);
	char text[HW_IP_TEXT];

	hw_ip_format(ip, text);
	if (hw_ip_equal(ip, &range->gateway))
		return err_text(e, -EADDRNOTAVAIL, "requested ip %s is subnet's gateway", text);
	int r = take(a, set, range, ip, e);
	if (r <= 0)
		return r;
	autofree char *ranges = range_set_format(&a->pool.sets[set]);
	return err_text(e, -EADDRINUSE, "requested IP address %s is not available in range set %s",
			text, ranges);
}

static int refuse_second(const struct adding *a, size_t set, struct hw_err *e)
{
	char text[HW_IP_TEXT];

	for (size_t i = 0; i < a->held.n; i++)
		if (range_set_find(&a->pool.sets[set], &a->held.v[i]))
			return err_text(e, -EEXIST,
					"%s has been allocated to %s, duplicate allocation is not "
					"allowed",
					hw_ip_format(&a->held.v[i], text), a->owner.container_id);
	return 0;
}

/* Round robin. Return: 1 when all are taken */
static int take_free(struct adding *a, size_t set, struct hw_err *e)
{
	AUTO(ip_list_done) struct ip_list taken = { 0 };
	struct hw_ip last = lease_last(&a->store, set);
	const struct range *range;
	struct range_walk w;
	int r = 1;

	range_walk_init(&w, &a->pool.sets[set], &last);
	for (int n = 0; r > 0 && (range = range_walk_next(&w)); n++) {
		if (n == HOST_LOCAL_TRIES) {
			r = lease_list(&a->store, &taken, e);
			if (r < 0)
				break;
			r = 1;
		}
		if (!ip_list_has(&taken, &w.cur))
			r = take(a, set, range, &w.cur, e);
	}
	return r;
}

static int take_any(struct adding *a, size_t set, struct hw_err *e)
{
	int r = refuse_second(a, set, e);
	if (r < 0)
		return r;
	r = take_free(a, set, e);
	if (r > 0 && lease_end_stale(&a->store, e) > 0)
		r = take_free(a, set, e);
	if (r <= 0)
		return r;
	autofree char *ranges = range_set_format(&a->pool.sets[set]);
	return err_text(e, -EADDRNOTAVAIL, "no IP addresses available in range set: %s", ranges);
}

static int refuse_rest(const struct ip_list *asked, struct hw_err *e)
{
	AUTO(buf_done) struct buf list = { 0 };
	char text[HW_IP_TEXT];

	if (asked->n == 0)
		return 0;
	for (size_t i = 0; i < asked->n; i++)
		buf_printf(&list, " %s", hw_ip_format(&asked->v[i], text));
	return err_text(e, -EADDRNOTAVAIL, "failed to allocate all requested IPs:%s", list.data);
}

static int take_all(struct adding *a, struct hw_err *e)
{
	struct hw_ip ip;

	int r = lease_find(&a->store, &a->owner, &a->held, e);
	for (size_t set = 0; r >= 0 && set < a->pool.n; set++) {
		r = next_asked(a, set, &ip) ? take_asked(a, set, &ip, e) : take_any(a, set, e);
		if (r < 0)
			err_ctx(e, "failed to allocate for range %zu", set);
	}
	if (r >= 0)
		r = refuse_rest(&a->pool.asked, e);
	if (r >= 0)
		r = lease_finish(&a->store, &a->owner, e);
	return r;
}

/* An IPAM plugin answers with its own part alone, whatever came before it. */
static int host_local_add(struct hw_call *call, struct hw_err *e)
{
	const struct pool_conf *conf = call->conf;
	AUTO(adding_done)
	struct adding a = {
		.call = call,
		.owner = owner_of(call),
		.store = LEASE_STORE,
	};

	hw_result_free(call->result);
	call->result = hw_result_new();
	int r = pool_init(&a.pool, conf, call->args, call->version, e);
	if (r >= 0 && !str_empty(conf->ipam.resolv_conf))
		r = resolv_read(conf->ipam.resolv_conf, &call->result->dns, e);
	if (r >= 0)
		r = host_local_open(call, LEASE_MAKE, &a.store, e);
	if (r >= 0)
		r = take_all(&a, e);
	for (size_t i = 0; r >= 0 && i < conf->ipam.routes.n; i++)
		*hw_result_add_route(call->result) = ((struct hw_route *)conf->ipam.routes.v)[i];
	return r;
}

/* ---- DEL ------------------------------------------------------------------------------- */

static int undo(const struct hw_call *call, struct lease_store *store, struct hw_err *e)
{
	const struct host_local_made *made = call->made;
	struct lease_owner owner = owner_of(call);
	struct hw_ip ip;
	int r = 0;

	for (size_t i = made->addresses.n; r >= 0 && i-- > 0;) {
		r = hw_ip_parse(made->addresses.v[i], &ip, e);
		if (r >= 0)
			r = lease_end(store, &owner, &ip, e);
	}
	return r < 0 ? r : 0;
}

static int host_local_del(struct hw_call *call, struct hw_err *e)
{
	AUTO(lease_close) struct lease_store store = LEASE_STORE;
	AUTO(ip_list_done) struct ip_list known = { 0 };
	const struct host_local_made *made = call->made;
	struct lease_owner owner = owner_of(call);
	bool undoing = str_equal(call->command, "ADD");

	if (undoing && made->addresses.n == 0)
		return 0;
	int r = host_local_open(call, LEASE_CHANGE, &store, e);
	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return r;
	if (undoing)
		return undo(call, &store, e);
	for (size_t i = 0; call->prev && i < call->prev->n_ips; i++)
		ip_list_add(&known, &call->prev->ips[i].address.ip);
	return lease_end_all(&store, &owner, &known, e);
}

/* ---- CHECK ----------------------------------------------------------------------------- */

/* Upstream is content with any lease of the owner; each address of the result must be one. */
static int check_known(const struct hw_call *call, const struct pool *pool,
		       const struct lease_store *store, struct hw_err *e)
{
	struct lease_owner owner = owner_of(call);
	char text[HW_IP_TEXT];

	for (size_t i = 0; call->prev && i < call->prev->n_ips; i++) {
		const struct hw_ip *ip = &call->prev->ips[i].address.ip;
		bool ours = false;

		for (size_t set = 0; set < pool->n; set++)
			ours = ours || range_set_find(&pool->sets[set], ip);
		int m = ours ? lease_match(store, ip, &owner) : LEASE_WHOLE;
		if (m < 0)
			return err_set(e, m, "host-local: read the lease %s",
				       hw_ip_format(ip, text));
		if (m == LEASE_NONE || m == LEASE_EMPTY)
			return err_text(e, -ENOENT, "host-local: %s is not leased to anybody",
					hw_ip_format(ip, text));
		if (m == LEASE_OTHER)
			return err_text(e, -EADDRINUSE, "host-local: %s is leased to another",
					hw_ip_format(ip, text));
	}
	return 0;
}

static int host_local_check(struct hw_call *call, struct hw_err *e)
{
	AUTO(lease_close) struct lease_store store = LEASE_STORE;
	AUTO(pool_done) struct pool pool = { 0 };
	struct lease_owner owner = owner_of(call);

	int r = pool_init(&pool, call->conf, call->args, call->version, e);
	if (r < 0)
		return r;
	r = host_local_open(call, LEASE_LOOK, &store, e);
	if (r >= 0)
		r = lease_has_any(&store, &owner, e);
	if (r == 0 || r == -ENOENT)
		return err_text(e, -ENOENT,
				"host-local: Failed to find address added by container %s",
				call->container_id);
	return r < 0 ? r : check_known(call, &pool, &store, e);
}

/* ---- STATUS ---------------------------------------------------------------------------- */

/* The directory, or what is there of the way to it. */
static char *nearest(const char *path)
{
	/* a relative one begins where we are */
	char *dir = str_printf("%s%s", *path == '/' ? "" : "./", path), *slash;

	while (access(dir, F_OK) < 0 && errno == ENOENT && (slash = strrchr(dir, '/')))
		slash[slash == dir && slash[1]] = '\0';
	return dir;
}

static int check_room(const char *path, struct hw_err *e)
{
	autofree char *dir = nearest(path);
	struct statvfs fs;

	if (access(dir, W_OK | X_OK) < 0)
		return err_cni(e, HW_CNI_NOT_AVAILABLE, "leases cannot be written to %s: %s", path,
			       strerror(errno));
	if (statvfs(dir, &fs) < 0)
		return 0;
	if ((fs.f_blocks && !fs.f_bavail) || (fs.f_files && !fs.f_favail))
		return err_cni(e, HW_CNI_NOT_AVAILABLE, "leases cannot be written to %s: %s", path,
			       strerror(ENOSPC));
	return 0;
}

static bool has_free(const struct range_set *set, const struct ip_list *taken,
		     const struct ip_list *stale)
{
	struct hw_ip none = { 0 };
	struct range_walk w;

	range_walk_init(&w, set, &none);
	while (range_walk_next(&w))
		if (!ip_list_has(taken, &w.cur) || ip_list_has(stale, &w.cur))
			return true;
	return false;
}

static int check_sets(const struct pool *pool, const struct lease_store *store, struct hw_err *e)
{
	AUTO(ip_list_done) struct ip_list taken = { 0 }, stale = { 0 };

	int r = lease_list(store, &taken, e);
	if (r >= 0)
		r = lease_list_stale(store, &stale, e);
	for (size_t i = 0; r >= 0 && i < pool->n; i++) {
		autofree char *ranges = range_set_format(&pool->sets[i]);

		if (!has_free(&pool->sets[i], &taken, &stale))
			r = err_cni(e, HW_CNI_NOT_AVAILABLE,
				    "no IP addresses available in range set: %s", ranges);
	}
	return r;
}

static int host_local_status(struct hw_call *call, struct hw_err *e)
{
	AUTO(lease_close) struct lease_store store = LEASE_STORE;
	AUTO(pool_done) struct pool pool = { 0 };
	autofree char *path = str_printf("%s/%s", host_local_dir(call), call->network);

	int r = pool_init(&pool, call->conf, call->args, call->version, e);
	if (r >= 0)
		r = check_room(path, e);
	if (r < 0)
		return r;
	r = host_local_open(call, LEASE_LOOK, &store, e);
	if (r == -ENOENT)
		return 0;
	return r < 0 ? r : check_sets(&pool, &store, e);
}

const struct hw_plugin host_local_plugin = {
	.size = sizeof(struct hw_plugin),
	.name = "host-local",
	.summary = "leases addresses from ranges of this host's own",
	.add = host_local_add,
	.del = host_local_del,
	.check = host_local_check,
	.gc = host_local_gc,
	.status = host_local_status,
	.fields = pool_fields,
	.conf_size = sizeof(struct pool_conf),
	.made_fields = host_local_made_fields,
	.made_size = sizeof(struct host_local_made),
};
