/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/portmap/fuzz-portmap.c - fuzzer for the configuration of portmap
 *
 * Checks for every configuration that is accepted: no condition can end the rule that it becomes
 * part of, each host port is mapped only once, and the record does not change when it is encoded
 * and decoded.
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

static const char prev_result[] =
	"{\"interfaces\":[{\"name\":\"eth0\",\"sandbox\":\"/run/netns/pod\"}],"
	"\"ips\":[{\"interface\":0,\"address\":\"10.1.2.3/24\"},"
	"{\"address\":\"fd00:12::3/64\"}]}";

static void check_condition(const char *text)
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

static void check_ports(const struct portmap_record *record, const struct hw_prefix *pod)
{
	const struct portmap_entry *entries = record->entries.v;
	struct portmap_port port, other;

	for (size_t i = 0; i < record->entries.n; i++) {
		if (!portmap_entry_applies(&entries[i], pod, &port))
			continue;
		assert(port.proto == IPPROTO_TCP || port.proto == IPPROTO_UDP ||
		       port.proto == IPPROTO_SCTP);
		assert(port.host_port && port.pod_port);
		assert(!port.host.family || port.host.family == pod->ip.family);
		for (size_t j = 0; j < i; j++)
			assert(!portmap_entry_applies(&entries[j], pod, &other) ||
			       !is_same(&port, &other));
	}
}

static void check_record(const struct portmap_record *record)
{
	struct hw_prefix pods[2];
	size_t n = portmap_pod_addresses(record, pods);

	assert(n == 2 && pods[0].ip.family == AF_INET && pods[1].ip.family == AF_INET6);
	assert(record->mark_bit >= 0 && record->mark_bit < 32);
	assert(record->snat || !record->masq_all);
	check_condition(record->cond4);
	check_condition(record->cond6);
	for (size_t i = 0; i < n; i++)
		check_ports(record, &pods[i]);
}

static void check_record_encoding(const struct portmap_record *record)
{
	autofree char *json = hw_field_encode(portmap_record_fields, record, 0);
	struct portmap_record decoded;
	struct hw_err e;

	int r = hw_field_decode(portmap_record_fields, json, strlen(json), &decoded, &e);
	assert(r == 0);
	autofree char *encoded_again = hw_field_encode(portmap_record_fields, &decoded, 0);
	assert(str_equal(json, encoded_again));
	hw_field_clear(portmap_record_fields, &decoded);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct portmap_record record = { 0 };
	struct hw_result *prev = NULL;
	struct portmap_conf conf;
	struct hw_err e;

	if (hw_field_decode(portmap_fields, (const char *)data, size, &conf, &e) < 0)
		return 0;
	int r = hw_result_parse(prev_result, strlen(prev_result), "1.0.0", &prev, &e);
	assert(r == 0);
	struct hw_call call = { .ifname = "eth0", .conf = &conf, .prev = prev };
	if (portmap_conf_check(&conf, &e) >= 0 && portmap_conf_read(&call, &record, &e) >= 0) {
		check_record(&record);
		check_record_encoding(&record);
	} else {
		assert(e.msg[0]);
	}
	hw_field_clear(portmap_record_fields, &record);
	hw_field_clear(portmap_fields, &conf);
	hw_result_free(prev);
	return 0;
}
