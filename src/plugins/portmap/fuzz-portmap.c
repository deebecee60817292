/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/portmap/fuzz-portmap.c - whatever the configuration, what becomes of it is fit for nftables
 *
 * A condition cannot end the rule that it becomes a part of; a port is one, and leads to one place;
 * and the record says all of it again.
 */
#include <assert.h>
#include <ctype.h>
#include <netinet/in.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

#include "base/mem.h"
#include "base/str.h"
#include "plugins/portmap/portmap.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char earlier[] =
	"{\"interfaces\":[{\"name\":\"eth0\",\"sandbox\":\"/run/netns/pod\"}],"
	"\"ips\":[{\"interface\":0,\"address\":\"10.1.2.3/24\"},"
	"{\"address\":\"fd00:12::3/64\"}]}";

static void look_at_condition(const char *text)
{
	int quotes = 0, depth = 0;

	if (!text)
		return;
	assert(*text && *text != '-' && *text != '!');
	assert(*text != ' ' && text[strlen(text) - 1] != ' ');
	for (const char *c = text; *c; c++) {
		assert(*c >= ' ' && *c <= '~' && !strchr(";#$\\`", *c));
		quotes += *c == '"';
		depth += quotes % 2 ? 0 : (*c == '{') - (*c == '}');
		assert(depth >= 0);
	}
	assert(quotes % 2 == 0 && depth == 0);
}

static bool is_same(const struct portmap_port *a, const struct portmap_port *b)
{
	return a->proto == b->proto && a->host_port == b->host_port &&
	       hw_ip_equal(&a->host, &b->host);
}

static void look_at_ports(const struct portmap_made *made, const struct hw_prefix *pod)
{
	const struct portmap_entry *entries = made->entries.v;
	struct portmap_port port, other;

	for (size_t i = 0; i < made->entries.n; i++) {
		if (!portmap_applies(&entries[i], pod, &port))
			continue;
		assert(port.proto == IPPROTO_TCP || port.proto == IPPROTO_UDP ||
		       port.proto == IPPROTO_SCTP);
		assert(port.host_port && port.pod_port);
		assert(!port.host.family || port.host.family == pod->ip.family);
		for (size_t j = 0; j < i; j++)
			assert(!portmap_applies(&entries[j], pod, &other) ||
			       !is_same(&port, &other));
	}
}

static void look_at(const struct portmap_made *made)
{
	struct hw_prefix pods[2];
	size_t n = portmap_pods(made, pods);

	assert(n == 2 && pods[0].ip.family == AF_INET && pods[1].ip.family == AF_INET6);
	assert(made->mark_bit >= 0 && made->mark_bit < 32);
	assert(made->snat || !made->masq_all);
	look_at_condition(made->cond4);
	look_at_condition(made->cond6);
	for (size_t i = 0; i < n; i++)
		look_at_ports(made, &pods[i]);
}

static void look_at_record(const struct portmap_made *made)
{
	autofree char *json = hw_field_encode(portmap_made_fields, made, 0);
	struct portmap_made again;
	struct hw_err e;

	int r = hw_field_decode(portmap_made_fields, json, strlen(json), &again, &e);
	assert(r == 0);
	autofree char *twice = hw_field_encode(portmap_made_fields, &again, 0);
	assert(str_equal(json, twice));
	hw_field_clear(portmap_made_fields, &again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct portmap_made made = { 0 };
	struct hw_result *prev = NULL;
	struct portmap_conf conf;
	struct hw_err e;

	if (hw_field_decode(portmap_fields, (const char *)data, size, &conf, &e) < 0)
		return 0;
	int r = hw_result_parse(earlier, strlen(earlier), "1.0.0", &prev, &e);
	assert(r == 0);
	struct hw_call call = { .ifname = "eth0", .conf = &conf, .prev = prev };
	if (portmap_conf_check(&conf, &e) >= 0 && portmap_conf_read(&call, &made, &e) >= 0) {
		look_at(&made);
		look_at_record(&made);
	} else {
		assert(e.msg[0]);
	}
	hw_field_clear(portmap_made_fields, &made);
	hw_field_clear(portmap_fields, &conf);
	hw_result_free(prev);
	return 0;
}
