/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/host-local/pool.c - the configuration of host-local: range sets and requested addresses
 *
 * How:   the sets are those in runtimeConfig.ipRanges, then the single range of the
 *        older format, then those in ipam.ranges. The index of a set in this order
 *        is the number in the name of its last_reserved_ip file. The requested
 *        addresses are those in CNI_ARGS, args.cni.ips and runtimeConfig.ips, in
 *        this order; a prefix length is ignored.
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
	  .help = "the subnet, without host bits; allocated addresses have its prefix length" },   \
		{ "rangeStart", HW_IP, HW_AT(type, member.start),                                  \
		  .help = "first address to allocate; default: the first of the subnet" },         \
		{ "rangeEnd", HW_IP, HW_AT(type, member.end),                                      \
		  .help = "last address to allocate; default: the last of the subnet (IPv4: the "  \
			  "one before the broadcast address)" },                                   \
	{                                                                                          \
		"gateway", HW_IP, HW_AT(type, member.gateway),                                     \
			.help = "gateway; never allocated; default: first address of the subnet"   \
	}

/* RANGE_FIELDS takes the name of a member, so the range needs a struct around it. */
struct range_object {
	struct range range;
};

static const struct hw_field range_fields[] = {
	RANGE_FIELDS(struct range_object, range),
	{ 0 },
};

static const struct hw_field pool_ipam_fields[] = {
	{ "ranges", HW_JSON, HW_AT(struct pool_ipam, ranges),
	  .help = "list of sets, each a list of objects with subnet, rangeStart, rangeEnd and "
		  "gateway; one address is allocated from each set" },
	RANGE_FIELDS(struct pool_ipam, single),
	{ "routes", HW_LIST, HW_AT(struct pool_ipam, routes), .sub = result_route_fields,
	  .size = sizeof(struct hw_route), .help = "copied to the result" },
	{ "dataDir", HW_STRING, HW_AT(struct pool_ipam, data_dir),
	  .def = "\"/var/lib/cni/networks\"",
	  .help = "directory of the leases, with a subdirectory for each network" },
	{ "resolvConf", HW_STRING, HW_AT(struct pool_ipam, resolv_conf),
	  .help = "a file in the format of resolv.conf; copied to the dns of the result" },
	{ 0 },
};

static const struct hw_field pool_args_cni_fields[] = {
	{ "ips", HW_STRINGS, HW_AT(struct pool_args_cni, ips), .help = "requested addresses" },
	{ 0 },
};

static const struct hw_field pool_args_fields[] = {
	{ "cni", HW_OBJECT, HW_AT(struct pool_args, cni), .sub = pool_args_cni_fields },
	{ 0 },
};

static const struct hw_field pool_runtime_fields[] = {
	{ "ipRanges", HW_JSON, HW_AT(struct pool_runtime, ranges),
	  .help = "additional sets, placed before all others (capability ipRanges)" },
	{ "ips", HW_STRINGS, HW_AT(struct pool_runtime, ips),
	  .help = "requested addresses (capability ips)" },
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

/* ---- requested addresses ----------------------------------------------------------- */

/* @text: an address, with or without a prefix length */
static int add_requested(struct pool *pool, const char *text, struct hw_err *e)
{
	struct hw_prefix prefix = { 0 };

	if (hw_prefix_parse(text, &prefix, e) < 0 && hw_ip_parse(text, &prefix.ip, e) < 0)
		return err_text(e, -EINVAL, "invalid IP address %.100s", text);
	for (size_t i = 0; i < pool->requested.n; i++)
		if (hw_ip_equal(&pool->requested.v[i], &prefix.ip))
			return 0;
	ip_list_add(&pool->requested, &prefix.ip);
	return 0;
}

static int collect_requested(struct pool *pool, const struct pool_conf *conf, const char *args,
			     struct hw_err *e)
{
	int r;

	static const char *const keys[] = { "IP", NULL };
	const struct hw_strings *const lists[] = { &conf->args.cni.ips, &conf->runtime.ips };
	AUTO(hw_strings_free) struct hw_strings values = { 0 };

	r = hw_args_parse(args, keys, &values, e);
	if (r < 0)
		return r;
	if (!str_empty(values.v[0]) && add_requested(pool, values.v[0], e) < 0)
		return err_ctx(e, "ARGS: error parsing value of pair \"IP=%s\"", values.v[0]);
	for (size_t i = 0; i < ARRAY_SIZE(lists); i++)
		for (size_t j = 0; r >= 0 && j < lists[i]->n; j++)
			r = add_requested(pool, lists[i]->v[j], e);
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
		return err_text(e, -EINVAL, "range set: expected a list, got %s",
				value_kind_name(value_kind(list)));
	for (size_t i = 0; r >= 0 && i < value_count(list); i++) {
		struct range_object object = { 0 };

		r = field_decode(range_fields, value_at(list, i), &object, e);
		add_range(set, &object.range);
	}
	return r;
}

static int decode_sets(struct pool *pool, const char *key, const char *json, struct hw_err *e)
{
	AUTO(value_free) struct value *sets = NULL;
	int r;

	if (!json)
		return 0;
	r = value_parse(json, strlen(json), &sets, e);
	if (r >= 0 && value_kind(sets) == VALUE_NULL)
		return 0;
	if (r >= 0 && value_kind(sets) != VALUE_ARRAY)
		r = err_text(e, -EINVAL, "expected a list, got %s",
			     value_kind_name(value_kind(sets)));
	for (size_t i = 0; r >= 0 && i < value_count(sets); i++)
		r = decode_set(pool, value_at(sets, i), e);
	return r < 0 ? err_ctx(e, "%s", key) : 0;
}

static int check_sets(struct pool *pool, const char *version, struct hw_err *e)
{
	size_t v4 = 0, v6 = 0;

	for (size_t i = 0; i < pool->n; i++) {
		int r;

		r = range_set_init(&pool->sets[i], e);
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

int pool_init(struct pool *pool, const struct pool_conf *conf, const char *args,
	      const char *version, struct hw_err *e)
{
	int r;

	*pool = (struct pool){ 0 };
	if (!conf->has_ipam)
		return err_text(e, -EINVAL, "IPAM config missing 'ipam' key");
	r = collect_requested(pool, conf, args, e);
	if (r < 0)
		return r;
	r = decode_sets(pool, "runtimeConfig.ipRanges", conf->runtime.ranges, e);
	if (r < 0)
		return r;
	if (conf->ipam.single.subnet.ip.family)
		add_range(add_set(pool), &conf->ipam.single);
	r = decode_sets(pool, "ipam.ranges", conf->ipam.ranges, e);
	if (r < 0)
		return r;
	if (pool->n == 0)
		return err_text(e, -EINVAL, "no IP ranges specified");
	return check_sets(pool, version, e);
}

void pool_done(struct pool *pool)
{
	for (size_t i = 0; i < pool->n; i++)
		free(pool->sets[i].v);
	free(pool->sets);
	ip_list_done(&pool->requested);
	*pool = (struct pool){ 0 };
}
