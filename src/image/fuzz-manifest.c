/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image/fuzz-manifest.c - fuzzer for manifests, indexes and configurations
 *
 * A document is either rejected with an error or contains only valid digests.
 */
#include <assert.h>
#include <stdint.h>

#include "base/str.h"
#include "image/config.h"
#include "image/digest.h"
#include "image/manifest.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_descriptors(const struct hw_list *list)
{
	const struct descriptor *v = list->v;
	struct hw_err e;

	assert(list->n <= MANIFEST_ENTRIES_MAX);
	for (size_t i = 0; i < list->n; i++) {
		int r = digest_check(v[i].digest, &e);

		assert(r == 0 && v[i].size >= 0);
	}
}

static void fuzz_manifest(const char *text, size_t size)
{
	AUTO(manifest_free) struct manifest *m = NULL;
	AUTO(platform_done) struct platform own = { 0 };
	const struct descriptor *chosen = NULL;
	struct hw_err e = { 0 };

	if (manifest_parse(text, size, NULL, &m, &e) < 0) {
		assert(e.code < 0 && e.msg[0] && !m);
		return;
	}
	platform_of_host(&own);
	check_descriptors(&m->layers);
	check_descriptors(&m->manifests);
	if (m->kind == MANIFEST_INDEX && manifest_choose(m, &own, &chosen, &e) == 0)
		assert(chosen->digest);
	if (m->kind == MANIFEST_IMAGE)
		(void)manifest_check_image(m, &e);
}

static void fuzz_config(const char *text, size_t size)
{
	AUTO(image_config_free) struct image_config *c = NULL;
	struct hw_err e = { 0 };
	int64_t uid;

	if (image_config_parse(text, size, &c, &e) < 0) {
		assert(e.code < 0 && e.msg[0] && !c);
		return;
	}
	autofree char *name = image_config_username(c);
	assert(!name || !image_config_uid(c, &uid));
	for (size_t i = 0; i < c->diff_ids.n; i++)
		assert(digest_is_sha256(c->diff_ids.v[i]));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_manifest((const char *)data, size);
	fuzz_config((const char *)data, size);
	return 0;
}
