/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/rules.c - our nftables rules, for people: list, repair, remove
 *
 * What:  an element carries its owner as a hash; the attachment records have the
 *        names behind it.
 * Rules: repair needs nothing but the records; it can be run at any time.
 */
#include "plugins/rules.h"

#include <errno.h>
#include <stdio.h>

#include "base/err.h"
#include "base/json/value.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"
#include "cni/lock.h"
#include "cni/plugin/attach.h"
#include "cni/plugin/record.h"
#include "net/nft/nft.h"

static const char *const families[] = { [NFT_INET] = "inet", [NFT_BRIDGE] = "bridge" };

/* ---- who owns what ------------------------------------------------------------------------ */

struct pod {
	char *network, *container_id, *ifname;
};

static void pod_free(void *p)
{
	struct pod *pod = p;

	free(pod->network);
	free(pod->container_id);
	free(pod->ifname);
	free(pod);
}

static int learn(void *ctx, const struct record *r, struct hw_err *e)
{
	struct pod *pod = mem_new(sizeof(*pod));
	char owner[NFT_OWNER];

	(void)e;
	*pod = (struct pod){ str_copy(r->network), str_copy(r->container_id), str_copy(r->ifname) };
	nft_owner(r->network, r->container_id, r->ifname, owner);
	map_set(ctx, owner, pod);
	return 0;
}

static int learn_owners(const struct hw_plugin *const *plugins, struct map *owners,
			struct hw_err *e)
{
	autofree char *state = lock_state_dir();
	struct errors errors = { 0 };

	for (size_t i = 0; plugins[i]; i++)
		if (plugins[i]->record)
			record_each_of(state, plugins[i]->name, learn, owners, &errors);
	return errors_end(&errors, e);
}

/* ---- list ------------------------------------------------------------------------------------ */

struct listing {
	const struct map *owners;
	struct value *json; /* NULL: print */
};

static void print_elem(const struct nft_elem *elem, const char *text, const struct pod *pod)
{
	printf("%-6s %-11s %-40s ", families[elem->table], elem->set, text);
	if (pod)
		printf("%s %s of network %s\n", pod->container_id, pod->ifname, pod->network);
	else
		puts(*elem->owner ? elem->owner : "-");
}

static void append_elem(struct value *list, const struct nft_elem *elem, const char *text,
			const struct pod *pod)
{
	struct value *entry = value_new_object();

	value_set(entry, "table", value_new_string(families[elem->table]));
	value_set(entry, "set", value_new_string(elem->set));
	value_set(entry, "element", value_new_string(text));
	if (*elem->owner)
		value_set(entry, "owner", value_new_string(elem->owner));
	if (pod) {
		value_set(entry, "network", value_new_string(pod->network));
		value_set(entry, "containerID", value_new_string(pod->container_id));
		value_set(entry, "ifname", value_new_string(pod->ifname));
	}
	value_append(list, entry);
}

static int list_elem(void *ctx, const struct nft_elem *elem, struct hw_err *e)
{
	const struct listing *listing = ctx;
	const struct pod *pod = map_find(listing->owners, elem->owner);
	char text[NFT_ELEM_TEXT];

	(void)e;
	nft_elem_format(elem, text);
	if (listing->json)
		append_elem(listing->json, elem, text, pod);
	else
		print_elem(elem, text, pod);
	return 0;
}

/**
 * rules_list() - every element of ours, and the pod that it belongs to
 */
int rules_list(const struct hw_plugin *const *plugins, bool json, struct hw_err *e)
{
	AUTO(map_free) struct map *owners = map_new(pod_free);
	AUTO(value_free) struct value *list = value_new_array();
	AUTO(nft_close) struct nft *nft = NULL;
	struct listing listing = { owners, json ? list : NULL };

	int r = learn_owners(plugins, owners, e);
	if (r >= 0)
		r = nft_open(&nft, e);
	for (const struct nft_set *set = nft_sets; r >= 0 && set->name; set++)
		r = nft_list(nft, set->table, set->name, list_elem, &listing, e);
	if (r < 0 || !json)
		return r;
	autofree char *text = value_format(list, HW_JSON_PRETTY);
	puts(text);
	return 0;
}

/* ---- repair ---------------------------------------------------------------------------------- */

/**
 * rules_repair() - the rules where they are gone, then each attachment's elements
 */
int rules_repair(const struct hw_plugin *const *plugins, struct hw_err *e)
{
	autofree char *state = lock_state_dir();
	AUTO(nft_close) struct nft *nft = NULL;
	struct errors errors = { 0 };

	int r = record_check_dir(state, e);
	if (r >= 0)
		r = nft_open(&nft, e);
	if (r >= 0)
		r = nft_repair(nft, NFT_INET, e);
	if (r >= 0)
		r = nft_repair(nft, NFT_BRIDGE, e);
	if (r < 0)
		return r;
	int repaired = attach_repair(plugins, state, &errors);
	r = errors_end(&errors, e);
	return r < 0 ? r : repaired;
}

/* ---- remove ---------------------------------------------------------------------------------- */

static int refuse_owned(void *ctx, const struct nft_elem *elem, struct hw_err *e)
{
	char text[NFT_ELEM_TEXT];

	(void)ctx;
	if (!*elem->owner)
		return 0;
	return err_text(e, -EBUSY, "nftables table %s hawser is in use: set %s has %s",
			families[elem->table], elem->set, nft_elem_format(elem, text));
}

/**
 * rules_remove() - delete our tables, unless pods need them
 */
int rules_remove(struct hw_err *e)
{
	AUTO(nft_close) struct nft *nft = NULL;
	int removed = 0;

	int r = nft_open(&nft, e);
	for (const struct nft_set *set = nft_sets; r >= 0 && set->name; set++)
		r = nft_list(nft, set->table, set->name, refuse_owned, NULL, e);
	for (size_t table = 0; r >= 0 && table < ARRAY_SIZE(families); table++) {
		r = nft_remove(nft, (enum nft_table)table, e);
		if (r > 0)
			printf("nftables table %s hawser removed\n", families[table]);
		removed += r > 0;
	}
	return r < 0 ? r : removed;
}
