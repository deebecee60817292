/* SPDX-License-Identifier: Apache-2.0 */
/*
 * interchange.c - our library working with the cache of another runtime (test/lib/interchange.bats)
 *
 * usage: interchange rewrite CONTAINER    read its cache files, remove them, write them again
 *        interchange del CONTAINER        detach it, using only the cache
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <hawser/cni.h>

#include "base/mem.h"
#include "cni/runtime/cache.h"
#include "cni/runtime/conf.h"

static const char *const plugin_dirs[] = { "/usr/lib/cni", NULL };

/* The arguments of the ADD, borrowed from the entry. */
static struct hw_attach attach_from_cache(const struct hw_cached *entry, const char *(*pairs)[2])
{
	for (size_t i = 0; i < entry->args.n; i++) {
		pairs[i][0] = entry->args.keys[i];
		pairs[i][1] = entry->args.values[i];
	}
	return (struct hw_attach){
		.size = sizeof(struct hw_attach),
		.container_id = entry->container_id,
		.netns = entry->netns,
		.ifname = entry->ifname,
		.args = (const char *const(*)[2])pairs,
		.n_args = entry->args.n,
		.capability_args = entry->capability_args,
	};
}

static int rewrite_entry(const struct hw_cni *cni, const struct hw_conf *conf,
			 const struct hw_cached *entry, const struct hw_attach *at,
			 struct hw_err *e)
{
	int r;

	(void)cni;
	r = cache_remove(CACHE_DIR, entry->network, at, e);
	if (r < 0)
		return r;
	return cache_write(CACHE_DIR, conf, at, entry->result, e);
}

static int detach_entry(const struct hw_cni *cni, const struct hw_conf *conf,
			const struct hw_cached *entry, const struct hw_attach *at, struct hw_err *e)
{
	(void)entry;
	return hw_del(cni, conf, at, e);
}

static int process_entry(const struct hw_cni *cni, const struct hw_cached *entry,
			 int (*action)(const struct hw_cni *, const struct hw_conf *,
				       const struct hw_cached *, const struct hw_attach *,
				       struct hw_err *),
			 struct hw_err *e)
{
	AUTO(hw_conf_free) struct hw_conf *conf = NULL;
	autofree const char *(*pairs)[2] = mem_new((entry->args.n + 1) * sizeof(*pairs));
	struct hw_attach at = attach_from_cache(entry, pairs);
	int r;

	r = hw_conf_parse(entry->config, strlen(entry->config), &conf, e);
	if (r < 0)
		return r;
	return action(cni, conf, entry, &at, e);
}

int main(int argc, char **argv)
{
	struct hw_cni_options options = { .size = sizeof(options), .plugin_dirs = plugin_dirs };
	AUTO(hw_cached_list_free) struct hw_cached_list list = { 0 };
	struct hw_cni *cni = NULL;
	struct hw_err e;
	int r;

	if (argc != 3)
		return 2;
	r = hw_cni_new(&options, &cni, &e);
	if (r == 0)
		r = hw_cached_attachments(cni, argv[2], NULL, NULL, &list, &e);
	for (size_t i = 0; r >= 0 && i < list.n; i++)
		r = process_entry(cni, &list.v[i],
				  strcmp(argv[1], "del") == 0 ? detach_entry : rewrite_entry, &e);
	hw_cni_free(cni);
	if (r < 0)
		fprintf(stderr, "interchange: %s\n", e.msg);
	else
		printf("%zu attachments\n", list.n);
	return r < 0;
}
