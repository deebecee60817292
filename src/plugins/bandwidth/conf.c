/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/bandwidth/conf.c - what bandwidth is asked for, and what a record says
 *
 * How:   what the runtime says about a direction counts before what the
 *        configuration says about it; so do its subnets and its "egress".
 */
#include <errno.h>
#include <stdint.h>

#include "base/err.h"
#include "base/ip.h"
#include "base/str.h"
#include "plugins/bandwidth/bandwidth.h"

#define SUBNETS_MAX 200 /* each is a filter that packets are compared with, one after the other */

#define KEY_FIELDS(type, member)                                                                   \
	{ "ingressRate", HW_INT64, HW_AT(type, member.ingress_rate), .max = INT64_MAX,             \
	  .help = "bits per second that may come to the pod; 0: any" },                            \
		{ "ingressBurst", HW_INT64, HW_AT(type, member.ingress_burst), .max = INT64_MAX,   \
		  .help = "bits that may come at once; needed with a rate" },                      \
		{ "egressRate", HW_INT64, HW_AT(type, member.egress_rate), .max = INT64_MAX,       \
		  .help = "bits per second that the pod may send; 0: any" },                       \
		{ "egressBurst", HW_INT64, HW_AT(type, member.egress_burst), .max = INT64_MAX,     \
		  .help = "bits that it may send at once; needed with a rate" },                   \
		{ "unshapedSubnets", HW_STRINGS, HW_AT(type, member.unshaped),                     \
		  .help = "what the pod exchanges with these is not limited" },                    \
		{ "shapedSubnets", HW_STRINGS, HW_AT(type, member.shaped),                         \
		  .help = "only what the pod exchanges with these is limited" },                   \
	{                                                                                          \
		"egress", HW_STRING, HW_AT(type, member.egress),                                   \
			.help = "where what the pod sends is limited: pod, on its interface, or "  \
				"ifb, on the host, for pods that may change their own network"     \
	}

struct alone {
	struct bandwidth_keys keys;
};

static const struct hw_field bandwidth_keys_fields[] = {
	KEY_FIELDS(struct alone, keys),
	{ 0 },
};

static const struct hw_field bandwidth_runtime_fields[] = {
	{ "bandwidth", HW_OBJECT, HW_AT(struct bandwidth_runtime, bandwidth),
	  .sub = bandwidth_keys_fields,
	  .help = "the same keys; they count before the others (capability bandwidth)" },
	{ 0 },
};

const struct hw_field bandwidth_fields[] = {
	KEY_FIELDS(struct bandwidth_conf, keys),
	{ "runtimeConfig", HW_OBJECT, HW_AT(struct bandwidth_conf, runtime),
	  .sub = bandwidth_runtime_fields },
	{ 0 },
};

const struct hw_field bandwidth_made_fields[] = {
	{ "host", HW_STRING, HW_AT(struct bandwidth_made, host) },
	{ "hostIndex", HW_INT, HW_AT(struct bandwidth_made, host_index) },
	{ "podIndex", HW_INT, HW_AT(struct bandwidth_made, pod_index) },
	{ "ifb", HW_STRING, HW_AT(struct bandwidth_made, ifb) },
	{ "ifbMac", HW_STRING, HW_AT(struct bandwidth_made, ifb_mac) },
	{ "asked", HW_OBJECT, HW_AT(struct bandwidth_made, asked), .sub = bandwidth_keys_fields },
	{ 0 },
};

static int choose_limit(struct bandwidth_limit *limit, int64_t rate, int64_t burst,
			struct hw_err *e)
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

static int choose_limits(struct bandwidth *b, const struct bandwidth_keys *keys, struct hw_err *e)
{
	int r = choose_limit(&b->ingress, keys->ingress_rate, keys->ingress_burst, e);

	return r < 0 ? r : choose_limit(&b->egress, keys->egress_rate, keys->egress_burst, e);
}

static bool has_subnet(const struct bandwidth *b, const struct hw_prefix *subnet)
{
	for (size_t i = 0; i < b->n_subnets; i++)
		if (hw_prefix_equal(&b->subnets[i], subnet))
			return true;
	return false;
}

static int take_subnets(struct bandwidth *b, const struct hw_strings *texts, struct hw_err *e)
{
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

static int choose_subnets(struct bandwidth *b, const struct bandwidth_keys *keys, struct hw_err *e)
{
	const struct hw_strings *subnets = keys->shaped.n ? &keys->shaped : &keys->unshaped;

	if (keys->shaped.n && keys->unshaped.n)
		return err_cni(e, HW_CNI_INVALID_CONFIG,
			       "unshapedSubnets and shapedSubnets cannot be both specified, one of "
			       "them should be discarded");
	if (subnets->n > SUBNETS_MAX)
		return err_cni(e, HW_CNI_INVALID_CONFIG, "%zu subnets, and %d is the most",
			       subnets->n, SUBNETS_MAX);
	b->only = keys->shaped.n;
	return subnets->n ? take_subnets(b, subnets, e) : 0;
}

static int choose_egress(struct bandwidth *b, const char *egress, struct hw_err *e)
{
	b->ifb = str_equal(egress, "ifb");
	if (b->ifb || str_empty(egress) || str_equal(egress, "pod"))
		return 0;
	return err_cni(e, HW_CNI_INVALID_CONFIG, "egress is \"%s\", and can be \"pod\" or \"ifb\"",
		       egress);
}

/**
 * bandwidth_init() - what is asked for, by configuration and runtime
 */
int bandwidth_init(struct bandwidth *b, const struct bandwidth_conf *conf, struct hw_err *e)
{
	const struct bandwidth_keys *runtime = &conf->runtime.bandwidth, *keys = &conf->keys;
	bool theirs = runtime->shaped.n || runtime->unshaped.n;

	*b = (struct bandwidth){ 0 };
	int r = choose_limits(b, keys, e);
	if (r >= 0)
		r = choose_limits(b, runtime, e);
	if (r >= 0)
		r = choose_subnets(b, theirs ? runtime : keys, e);
	if (r >= 0)
		r = choose_egress(b, str_empty(runtime->egress) ? keys->egress : runtime->egress,
				  e);
	return r;
}

/**
 * bandwidth_done() - free what it holds
 */
void bandwidth_done(struct bandwidth *b)
{
	free(b->subnets);
	*b = (struct bandwidth){ 0 };
}

/**
 * bandwidth_to_keys() - what is asked for, as a configuration would say it
 */
void bandwidth_to_keys(const struct bandwidth *b, struct bandwidth_keys *keys)
{
	struct hw_strings *subnets = b->only ? &keys->shaped : &keys->unshaped;
	char text[HW_PREFIX_TEXT];

	keys->ingress_rate = (int64_t)b->ingress.rate;
	keys->ingress_burst = (int64_t)b->ingress.burst;
	keys->egress_rate = (int64_t)b->egress.rate;
	keys->egress_burst = (int64_t)b->egress.burst;
	keys->egress = str_copy(b->ifb ? "ifb" : "pod");
	for (size_t i = 0; i < b->n_subnets; i++)
		strings_add(subnets, hw_prefix_format(&b->subnets[i], text));
}

/**
 * bandwidth_is_none() - is nothing to be limited?
 */
bool bandwidth_is_none(const struct bandwidth *b)
{
	return !b->ingress.rate && !b->egress.rate;
}

static struct tc_shape shape(const struct bandwidth *b, const struct bandwidth_limit *limit,
			     const struct link *link)
{
	return (struct tc_shape){ .bucket = tc_tbf_from_bits(limit->rate, limit->burst, link->mtu),
				  .subnets = b->subnets,
				  .n_subnets = b->n_subnets,
				  .only = b->only };
}

/**
 * bandwidth_ingress() - how what comes to the pod leaves the link on the host
 */
struct tc_shape bandwidth_ingress(const struct bandwidth *b, const struct link *link)
{
	struct tc_shape ingress = shape(b, &b->ingress, link);

	ingress.by_source = true; /* the other side is who sends */
	return ingress;
}

/**
 * bandwidth_egress() - how what the pod sends leaves its interface, or the ifb
 */
struct tc_shape bandwidth_egress(const struct bandwidth *b, const struct link *link)
{
	return shape(b, &b->egress, link);
}
