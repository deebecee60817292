/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/host-local/fuzz-pool.c - fuzzer for the configuration of host-local
 *
 * Checks for every configuration that is accepted: each address that can be allocated is inside its
 * range and is not the gateway.
 */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "base/ip.h"
#include "base/mem.h"
#include "plugins/host-local/pool.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_walk(const struct range_set *set)
{
	struct hw_ip last = set->v[set->n - 1].end;
	const struct range *r;
	struct range_walk w;

	range_walk_init(&w, set, &last);
	for (int i = 0; i < 300 && (r = range_walk_next(&w)); i++) {
		assert(range_set_find(set, &w.cur) == r);
		assert(!hw_ip_equal(&w.cur, &r->gateway));
		assert(ip_compare(&r->start, &w.cur) <= 0 && ip_compare(&w.cur, &r->end) <= 0);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO(pool_done) struct pool pool = { 0 };
	struct pool_conf conf;
	struct hw_err e;

	if (hw_field_decode(pool_fields, (const char *)data, size, &conf, &e) < 0)
		return 0;
	if (pool_init(&pool, &conf, "", "1.0.0", &e) >= 0)
		for (size_t i = 0; i < pool.n; i++)
			check_walk(&pool.sets[i]);
	hw_field_clear(pool_fields, &conf);
	return 0;
}
