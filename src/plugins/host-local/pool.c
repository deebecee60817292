/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/host-local/pool.c - what a configuration lets host-local hand out
 *
 * How:   the sets are runtimeConfig.ipRanges, then the single range of the older
 *        form, then ipam.ranges. A set's place in this order is the number in the
 *        name of its last_reserved_ip file. The addresses asked for are those of
 *        CNI_ARGS, args.cni.ips and runtimeConfig.ips; a prefix length is dropped.
 */
#include "plugins/host-local/pool.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "base/json/field.h"
#include "base/json/value.h"
#include "base/str.h"
#include "cni/result.h"
#include "cni/version.h"

#define RANGE_FIELDS(type, member)                                                                 \
	{ "subnet", HW_PREFIX, HW_AT(type, member.subnet),                                         \
	  .help = "the network, without host bits; its length is that of the leases" },            \
		{ "rangeStart", HW_IP, HW_AT(type, member.start),                                  \
		  .help = "the first address to hand out; without it the network's first" },       \
		{ "rangeEnd", HW_IP, HW_AT(type, member.end),                                      \
		  .help = "the last address to hand out; without it the network's last, but not "  \
			  "IPv4's broadcast address" },                                            \
	{                                                                                          \
		"gateway", HW_IP, HW_AT(type, member.gateway),                                     \
			.help = "never handed out; without it the network's first address"         \
	}

struct one {
	struct range range;
};

static const struct hw_field range_fields[] = {
	RANGE_FIELDS(struct one, range),
	{ 0 },
};

static const struct hw_field pool_ipam_fields[] = {
	{ "ranges", HW_JSON, HW_AT(struct pool_ipam, ranges),
	  .help = "list of sets, each a list of objects with subnet, rangeStart, rangeEnd and "
		  "gateway; every set gives one address" },
	RANGE_FIELDS(struct pool_ipam, single),
	{ "routes", HW_LIST, HW_AT(struct pool_ipam, routes), .sub = result_route_fields,
	  .size = sizeof(struct hw_route), .help = "copied to the result" },
	{ "dataDir", HW_STRING, HW_AT(struct pool_ipam, data_dir),
	  .def = "\"/var/lib/cni/networks\"", .help = "where the leases are kept, by network" },
	{ "resolvConf", HW_STRING, HW_AT(struct pool_ipam, resolv_conf),
	  .help = "a resolv.conf that becomes the result's dns" },
	{ 0 },
};

static const struct hw_field pool_args_cni_fields[] = {
	{ "ips", HW_STRINGS, HW_AT(struct pool_args_cni, ips), .help = "addresses asked for" },
	{ 0 },
};

static const struct hw_field pool_args_fields[] = {
	{ "cni", HW_OBJECT, HW_AT(struct pool_args, cni), .sub = pool_args_cni_fields },
	{ 0 },
};

static const struct hw_field pool_runtime_fields[] = {
	{ "ipRanges", HW_JSON, HW_AT(struct pool_runtime, ranges),
	  .help = "further sets, before all others (capability ipRanges)" },
	{ "ips", HW_STRINGS, HW_AT(struct pool_runtime, ips),
	  .help = "addresses asked for (capability ips)" },
	{ 0 },
};

const struct hw_field pool_fields[] = {
	{ "ipam", HW_OBJECT, HW_AT(struct pool_conf, ipam), .sub = pool_ipam_fields,
	  .has = HW_HAS(struct pool_conf, has_ipam) },
	{ "args", HW_OBJECT, HW_AT(struct pool_conf, args), .sub = pool_args_fields },
	{ "runtimeConfig", HW_OBJECT, HW_AT(struct pool_conf, runtime),
	  .sub = pool_runtime_fields },
	{ 0 },
};

/* ---- addresses asked for --------------------------------------------------------- */

/* An address, or one with a prefix length. */
static int ask(struct pool *pool, const char *text, struct hw_err *e)
{
	struct hw_prefix prefix = { 0 };

	if (hw_prefix_parse(text, &prefix, e) < 0 && hw_ip_parse(text, &prefix.ip, e) < 0)
		return err_text(e, -EINVAL, "invalid IP address %.100s", text);
	for (size_t i = 0; i < pool->asked.n; i++)
		if (hw_ip_equal(&pool->asked.v[i], &prefix.ip))
			return 0;
	ip_list_add(&pool->asked, &prefix.ip);
	return 0;
}

static int ask_all(struct pool *pool, const struct hw_strings *ips, struct hw_err *e)
{
	int r = 0;

	for (size_t i = 0; r >= 0 && i < ips->n; i++)
		r = ask(pool, ips->v[i], e);
	return r;
}

static int pool_ask(struct pool *pool, const struct pool_conf *conf, const char *args,
		    struct hw_err *e)
{
	static const char *const keys[] = { "IP", NULL };
	AUTO(hw_strings_free) struct hw_strings values = { 0 };

	int r = hw_args_parse(args, keys, &values, e);
	if (r >= 0 && !str_empty(values.v[0]) && ask(pool, values.v[0], e) < 0)
		return err_ctx(e, "ARGS: error parsing value of pair \"IP=%s\"", values.v[0]);
	if (r >= 0)
		r = ask_all(pool, &conf->args.cni.ips, e);
	if (r >= 0)
		r = ask_all(pool, &conf->runtime.ips, e);
	return r;
}

/* ---- sets -------------------------------------------------------------------------- */

static struct range_set *add_set(struct pool *pool)
{
	pool->sets = mem_resize(pool->sets, pool->n + 1, sizeof(*pool->sets));
	pool->sets[pool->n] = (struct range_set){ 0 };
	return &pool->sets[pool->n++];
}

static void add_range(struct range_set *set, const struct range *range)
{
	set->v = mem_resize(set->v, set->n + 1, sizeof(*set->v));
	set->v[set->n++] = *range;
}

static int decode_set(struct pool *pool, const struct value *list, struct hw_err *e)
{
	struct range_set *set = add_set(pool);
	int r = 0;

	if (value_kind(list) != VALUE_ARRAY && value_kind(list) != VALUE_NULL)
		return err_text(e, -EINVAL, "a range set is %s, not a list",
				value_kind_name(value_kind(list)));
	for (size_t i = 0; r >= 0 && i < value_count(list); i++) {
		struct one one = { 0 };

		r = field_decode(range_fields, value_at(list, i), &one, e);
		add_range(set, &one.range);
	}
	return r;
}

static int decode_sets(struct pool *pool, const char *key, const char *json, struct hw_err *e)
{
	AUTO(value_free) struct value *sets = NULL;

	if (!json)
		return 0;
	int r = value_parse(json, strlen(json), &sets, e);
	if (r >= 0 && value_kind(sets) == VALUE_NULL)
		return 0;
	if (r >= 0 && value_kind(sets) != VALUE_ARRAY)
		r = err_text(e, -EINVAL, "%s, not a list", value_kind_name(value_kind(sets)));
	for (size_t i = 0; r >= 0 && i < value_count(sets); i++)
		r = decode_set(pool, value_at(sets, i), e);
	return r < 0 ? err_ctx(e, "%s", key) : 0;
}

static int gather_sets(struct pool *pool, const struct pool_conf *conf, struct hw_err *e)
{
	int r = decode_sets(pool, "runtimeConfig.ipRanges", conf->runtime.ranges, e);

	if (r >= 0 && conf->ipam.single.subnet.ip.family)
		add_range(add_set(pool), &conf->ipam.single);
	if (r >= 0)
		r = decode_sets(pool, "ipam.ranges", conf->ipam.ranges, e);
	if (r >= 0 && pool->n == 0)
		r = err_text(e, -EINVAL, "no IP ranges specified");
	return r;
}

static int check_sets(struct pool *pool, const char *version, struct hw_err *e)
{
	size_t v4 = 0, v6 = 0;

	for (size_t i = 0; i < pool->n; i++) {
		int r = range_set_init(&pool->sets[i], e);
		if (r < 0)
			return err_ctx(e, "invalid range set %zu", i);
		*(pool->sets[i].v[0].start.family == AF_INET ? &v4 : &v6) += 1;
	}
	if ((v4 > 1 || v6 > 1) && !version_at_least(version, "0.3.0"))
		return err_text(e, -EINVAL,
				"CNI version %s does not support more than 1 address per family",
				version);
	for (size_t i = 0; i < pool->n; i++)
		for (size_t j = i + 1; j < pool->n; j++)
			if (range_set_overlaps(&pool->sets[i], &pool->sets[j]))
				return err_text(e, -EINVAL, "range set %zu overlaps with %zu", i,
						j);
	return 0;
}

/**
 * pool_init() - gather and check
 * @pool: to be ended by pool_done() in any case
 */
int pool_init(struct pool *pool, const struct pool_conf *conf, const char *args,
	      const char *version, struct hw_err *e)
{
	*pool = (struct pool){ 0 };
	if (!conf->has_ipam)
		return err_text(e, -EINVAL, "IPAM config missing 'ipam' key");
	int r = pool_ask(pool, conf, args, e);
	if (r >= 0)
		r = gather_sets(pool, conf, e);
	if (r >= 0)
		r = check_sets(pool, version, e);
	return r;
}

/**
 * pool_done() - free what it holds
 */
void pool_done(struct pool *pool)
{
	for (size_t i = 0; i < pool->n; i++)
		free(pool->sets[i].v);
	free(pool->sets);
	ip_list_done(&pool->asked);
	*pool = (struct pool){ 0 };
}
