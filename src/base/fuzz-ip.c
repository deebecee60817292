/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/fuzz-ip.c - fuzz test: if a parsed address is formatted, the text parses to the same address
 */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "base/ip.h"
#include "base/mem.h"
#include "base/str.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fuzz_ip(const char *text)
{
	char written[HW_IP_TEXT];
	struct hw_ip ip, again, other;
	struct hw_err e;
	int r;

	if (hw_ip_parse(text, &ip, &e) < 0)
		return;
	r = hw_ip_parse(hw_ip_format(&ip, written), &again, &e);
	assert(r == 0 && hw_ip_equal(&ip, &again));
	if (ip_next(&ip, &other)) {
		assert(ip_compare(&ip, &other) < 0);
		assert(ip_prev(&other, &again) && hw_ip_equal(&ip, &again));
	}
}

static void fuzz_prefix(const char *text)
{
	char written[HW_PREFIX_TEXT];
	struct hw_prefix prefix, again;
	struct hw_ip first, last;
	struct hw_err e;
	int r;

	if (hw_prefix_parse(text, &prefix, &e) < 0)
		return;
	assert(prefix.len <= ip_bits(&prefix.ip));
	r = hw_prefix_parse(hw_prefix_format(&prefix, written), &again, &e);
	assert(r == 0 && hw_prefix_equal(&prefix, &again));
	first = prefix_network(&prefix);
	last = prefix_last(&prefix);
	assert(ip_compare(&first, &prefix.ip) <= 0 && ip_compare(&prefix.ip, &last) <= 0);
	assert(hw_prefix_contains(&prefix, &first) && hw_prefix_contains(&prefix, &last));
	if (ip_next(&last, &first))
		assert(!hw_prefix_contains(&prefix, &first));
}

static void fuzz_mac(const char *text)
{
	char written[HW_MAC_TEXT];
	struct hw_mac mac, again;
	struct hw_err e;
	int r;

	if (hw_mac_parse(text, &mac, &e) < 0)
		return;
	r = hw_mac_parse(hw_mac_format(&mac, written), &again, &e);
	assert(r == 0 && mac.len == again.len && memcmp(mac.bytes, again.bytes, mac.len) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	autofree char *text = str_ncopy((const char *)data, size);

	fuzz_ip(text);
	fuzz_prefix(text);
	fuzz_mac(text);
	return 0;
}
