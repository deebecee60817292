/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/portmap/conf.c - configuration and attachment record of portmap
 *
 * How:   "backend" selects only the syntax of the conditions; our nftables rules are
 *        used in both cases. externalSetMarkChain is accepted but ignored, because
 *        our own rules masquerade.
 * Rules: a configuration that upstream's plugin rejects is rejected with the same
 *        text.
 */
#include <netinet/in.h>
#include <strings.h>
#include <sys/socket.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/ip.h"
#include "base/str.h"
#include "plugins/portmap/portmap.h"

#define AT(member)  HW_AT(struct portmap_conf, member)
#define HAS(member) HW_HAS(struct portmap_conf, member)

static const struct hw_field entry_fields[] = {
	{ "hostPort", HW_INT, HW_AT(struct portmap_entry, host_port), .help = "port of the host" },
	{ "containerPort", HW_INT, HW_AT(struct portmap_entry, pod_port),
	  .help = "port of the pod" },
	{ "protocol", HW_STRING, HW_AT(struct portmap_entry, protocol),
	  .help = "tcp, udp or sctp" },
	{ "hostIP", HW_STRING, HW_AT(struct portmap_entry, host_ip),
	  .help = "address of the host; default: every address" },
	{ 0 },
};

static const struct hw_field runtime_fields[] = {
	{ "portMappings", HW_LIST, AT(entries), .sub = entry_fields,
	  .size = sizeof(struct portmap_entry), .help = "the ports to forward" },
	{ 0 },
};

const struct hw_field portmap_fields[] = {
	{ "backend", HW_STRING, AT(backend),
	  .help = "syntax of conditionsV4 and conditionsV6: iptables or nftables; the rules are "
		  "always written to nftables" },
	{ "snat", HW_BOOL, AT(snat), .def = "true",
	  .help = "make host ports reachable from the pod itself, from pods of its network and "
		  "at 127.0.0.1; for the pod these connections come from the host's address" },
	{ "masqAll", HW_BOOL, AT(masq_all),
	  .help = "with snat: for the pod all connections come from the host's address" },
	{ "markMasqBit", HW_INT, AT(mark_bit), .has = HAS(has_mark_bit), .def = "13",
	  .help = "bit of the packet mark, 0 to 31, that marks packets to masquerade" },
	{ "externalSetMarkChain", HW_STRING, AT(external_chain), .has = HAS(has_external_chain),
	  .help = "accepted but ignored: this plugin masquerades without an iptables chain" },
	{ "conditionsV4", HW_STRINGS, AT(cond4),
	  .help = "forward only IPv4 packets that match this condition: an nft expression, or "
		  "the iptables options -s, -d, -i and -o, with or without !" },
	{ "conditionsV6", HW_STRINGS, AT(cond6), .help = "like conditionsV4, for IPv6" },
	{ "runtimeConfig", HW_OBJECT, 0, .sub = runtime_fields,
	  .help = "set by the runtime (capability portMappings)" },
	{ 0 },
};

const struct hw_field portmap_record_fields[] = {
	{ "portMappings", HW_LIST, HW_AT(struct portmap_record, entries), .sub = entry_fields,
	  .size = sizeof(struct portmap_entry) },
	{ "pod4", HW_STRING, HW_AT(struct portmap_record, pod4) },
	{ "pod6", HW_STRING, HW_AT(struct portmap_record, pod6) },
	{ "snat", HW_BOOL, HW_AT(struct portmap_record, snat) },
	{ "masqAll", HW_BOOL, HW_AT(struct portmap_record, masq_all) },
	{ "markMasqBit", HW_INT, HW_AT(struct portmap_record, mark_bit) },
	{ "conditionsV4", HW_STRING, HW_AT(struct portmap_record, cond4) },
	{ "conditionsV6", HW_STRING, HW_AT(struct portmap_record, cond6) },
	{ "earlier", HW_JSON, HW_AT(struct portmap_record, earlier) },
	{ 0 },
};

void portmap_record_done(struct portmap_record *record)
{
	hw_field_clear(portmap_record_fields, record);
}

/* ---- one port -------------------------------------------------------------------------------- */

static const struct {
	const char *name;
	uint8_t proto;
} protocols[] = { { "tcp", IPPROTO_TCP }, { "udp", IPPROTO_UDP }, { "sctp", IPPROTO_SCTP } };

int portmap_port_parse(const struct portmap_entry *entry, struct portmap_port *ret_port,
		       struct hw_err *e)
{
	const char *protocol = str_or(entry->protocol, "");
	struct portmap_port port = { 0 };

	if (entry->pod_port <= 0 || entry->pod_port > UINT16_MAX)
		return err_cni(e, HW_CNI_INVALID_CONFIG, "Invalid container port number: %d",
			       entry->pod_port);
	if (entry->host_port <= 0 || entry->host_port > UINT16_MAX)
		return err_cni(e, HW_CNI_INVALID_CONFIG, "Invalid host port number: %d",
			       entry->host_port);
	for (size_t i = 0; i < ARRAY_SIZE(protocols); i++)
		if (strcasecmp(protocol, protocols[i].name) == 0)
			port.proto = protocols[i].proto;
	if (!port.proto)
		return err_cni(
			e, HW_CNI_INVALID_CONFIG,
			"unsupported protocol \"%.50s\" in port mapping: want tcp, udp or sctp",
			protocol);
	if (!str_empty(entry->host_ip) && hw_ip_parse(entry->host_ip, &port.host, e) < 0)
		return err_cni(e, HW_CNI_INVALID_CONFIG, "invalid hostIP \"%.50s\" in port mapping",
			       entry->host_ip);
	port.host_port = (uint16_t)entry->host_port;
	port.pod_port = (uint16_t)entry->pod_port;
	port.family = port.host.family;
	if (port.family && ip_is_unspecified(&port.host))
		port.host = (struct hw_ip){ 0 };
	*ret_port = port;
	return 0;
}

bool portmap_entry_applies(const struct portmap_entry *entry, const struct hw_prefix *pod,
			   struct portmap_port *ret_port)
{
	struct hw_err ignored;

	return portmap_port_parse(entry, ret_port, &ignored) >= 0 &&
	       (!ret_port->family || ret_port->family == pod->ip.family);
}

/* ---- checking -------------------------------------------------------------------------------- */

/* Rejects iptables-specific keys with backend nftables, and nftables-specific keys with backend
 * iptables. */
static int check_backend(const struct portmap_conf *conf, struct hw_err *e)
{
	bool nft = str_equal(conf->backend, "nftables");
	const struct {
		const char *key;
		bool there, is_iptables;
	} keys[] = {
		{ "externalSetMarkChain", conf->has_external_chain, true },
		{ "conditionsV4", conf->cond4.n && *conf->cond4.v[0],
		  portmap_condition_is_iptables(&conf->cond4) },
		{ "conditionsV6", conf->cond6.n && *conf->cond6.v[0],
		  portmap_condition_is_iptables(&conf->cond6) },
	};
	AUTO(buf_done) struct buf wrong = { 0 };

	if (str_empty(conf->backend))
		return 0;
	if (!nft && !str_equal(conf->backend, "iptables"))
		return err_cni(e, HW_CNI_INVALID_CONFIG, "unrecognized backend \"%.50s\"",
			       conf->backend);
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		if (keys[i].there && keys[i].is_iptables == nft)
			buf_printf(&wrong, "%s%s", wrong.len ? " " : "", keys[i].key);
	if (wrong.len)
		return err_cni(e, HW_CNI_INVALID_CONFIG,
			       "%s backend was requested but configuration contains %s-specific "
			       "options [%s]",
			       conf->backend, nft ? "iptables" : "nftables", wrong.data);
	return 0;
}

int portmap_conf_check(const struct portmap_conf *conf, struct hw_err *e)
{
	const struct portmap_entry *entries = conf->entries.v;
	struct portmap_port port;
	int r = 0;

	if (conf->has_mark_bit && conf->has_external_chain)
		return err_cni(e, HW_CNI_INVALID_CONFIG,
			       "Cannot specify externalSetMarkChain and markMasqBit");
	if (conf->mark_bit < 0 || conf->mark_bit > 31)
		return err_cni(e, HW_CNI_INVALID_CONFIG, "MasqMarkBit must be between 0 and 31");
	r = check_backend(conf, e);
	for (size_t i = 0; r >= 0 && i < conf->entries.n; i++)
		r = portmap_port_parse(&entries[i], &port, e);
	return r;
}

/* ---- the record ------------------------------------------------------------------------------ */

size_t portmap_pod_addresses(const struct portmap_record *record, struct hw_prefix ret_pods[2])
{
	const char *texts[] = { record->pod4, record->pod6 };
	struct hw_err ignored;
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		if (texts[i] && hw_prefix_parse(texts[i], &ret_pods[n], &ignored) >= 0)
			n++;
	return n;
}

/* Do both ports map the same host port on the same host address, in at least one common family? */
static bool is_same_port(const struct portmap_port *a, const struct portmap_port *b)
{
	return a->proto == b->proto && a->host_port == b->host_port &&
	       (!a->family || !b->family || a->family == b->family) &&
	       hw_ip_equal(&a->host, &b->host);
}

/* Return: 1 if one of the @n ports is the same mapping, 0 if not; an error if one of them maps the
 * same host port to another port of the pod */
static int is_duplicate(const struct portmap_entry *entry, const struct portmap_port *port,
			const struct portmap_port *ports, size_t n, struct hw_err *e)
{
	for (size_t i = 0; i < n; i++) {
		if (!is_same_port(port, &ports[i]))
			continue;
		if (port->pod_port == ports[i].pod_port)
			return 1;
		return err_cni(e, HW_CNI_INVALID_CONFIG,
			       "host port %d/%s is mapped to two container ports: %d and %d",
			       entry->host_port, entry->protocol, ports[i].pod_port,
			       port->pod_port);
	}
	return 0;
}

/* Appends the entries for one family (@one_family true), or the entries for both families (false),
 * and skips duplicates. */
static int read_entries(const struct portmap_conf *conf, bool one_family,
			struct portmap_port *ports, struct portmap_record *record, struct hw_err *e)
{
	const struct portmap_entry *in = conf->entries.v;
	struct portmap_entry *out = record->entries.v;

	for (size_t i = 0; i < conf->entries.n; i++) {
		size_t n = record->entries.n;
		int r;

		r = portmap_port_parse(&in[i], &ports[n], e);
		if (r >= 0 && one_family != (ports[n].family != 0))
			continue;
		if (r >= 0)
			r = is_duplicate(&in[i], &ports[n], ports, n, e);
		if (r < 0)
			return r;
		if (r > 0)
			continue;
		out[n] =
			(struct portmap_entry){ in[i].host_port, in[i].pod_port,
						str_copy(in[i].protocol), str_copy(in[i].host_ip) };
		record->entries.n++;
	}
	return 0;
}

/* In each family, the pod's address is the first one that prevResult does not assign to another
 * interface. */
static void read_pod_addresses(const struct hw_call *call, struct portmap_record *record)
{
	const struct hw_result *prev = call->prev;
	char text[HW_PREFIX_TEXT];

	for (size_t i = 0; prev && i < prev->n_ips; i++) {
		const struct hw_ipconf *ip = &prev->ips[i];
		char **pod = ip->address.ip.family == AF_INET ? &record->pod4 : &record->pod6;
		const struct hw_iface *iface = NULL;

		if (ip->has_iface && ip->iface >= 0 && (size_t)ip->iface < prev->n_ifaces)
			iface = &prev->ifaces[ip->iface];
		if (*pod ||
		    (iface && (!str_equal(iface->name, call->ifname) || str_empty(iface->sandbox))))
			continue;
		*pod = str_copy(hw_prefix_format(&ip->address, text));
	}
}

int portmap_conf_read(const struct hw_call *call, struct portmap_record *record, struct hw_err *e)
{
	const struct portmap_conf *conf = call->conf;
	autofree struct portmap_port *ports = mem_new((conf->entries.n + 1) * sizeof(*ports));
	int r;

	record->snat = conf->snat;
	record->masq_all = conf->snat && conf->masq_all;
	record->mark_bit = conf->mark_bit;
	read_pod_addresses(call, record);
	/* Read the entries for both families first: an entry for one family that repeats one of
	 * them is then recognized as a duplicate. */
	record->entries.v = mem_new((conf->entries.n + 1) * sizeof(struct portmap_entry));
	r = read_entries(conf, false, ports, record, e);
	if (r >= 0)
		r = read_entries(conf, true, ports, record, e);
	if (r < 0)
		return r;
	r = portmap_condition(&conf->cond4, AF_INET, &record->cond4, e);
	if (r < 0)
		return err_ctx(e, "conditionsV4");
	r = portmap_condition(&conf->cond6, AF_INET6, &record->cond6, e);
	return r < 0 ? err_ctx(e, "conditionsV6") : 0;
}
