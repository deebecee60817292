/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/bandwidth/conf.c - configuration and attachment record of bandwidth; converts limits to
 * struct tc_shape
 */
#include <errno.h>
#include <stdint.h>

#include "base/err.h"
#include "base/ip.h"
#include "base/str.h"
#include "net/rtnl/link.h"
#include "plugins/bandwidth/bandwidth.h"

#define SUBNETS_MAX 200 /* each subnet is a filter; the kernel tries one after the other */

#define KEY_FIELDS(type, member)                                                                   \
	{ "ingressRate", HW_INT64, HW_AT(type, member.ingress_rate), .max = INT64_MAX,             \
	  .help = "bits per second that the pod may receive; 0: unlimited" },                      \
		{ "ingressBurst", HW_INT64, HW_AT(type, member.ingress_burst), .max = INT64_MAX,   \
		  .help = "bits that the pod may receive at once; required with a rate" },         \
		{ "egressRate", HW_INT64, HW_AT(type, member.egress_rate), .max = INT64_MAX,       \
		  .help = "bits per second that the pod may send; 0: unlimited" },                 \
		{ "egressBurst", HW_INT64, HW_AT(type, member.egress_burst), .max = INT64_MAX,     \
		  .help = "bits that the pod may send at once; required with a rate" },            \
		{ "unshapedSubnets", HW_STRINGS, HW_AT(type, member.unshaped),                     \
		  .help = "do not limit traffic between the pod and these subnets" },              \
		{ "shapedSubnets", HW_STRINGS, HW_AT(type, member.shaped),                         \
		  .help = "limit only traffic between the pod and these subnets" },                \
	{                                                                                          \
		"egress", HW_STRING, HW_AT(type, member.egress),                                   \
			.help = "where egress is limited: \"pod\": on the pod's interface; "       \
				"\"ifb\": on the host, for pods that may change their own "        \
				"network"                                                          \
	}

struct keys_only {
	struct bandwidth_keys keys;
};

static const struct hw_field bandwidth_keys_fields[] = {
	KEY_FIELDS(struct keys_only, keys),
	{ 0 },
};

static const struct hw_field bandwidth_runtime_fields[] = {
	{ "bandwidth", HW_OBJECT, HW_AT(struct bandwidth_runtime, bandwidth),
	  .sub = bandwidth_keys_fields,
	  .help = "limits for this pod, with the same keys as above; they override the "
		  "configuration (capability "
		  "bandwidth)" },
	{ 0 },
};

const struct hw_field bandwidth_fields[] = {
	KEY_FIELDS(struct bandwidth_conf, keys),
	{ "runtimeConfig", HW_OBJECT, HW_AT(struct bandwidth_conf, runtime),
	  .sub = bandwidth_runtime_fields },
	{ 0 },
};

const struct hw_field bandwidth_record_fields[] = {
	{ "host", HW_STRING, HW_AT(struct bandwidth_record, host) },
	{ "hostIndex", HW_INT, HW_AT(struct bandwidth_record, host_index) },
	{ "hostUnlimited", HW_BOOL, HW_AT(struct bandwidth_record, host_unlimited) },
	{ "podIndex", HW_INT, HW_AT(struct bandwidth_record, pod_index) },
	{ "ifb", HW_STRING, HW_AT(struct bandwidth_record, ifb) },
	{ "ifbMac", HW_STRING, HW_AT(struct bandwidth_record, ifb_mac) },
	{ 0 },
};

static int set_limit(struct bandwidth_limit *limit, int64_t rate, int64_t burst, struct hw_err *e)
{
	if (rate == 0 && burst == 0)
		return 0;
	if (burst == 0)
		return err_cni(e, HW_CNI_INVALID_CONFIG, "if rate is set, burst must also be set");
	if (rate == 0)
		return err_cni(e, HW_CNI_INVALID_CONFIG, "if burst is set, rate must also be set");
	if (burst / 8 >= UINT32_MAX)
		return err_cni(e, HW_CNI_INVALID_CONFIG, "burst cannot be more than 4GB");
	*limit = (struct bandwidth_limit){ (uint64_t)rate, (uint64_t)burst };
	return 0;
}

static int set_limits(struct bandwidth *b, const struct bandwidth_keys *keys, struct hw_err *e)
{
	int r;

	r = set_limit(&b->ingress, keys->ingress_rate, keys->ingress_burst, e);
	return r < 0 ? r : set_limit(&b->egress, keys->egress_rate, keys->egress_burst, e);
}

static bool has_subnet(const struct bandwidth *b, const struct hw_prefix *subnet)
{
	for (size_t i = 0; i < b->n_subnets; i++)
		if (hw_prefix_equal(&b->subnets[i], subnet))
			return true;
	return false;
}

static int set_subnets(struct bandwidth *b, const struct bandwidth_keys *keys, struct hw_err *e)
{
	const struct hw_strings *texts = keys->shaped.n ? &keys->shaped : &keys->unshaped;

	if (keys->shaped.n && keys->unshaped.n)
		return err_cni(e, HW_CNI_INVALID_CONFIG,
			       "unshapedSubnets and shapedSubnets cannot be both specified, one of "
			       "them should be discarded");
	if (texts->n > SUBNETS_MAX)
		return err_cni(e, HW_CNI_INVALID_CONFIG, "too many subnets: got %zu, at most %d",
			       texts->n, SUBNETS_MAX);
	b->only = keys->shaped.n;
	if (!texts->n)
		return 0;
	b->subnets = mem_resize(NULL, texts->n, sizeof(*b->subnets));
	for (size_t i = 0; i < texts->n; i++) {
		struct hw_prefix subnet;
		struct hw_err why;

		if (hw_prefix_parse(texts->v[i], &subnet, &why) < 0)
			return err_cni(e, HW_CNI_INVALID_CONFIG,
				       "bad subnet \"%s\" provided, details %s", texts->v[i],
				       why.msg);
		subnet.ip = prefix_network(&subnet);
		if (!has_subnet(b, &subnet))
			b->subnets[b->n_subnets++] = subnet;
	}
	return 0;
}

int bandwidth_init(struct bandwidth *b, const struct bandwidth_conf *conf, struct hw_err *e)
{
	const struct bandwidth_keys *runtime = &conf->runtime.bandwidth, *keys = &conf->keys;
	const char *egress = str_empty(runtime->egress) ? keys->egress : runtime->egress;
	bool has_subnets = runtime->shaped.n || runtime->unshaped.n;
	int r;

	*b = (struct bandwidth){ 0 };
	r = set_limits(b, keys, e);
	if (r < 0)
		return r;
	r = set_limits(b, runtime, e);
	if (r < 0)
		return r;
	r = set_subnets(b, has_subnets ? runtime : keys, e);
	if (r < 0)
		return r;
	b->ifb = str_equal(egress, "ifb");
	if (!b->ifb && !str_empty(egress) && !str_equal(egress, "pod"))
		return err_cni(e, HW_CNI_INVALID_CONFIG,
			       "invalid egress \"%s\": want \"pod\" or \"ifb\"", egress);
	return 0;
}

void bandwidth_done(struct bandwidth *b)
{
	free(b->subnets);
	*b = (struct bandwidth){ 0 };
}

bool bandwidth_is_unlimited(const struct bandwidth *b)
{
	return !b->ingress.rate && !b->egress.rate;
}

static struct tc_shape limit_shape(const struct bandwidth *b, const struct bandwidth_limit *limit,
				   const struct link *link)
{
	return (struct tc_shape){ .bucket = tc_tbf_from_bits(limit->rate, limit->burst, link->mtu),
				  .subnets = b->subnets,
				  .n_subnets = b->n_subnets,
				  .only = b->only };
}

struct tc_shape bandwidth_ingress(const struct bandwidth *b, const struct link *link)
{
	struct tc_shape ingress = limit_shape(b, &b->ingress, link);

	ingress.by_source = true;
	return ingress;
}

struct tc_shape bandwidth_egress(const struct bandwidth *b, const struct link *link)
{
	return limit_shape(b, &b->egress, link);
}
