/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cni/result.c - CNI results as JSON, in all seven spec versions
 *
 * What:  parses a result of any version into struct hw_result and formats it
 *        in any version.
 * How:   one field table per family of versions with the same format. The
 *        table of 1.x describes struct hw_result itself; the older families
 *        have small structs for the places where they differ:
 *
 *	family  versions           format
 *	IP4     0.1.0 0.2.0        ip4 and ip6, each with gateway and routes
 *	IPS     0.3.0 0.3.1 0.4.0  interfaces, ips with a version, routes
 *	V1      1.0.0 1.1.0        as IPS, but ips without a version; more
 *	                           interface fields
 *
 *        Converting between any two versions is one decode and one encode.
 * Rules: keys are written in upstream's order. This is the order of the tables,
 *        except that family V1 is sorted at every level.
 *        Missing addresses and destinations are omitted; upstream writes
 *        "<nil>".
 *        The 1.1.0 members of a route are written in family IPS too, as in
 *        upstream: a later plugin of the chain may need them.
 */
#include "cni/result.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>

#include "base/buf.h"
#include "base/json/field.h"
#include "base/json/value.h"
#include "base/str.h"
#include "cni/version.h"

/* The field tables access a list and its count as one struct hw_list. */
#define ASSERT_LIST(type, list, count)                                                             \
	_Static_assert(offsetof(type, count) - offsetof(type, list) ==                             \
			       offsetof(struct hw_list, n),                                        \
		       #list " and " #count " must have the layout of struct hw_list")
ASSERT_LIST(struct hw_result, ifaces, n_ifaces);
ASSERT_LIST(struct hw_result, ips, n_ips);
ASSERT_LIST(struct hw_result, routes, n_routes);

const struct hw_field result_dns_fields[] = {
	{ "nameservers", HW_STRINGS, HW_AT(struct hw_dns, nameservers),
	  .help = "addresses of name servers" },
	{ "domain", HW_STRING, HW_AT(struct hw_dns, domain), .help = "the local domain" },
	{ "search", HW_STRINGS, HW_AT(struct hw_dns, search), .help = "domains to search" },
	{ "options", HW_STRINGS, HW_AT(struct hw_dns, options),
	  .help = "options for the resolver" },
	{ 0 },
};

const struct hw_field result_route_fields[] = {
	{ "dst", HW_PREFIX, HW_AT(struct hw_route, dst), .help = "destination network" },
	{ "gw", HW_IP, HW_AT(struct hw_route, gw),
	  .help = "next hop; default: the gateway of the address" },
	{ "mtu", HW_INT, HW_AT(struct hw_route, mtu), .help = "MTU of the route" },
	{ "advmss", HW_INT, HW_AT(struct hw_route, advmss),
	  .help = "TCP maximum segment size to advertise" },
	{ "priority", HW_INT, HW_AT(struct hw_route, priority),
	  .help = "metric; the lowest is preferred" },
	{ "table", HW_INT, HW_AT(struct hw_route, table), .has = HW_HAS(struct hw_route, has_table),
	  .help = "routing table; default: main" },
	{ "scope", HW_INT, HW_AT(struct hw_route, scope), .has = HW_HAS(struct hw_route, has_scope),
	  .help = "scope; default: universe" },
	{ 0 },
};

/* ---- family V1: struct hw_result itself ------------------------------------ */

static const struct hw_field iface_fields[] = {
	{ "name", HW_STRING, HW_AT(struct hw_iface, name), .flags = HW_ALWAYS },
	{ "mac", HW_STRING, HW_AT(struct hw_iface, mac) },
	{ "sandbox", HW_STRING, HW_AT(struct hw_iface, sandbox) },
	{ "mtu", HW_INT, HW_AT(struct hw_iface, mtu) },
	{ "socketPath", HW_STRING, HW_AT(struct hw_iface, socket_path) },
	{ "pciID", HW_STRING, HW_AT(struct hw_iface, pci_id) },
	{ 0 },
};

static const struct hw_field ipconf_fields[] = {
	{ "interface", HW_INT, HW_AT(struct hw_ipconf, iface),
	  .has = HW_HAS(struct hw_ipconf, has_iface) },
	{ "address", HW_PREFIX, HW_AT(struct hw_ipconf, address) },
	{ "gateway", HW_IP, HW_AT(struct hw_ipconf, gateway) },
	{ 0 },
};

static const struct hw_field v1_fields[] = {
	{ "cniVersion", HW_STRING, HW_AT(struct hw_result, version) },
	{ "interfaces", HW_LIST, HW_AT(struct hw_result, ifaces), .sub = iface_fields,
	  .size = sizeof(struct hw_iface) },
	{ "ips", HW_LIST, HW_AT(struct hw_result, ips), .sub = ipconf_fields,
	  .size = sizeof(struct hw_ipconf) },
	{ "routes", HW_LIST, HW_AT(struct hw_result, routes), .sub = result_route_fields,
	  .size = sizeof(struct hw_route) },
	{ "dns", HW_OBJECT, HW_AT(struct hw_result, dns), .sub = result_dns_fields },
	{ 0 },
};

static int v1_decode(const struct value *v, struct hw_result *result, struct hw_err *e)
{
	return field_decode(v1_fields, v, result, e);
}

static int v1_encode(const struct hw_result *result, const char *version, struct value **ret_value,
		     struct hw_err *e)
{
	struct hw_result labelled = *result;

	(void)e;
	labelled.version = (char *)version;
	*ret_value = field_encode(v1_fields, &labelled);
	return 0;
}

/* ---- family IPS: fewer interface fields, addresses with a version -------------- */

struct ips_ipconf {
	char *version;
	struct hw_ipconf conf;
};

struct ips_result {
	struct hw_result base;
	struct hw_list ips; /* its elements are struct ips_ipconf; used instead of base.ips */
};

static const struct hw_field ips_iface_fields[] = {
	{ "name", HW_STRING, HW_AT(struct hw_iface, name), .flags = HW_ALWAYS },
	{ "mac", HW_STRING, HW_AT(struct hw_iface, mac) },
	{ "sandbox", HW_STRING, HW_AT(struct hw_iface, sandbox) },
	{ 0 },
};

static const struct hw_field ips_ipconf_fields[] = {
	{ "version", HW_STRING, HW_AT(struct ips_ipconf, version) },
	{ "interface", HW_INT, HW_AT(struct ips_ipconf, conf.iface),
	  .has = HW_HAS(struct ips_ipconf, conf.has_iface) },
	{ "address", HW_PREFIX, HW_AT(struct ips_ipconf, conf.address) },
	{ "gateway", HW_IP, HW_AT(struct ips_ipconf, conf.gateway) },
	{ 0 },
};

static const struct hw_field ips_fields[] = {
	{ "cniVersion", HW_STRING, HW_AT(struct ips_result, base.version) },
	{ "interfaces", HW_LIST, HW_AT(struct ips_result, base.ifaces), .sub = ips_iface_fields,
	  .size = sizeof(struct hw_iface) },
	{ "ips", HW_LIST, HW_AT(struct ips_result, ips), .sub = ips_ipconf_fields,
	  .size = sizeof(struct ips_ipconf) },
	{ "routes", HW_LIST, HW_AT(struct ips_result, base.routes), .sub = result_route_fields,
	  .size = sizeof(struct hw_route) },
	{ "dns", HW_OBJECT, HW_AT(struct ips_result, base.dns), .sub = result_dns_fields,
	  .flags = HW_ALWAYS },
	{ 0 },
};

static int ips_decode(const struct value *v, struct hw_result *result, struct hw_err *e)
{
	struct ips_result old = { 0 };
	const struct ips_ipconf *ips;
	int r;

	r = field_decode(ips_fields, v, &old, e);
	if (r < 0)
		return r;
	ips = old.ips.v;
	for (size_t i = 0; i < old.ips.n; i++) {
		*hw_result_add_ip(&old.base) = ips[i].conf;
		free(ips[i].version);
	}
	free(old.ips.v);
	*result = old.base;
	return 0;
}

static int ips_encode(const struct hw_result *result, const char *version, struct value **ret_value,
		      struct hw_err *e)
{
	autofree struct ips_ipconf *ips = mem_new((result->n_ips + 1) * sizeof(*ips));
	struct ips_result old = { .base = *result, .ips = { ips, result->n_ips } };

	(void)e;
	old.base.version = (char *)version;
	for (size_t i = 0; i < result->n_ips; i++) {
		bool ipv4 = result->ips[i].address.ip.family == AF_INET;

		ips[i].conf = result->ips[i];
		ips[i].version = (char *)(ipv4 ? "4" : "6");
	}
	*ret_value = field_encode(ips_fields, &old);
	return 0;
}

/* ---- family IP4: one address of each IP version --------------------------------- */

struct ip4_part {
	bool present;
	struct hw_prefix ip;
	struct hw_ip gateway;
	struct hw_route *routes;
	size_t n_routes;
};
ASSERT_LIST(struct ip4_part, routes, n_routes);

struct ip4_result {
	char *version;
	struct ip4_part ip4, ip6;
	struct hw_dns dns;
};

static const struct hw_field ip4_route_fields[] = {
	{ "dst", HW_PREFIX, HW_AT(struct hw_route, dst) },
	{ "gw", HW_IP, HW_AT(struct hw_route, gw) },
	{ 0 },
};

static const struct hw_field ip4_part_fields[] = {
	{ "ip", HW_PREFIX, HW_AT(struct ip4_part, ip) },
	{ "gateway", HW_IP, HW_AT(struct ip4_part, gateway) },
	{ "routes", HW_LIST, HW_AT(struct ip4_part, routes), .sub = ip4_route_fields,
	  .size = sizeof(struct hw_route) },
	{ 0 },
};

static const struct hw_field ip4_fields[] = {
	{ "cniVersion", HW_STRING, HW_AT(struct ip4_result, version) },
	{ "ip4", HW_OBJECT, HW_AT(struct ip4_result, ip4), .sub = ip4_part_fields,
	  .has = HW_HAS(struct ip4_result, ip4.present) },
	{ "ip6", HW_OBJECT, HW_AT(struct ip4_result, ip6), .sub = ip4_part_fields,
	  .has = HW_HAS(struct ip4_result, ip6.present) },
	{ "dns", HW_OBJECT, HW_AT(struct ip4_result, dns), .sub = result_dns_fields,
	  .flags = HW_ALWAYS },
	{ 0 },
};

static void ip4_part_to_result(const struct ip4_part *part, struct hw_result *result)
{
	struct hw_ipconf *ip;

	if (!part->present)
		return;
	ip = hw_result_add_ip(result);
	ip->address = part->ip;
	ip->gateway = part->gateway;
	for (size_t i = 0; i < part->n_routes; i++)
		*hw_result_add_route(result) = part->routes[i];
}

static int ip4_decode(const struct value *v, struct hw_result *result, struct hw_err *e)
{
	struct ip4_result old = { 0 };
	int r;

	r = field_decode(ip4_fields, v, &old, e);
	if (r < 0)
		return r;
	*result = (struct hw_result){ .version = old.version, .dns = old.dns };
	ip4_part_to_result(&old.ip4, result);
	ip4_part_to_result(&old.ip6, result);
	free(old.ip4.routes);
	free(old.ip6.routes);
	return 0;
}

/* Return: the first address and all routes of the address family */
static struct ip4_part ip4_part_of_result(const struct hw_result *result, int family)
{
	struct ip4_part part = { 0 };

	for (size_t i = 0; i < result->n_ips && !part.present; i++) {
		const struct hw_ipconf *ip = &result->ips[i];

		if (ip->address.ip.family == family)
			part = (struct ip4_part){ true, ip->address, ip->gateway, NULL, 0 };
	}
	if (!part.present)
		return part;
	part.routes = mem_new((result->n_routes + 1) * sizeof(*part.routes));
	for (size_t i = 0; i < result->n_routes; i++)
		if (result->routes[i].dst.ip.family == family)
			part.routes[part.n_routes++] = result->routes[i];
	return part;
}

static int ip4_encode(const struct hw_result *result, const char *version, struct value **ret_value,
		      struct hw_err *e)
{
	struct ip4_result old = {
		.version = (char *)version,
		.ip4 = ip4_part_of_result(result, AF_INET),
		.ip6 = ip4_part_of_result(result, AF_INET6),
		.dns = result->dns,
	};

	/* A result that was parsed from this family may lack addresses, as in libcni. */
	if (!old.ip4.present && !old.ip6.present &&
	    !(result->version && version_family(result->version) == VERSION_FAMILY_IP4))
		return err_text(e, -EINVAL, "cannot convert: no valid IP addresses");
	*ret_value = field_encode(ip4_fields, &old);
	free(old.ip4.routes);
	free(old.ip6.routes);
	return 0;
}

/* ---- all families --------------------------------------------------------------- */

static const struct result_family {
	int (*decode)(const struct value *v, struct hw_result *result, struct hw_err *e);
	int (*encode)(const struct hw_result *result, const char *version, struct value **ret_value,
		      struct hw_err *e);
	unsigned flags; /* for value_format() */
} result_families[] = {
	[VERSION_FAMILY_IP4] = { ip4_decode, ip4_encode },
	[VERSION_FAMILY_IPS] = { ips_decode, ips_encode },
	[VERSION_FAMILY_V1] = { v1_decode, v1_encode, HW_JSON_SORTED },
};

struct hw_result *hw_result_new(void)
{
	return mem_new(sizeof(struct hw_result));
}

void hw_result_free(struct hw_result *result)
{
	if (!result)
		return;
	hw_field_clear(v1_fields, result);
	free(result);
}

struct hw_result *hw_result_copy(const struct hw_result *result)
{
	AUTO(value_free) struct value *v = field_encode(v1_fields, result);
	struct hw_result *copy = hw_result_new();
	struct hw_err e;
	int r;

	/* A table can always decode what it encoded. */
	r = field_decode(v1_fields, v, copy, &e);
	assert(r == 0);
	return copy;
}

struct hw_iface *hw_result_add_iface(struct hw_result *result)
{
	size_t i = result->n_ifaces++;

	result->ifaces = mem_resize(result->ifaces, result->n_ifaces, sizeof(*result->ifaces));
	result->ifaces[i] = (struct hw_iface){ 0 };
	return &result->ifaces[i];
}

struct hw_ipconf *hw_result_add_ip(struct hw_result *result)
{
	size_t i = result->n_ips++;

	result->ips = mem_resize(result->ips, result->n_ips, sizeof(*result->ips));
	result->ips[i] = (struct hw_ipconf){ 0 };
	return &result->ips[i];
}

struct hw_route *hw_result_add_route(struct hw_result *result)
{
	size_t i = result->n_routes++;

	result->routes = mem_resize(result->routes, result->n_routes, sizeof(*result->routes));
	result->routes[i] = (struct hw_route){ 0 };
	return &result->routes[i];
}

/* A top-level null is an empty result, as in libcni. */
static int parse_object(const char *json, size_t len, struct value **ret_value, struct hw_err *e)
{
	AUTO(value_free) struct value *v = NULL;
	int r;

	r = value_parse(json, len, &v, e);
	if (r < 0)
		return err_ctx(e, "failed to unmarshal raw result");
	if (value_kind(v) == VALUE_NULL) {
		value_free(v);
		v = value_new_object();
	}
	if (value_kind(v) != VALUE_OBJECT)
		return err_text(e, -EINVAL,
				"failed to unmarshal raw result: expected an object, got %s",
				value_kind_name(value_kind(v)));
	*ret_value = take_ptr(v);
	return 0;
}

/* Gets the object's cniVersion, or @assumed if it is missing. The string is borrowed from @v or
 * @assumed. */
static int get_version(const struct value *v, const char *assumed, const char **ret_version,
		       struct hw_err *e)
{
	const struct value *version = value_find(v, "cniVersion");

	if (version && value_kind(version) != VALUE_STRING && value_kind(version) != VALUE_NULL)
		return err_text(e, -EINVAL,
				"decoding version from network result: expected a string, got %s",
				value_kind_name(value_kind(version)));
	*ret_version = version ? value_string(version) : NULL;
	if (str_empty(*ret_version))
		*ret_version = version_or_oldest(assumed);
	return 0;
}

/* ips[].interface is an index into interfaces: null entries become empty objects, so
 * that the other indexes stay valid. */
static void replace_null_interfaces(struct value *v)
{
	const struct value *old;
	struct value *list;

	old = value_find(v, "interfaces");
	if (!old || value_kind(old) != VALUE_ARRAY)
		return;
	list = value_new_array();
	for (size_t i = 0; i < value_count(old); i++) {
		struct value *entry = value_at(old, i);

		value_append(list, value_kind(entry) == VALUE_NULL ? value_new_object()
								   : value_ref(entry));
	}
	value_set(v, "interfaces", list);
}

static int result_decode(struct value *v, const char *version, struct hw_result **ret_result,
			 struct hw_err *e)
{
	enum version_family family = version_family(version);
	autofree struct hw_result *result = hw_result_new();
	autofree char *label = str_copy(version);
	int r;

	if (family == VERSION_FAMILY_NONE)
		return err_text(e, -EINVAL, "unsupported CNI result version \"%s\"", version);
	replace_null_interfaces(v);
	r = result_families[family].decode(v, result, e);
	if (r < 0)
		return err_ctx(e, "result of version %s", label);
	free(result->version);
	result->version = take_ptr(label);
	*ret_result = take_ptr(result);
	return 0;
}

int hw_result_parse(const char *json, size_t len, const char *version,
		    struct hw_result **ret_result, struct hw_err *e)
{
	AUTO(value_free) struct value *v = NULL;
	const char *own;
	int r;

	r = parse_object(json, len, &v, e);
	if (r < 0)
		return r;
	r = get_version(v, version, &own, e);
	if (r < 0)
		return r;
	return result_decode(v, own, ret_result, e);
}

static int check_same_family(const char *version, const char *conf_version, struct hw_err *e)
{
	enum version_family family = version_family(conf_version);
	AUTO(buf_done) struct buf supported = { 0 };

	if (family == VERSION_FAMILY_NONE)
		return err_text(e, -EINVAL, "unsupported CNI result version \"%s\"", conf_version);
	if (version_family(version) == family)
		return 0;
	for (const char *const *v = hw_versions(); *v; v++)
		if (version_family(*v) == family)
			buf_printf(&supported, "%s%s", supported.len ? " " : "", *v);
	return err_text(e, -EINVAL,
			"result type supports [%s] but unmarshalled CNIVersion is \"%s\"",
			supported.data, version);
}

int result_parse_prev(const char *json, size_t len, const char *conf_version,
		      struct hw_result **ret_result, struct hw_err *e)
{
	AUTO(value_free) struct value *v = NULL;
	const char *own;
	int r;

	r = parse_object(json, len, &v, e);
	if (r == 0)
		r = get_version(v, conf_version, &own, e);
	if (r == 0)
		r = check_same_family(own, conf_version, e);
	if (r == 0)
		r = result_decode(v, own, ret_result, e);
	if (r < 0)
		return err_ctx(e, "could not parse prevResult");
	return 0;
}

int hw_result_format(const struct hw_result *result, const char *version, unsigned flags,
		     char **ret_json, struct hw_err *e)
{
	AUTO(value_free) struct value *v = NULL;
	const struct result_family *family;
	int r;

	version = version_or_oldest(version);
	if (version_family(version) == VERSION_FAMILY_NONE)
		return err_text(e, -EINVAL, "no converter for CNI result version %s to %s",
				str_or(result->version, VERSION_NEWEST), version);
	family = &result_families[version_family(version)];
	r = family->encode(result, version, &v, e);
	if (r < 0)
		return r;
	*ret_json = value_format(v, flags | family->flags);
	return 0;
}

int result_convert(const struct hw_result *result, const char *version,
		   struct hw_result **ret_result, struct hw_err *e)
{
	autofree char *json = NULL;
	int r;

	r = hw_result_format(result, version, 0, &json, e);
	if (r < 0)
		return r;
	return hw_result_parse(json, strlen(json), version, ret_result, e);
}
