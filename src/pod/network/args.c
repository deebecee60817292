/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pod/network/args.c - what plugins are told about a pod: CNI_ARGS, capabilities, further networks
 *
 * How:   the names of arguments and capabilities are those that containerd and CRI-O use, because
 *        plugins of other projects look for them.
 */
#include "pod/network/args.h"

#include <errno.h>
#include <inttypes.h>
#include <net/if.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/ip.h"
#include "base/json/value.h"
#include "base/str.h"
#include "cni/name.h"

#define INGRESS_BANDWIDTH "kubernetes.io/ingress-bandwidth"
#define EGRESS_BANDWIDTH  "kubernetes.io/egress-bandwidth"
#define BANDWIDTH_MIN	  1000			    /* 1k: the limits of kubelet */
#define BANDWIDTH_MAX	  INT64_C(1000000000000000) /* 1P */
#define BURST_MIN	  (INT64_C(2) << 20)
#define BURST_MAX	  INT64_C(4294967295) /* what containerd passes */
#define EXTRAS_MAX	  16

/* ---- CNI_ARGS ----------------------------------------------------------------------- */

int network_args(const struct pod_spec *spec, const char *id, const char *ret_args[NETWORK_ARGS][2],
		 struct hw_err *e)
{
	const struct {
		const char *key, *value, *field;
	} args[NETWORK_ARGS] = {
		{ "IgnoreUnknown", "1", NULL },
		{ "K8S_POD_NAMESPACE", spec->namespace, "metadata.namespace" },
		{ "K8S_POD_NAME", spec->name, "metadata.name" },
		{ "K8S_POD_INFRA_CONTAINER_ID", id, NULL },
		{ "K8S_POD_UID", spec->uid, "metadata.uid" },
	};

	for (size_t i = 0; i < NETWORK_ARGS; i++) {
		if (args[i].field && strpbrk(args[i].value, ";="))
			return err_text(e, -EINVAL,
					"%s: \";\" and \"=\" are not allowed: \"%.200s\"",
					args[i].field, args[i].value);
		ret_args[i][0] = args[i].key;
		ret_args[i][1] = args[i].value;
	}
	return 0;
}

/* ---- bandwidth ---------------------------------------------------------------------- */

/* Parses a quantity of Kubernetes, such as "10M", "1.5Gi" or "2e6". Return: false if it is malformed
 * or out of range */
static bool parse_quantity(const char *text, int64_t *ret_n)
{
	static const struct {
		const char *suffix;
		double factor;
	} suffixes[] = {
		{ "", 1 },
		{ "k", 1e3 },
		{ "M", 1e6 },
		{ "G", 1e9 },
		{ "T", 1e12 },
		{ "P", 1e15 },
		{ "Ki", 1024. },
		{ "Mi", 1048576. },
		{ "Gi", 1073741824. },
		{ "Ti", 1099511627776. },
		{ "Pi", 1125899906842624. },
	};
	double n;
	char *end;

	/* strtod() also accepts hexadecimal numbers, "inf", signs and white space */
	if (!strspn(text, "0123456789.") || strpbrk(text, "xX"))
		return false;
	n = strtod(text, &end);
	for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++) {
		if (!str_equal(end, suffixes[i].suffix))
			continue;
		n *= suffixes[i].factor;
		if (!(n >= BANDWIDTH_MIN && n <= BANDWIDTH_MAX))
			return false;
		*ret_n = (int64_t)n;
		return true;
	}
	return false;
}

/* containerd and kubelet pass a burst of half a gigabyte, which makes the limit ineffective for
 * most connections. An eighth of a second is enough to reach the rate. */
static int64_t burst_of(int64_t rate)
{
	int64_t burst = rate / 8 > BURST_MIN ? rate / 8 : BURST_MIN;

	return burst < BURST_MAX ? burst : BURST_MAX;
}

static int add_rate(const struct pod_spec *spec, const char *annotation, const char *rate_key,
		    const char *burst_key, struct value *bandwidth, struct hw_err *e)
{
	const char *text;
	int64_t rate;

	text = pod_spec_annotation(spec, annotation);
	if (!text)
		return 0;
	if (!parse_quantity(text, &rate))
		return err_text(e, -EINVAL,
				"annotations: %s: \"%.64s\" is not a quantity from 1k to 1P",
				annotation, text);
	value_set(bandwidth, rate_key, value_new_int(rate));
	value_set(bandwidth, burst_key, value_new_int(burst_of(rate)));
	return 0;
}

static int add_bandwidth(const struct pod_spec *spec, struct value *all, struct hw_err *e)
{
	AUTO(value_free) struct value *bandwidth = value_new_object();
	int r;

	r = add_rate(spec, INGRESS_BANDWIDTH, "ingressRate", "ingressBurst", bandwidth, e);
	if (r == 0)
		r = add_rate(spec, EGRESS_BANDWIDTH, "egressRate", "egressBurst", bandwidth, e);
	if (r == 0 && value_count(bandwidth))
		value_set(all, "bandwidth", take_ptr(bandwidth));
	return r;
}

/* ---- other capabilities ------------------------------------------------------------- */

static struct value *strings_value(const struct hw_strings *list)
{
	struct value *array = value_new_array();

	for (size_t i = 0; i < list->n; i++)
		value_append(array, value_new_string(list->v[i]));
	return array;
}

static void add_ports(const struct pod_spec *spec, struct value *all)
{
	const struct pod_port *ports = spec->ports.v;
	AUTO(value_free) struct value *list = value_new_array();

	for (size_t i = 0; i < spec->ports.n; i++) {
		struct value *port;

		if (!ports[i].host_port)
			continue;
		port = value_new_object();
		value_set(port, "hostPort", value_new_int(ports[i].host_port));
		value_set(port, "containerPort", value_new_int(ports[i].container_port));
		value_set(port, "protocol", value_new_string(ports[i].protocol));
		if (!str_empty(ports[i].host_ip))
			value_set(port, "hostIP", value_new_string(ports[i].host_ip));
		value_append(list, port);
	}
	if (value_count(list))
		value_set(all, "portMappings", take_ptr(list));
}

static void add_dns(const struct pod_spec *spec, struct value *all)
{
	struct value *dns;

	if (!spec->has_dns)
		return;
	dns = value_new_object();
	value_set(dns, "servers", strings_value(&spec->dns.servers));
	value_set(dns, "searches", strings_value(&spec->dns.searches));
	value_set(dns, "options", strings_value(&spec->dns.options));
	value_set(all, "dns", dns);
}

/* A list of sets with one range each, in the form of host-local's key "ranges". */
static void add_ranges(const struct network_host *host, struct value *all)
{
	struct value *sets;

	if (!host->pod_cidrs || host->pod_cidrs->n == 0)
		return;
	sets = value_new_array();
	for (size_t i = 0; i < host->pod_cidrs->n; i++) {
		struct value *range = value_new_object(), *set = value_new_array();

		value_set(range, "subnet", value_new_string(host->pod_cidrs->v[i]));
		value_append(set, range);
		value_append(sets, set);
	}
	value_set(all, "ipRanges", sets);
}

static void add_annotations(const struct pod_spec *spec, struct value *all)
{
	struct value *object = value_new_object();

	for (size_t i = 0; i < spec->annotations.n; i++)
		value_set(object, spec->annotations.keys[i],
			  value_new_string(spec->annotations.values[i]));
	value_set(all, "io.kubernetes.cri.pod-annotations", object);
}

static int add_ips(const struct pod_spec *spec, struct value *all, struct hw_err *e)
{
	const char *text = pod_spec_annotation(spec, NETWORK_IPS);
	AUTO(hw_strings_free) struct hw_strings list = { 0 };
	struct hw_prefix prefix;
	struct hw_ip ip;

	if (str_empty(text))
		return 0;
	strings_split(text, ',', &list);
	for (size_t i = 0; i < list.n; i++) {
		if (hw_ip_parse(list.v[i], &ip, e) < 0 &&
		    hw_prefix_parse(list.v[i], &prefix, e) < 0)
			return err_ctx(e, "annotations: " NETWORK_IPS);
	}
	value_set(all, "ips", strings_value(&list));
	return 0;
}

static int add_mac(const struct pod_spec *spec, struct value *all, struct hw_err *e)
{
	const char *text = pod_spec_annotation(spec, NETWORK_MAC);
	struct hw_mac mac;

	if (str_empty(text))
		return 0;
	if (hw_mac_parse(text, &mac, e) < 0)
		return err_ctx(e, "annotations: " NETWORK_MAC);
	value_set(all, "mac", value_new_string(text));
	return 0;
}

int network_capabilities(const struct pod_spec *spec, const struct network_host *host, bool first,
			 char **ret_json, struct hw_err *e)
{
	AUTO(value_free) struct value *all = value_new_object();
	struct value *aliases = value_new_array();
	int r = 0;

	if (!str_empty(spec->hostname) && !str_equal(spec->hostname, spec->name))
		value_append(aliases, value_new_string(spec->hostname));
	value_append(aliases, value_new_string(spec->name));
	value_set(all, "aliases", aliases);
	if (!str_empty(host->cgroup))
		value_set(all, "cgroupPath", value_new_string(host->cgroup));
	add_dns(spec, all);
	add_annotations(spec, all);
	if (first) {
		add_ports(spec, all);
		add_ranges(host, all);
		r = add_bandwidth(spec, all, e);
		if (r == 0)
			r = add_ips(spec, all, e);
		if (r == 0)
			r = add_mac(spec, all, e);
	}
	if (r < 0)
		return r;
	*ret_json = value_format(all, 0);
	return 0;
}

/* ---- further networks --------------------------------------------------------------- */

static bool is_taken(const struct network_extras *extras, const char *ifname)
{
	if (str_equal(ifname, NETWORK_IFNAME) || str_equal(ifname, "lo"))
		return true;
	for (size_t i = 0; i < extras->n; i++)
		if (str_equal(extras->v[i].ifname, ifname))
			return true;
	return false;
}

static int add_extra(struct network_extras *extras, const char *text, struct hw_err *e)
{
	const char *at = strchr(text, '@');
	autofree char *name = str_ncopy(text, at ? (size_t)(at - text) : strlen(text));
	autofree char *ifname = at ? str_copy(at + 1) : str_printf("net%zu", extras->n + 1);
	int r;

	r = name_check_network(name, e);
	if (r < 0)
		return r;
	r = name_check_ifname(ifname, e);
	if (r < 0)
		return r;
	if (is_taken(extras, ifname))
		return err_text(e, -EINVAL, "interface name %s occurs twice", ifname);
	extras->v = mem_resize(extras->v, extras->n + 1, sizeof(*extras->v));
	extras->v[extras->n++] = (struct network_extra){ take_ptr(name), take_ptr(ifname) };
	return 0;
}

int network_extras(const struct pod_spec *spec, struct network_extras *ret, struct hw_err *e)
{
	const char *text = pod_spec_annotation(spec, NETWORK_NETWORKS);
	AUTO(network_extras_done) struct network_extras extras = { 0 };
	AUTO(hw_strings_free) struct hw_strings list = { 0 };
	int r = 0;

	if (!str_empty(text))
		strings_split(text, ',', &list);
	if (list.n > EXTRAS_MAX)
		r = err_text(e, -EINVAL, "more than %d networks", EXTRAS_MAX);
	for (size_t i = 0; r == 0 && i < list.n; i++)
		r = add_extra(&extras, list.v[i], e);
	if (r < 0)
		return err_ctx(e, "annotations: " NETWORK_NETWORKS);
	*ret = extras;
	extras = (struct network_extras){ 0 };
	return 0;
}

void network_extras_done(struct network_extras *extras)
{
	for (size_t i = 0; i < extras->n; i++) {
		free(extras->v[i].name);
		free(extras->v[i].ifname);
	}
	free(extras->v);
	*extras = (struct network_extras){ 0 };
}
