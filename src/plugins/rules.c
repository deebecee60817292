/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/rules.c - commands of hawser-plugin for our nftables rules: list, repair, remove
 *
 * How:   the owner of an element is stored as a hash of the attachment's names;
 *        the names themselves are read from the attachment records.
 * Rules: repair needs only the records, and can be run at any time.
 */
#include "plugins/rules.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>

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

/* ---- list ------------------------------------------------------------------------------------ */

/* The owner is an attachment or, if network and ifname are NULL, a container. */
struct owner_names {
	char *network, *container_id, *ifname;
};

static void names_free(void *p)
{
	struct owner_names *names = p;

	free(names->network);
	free(names->container_id);
	free(names->ifname);
	free(names);
}

static int add_owner(void *ctx, const struct record *r, struct hw_err *e)
{
	struct owner_names *names = mem_new(sizeof(*names));
	char owner[NFT_OWNER];

	(void)e;
	*names = (struct owner_names){ str_copy(r->network), str_copy(r->container_id),
				       str_copy(r->ifname) };
	nft_owner(r->network, r->container_id, r->ifname, owner);
	map_set(ctx, owner, names);
	names = mem_new(sizeof(*names));
	names->container_id = str_copy(r->container_id);
	nft_container_owner(r->container_id, owner);
	map_set(ctx, owner, names);
	return 0;
}

struct element_list {
	const struct map *owners;
	struct value *json;	    /* array to append to; NULL: print text instead */
	struct hw_strings networks; /* sets of networks that may exist */
};

static int list_elem(void *ctx, const struct nft_elem *elem, struct hw_err *e)
{
	struct element_list *list = ctx;
	const struct owner_names *names = map_find(list->owners, elem->owner);
	char text[NFT_ELEM_TEXT], set[NFT_NAME];

	(void)e;
	if (str_starts(elem->chain, "masq_")) {
		nft_direct_set(elem->chain, str_ends(elem->set, "4") ? AF_INET : AF_INET6, set);
		if (!strings_has(&list->networks, set))
			strings_add(&list->networks, set);
	}
	nft_elem_format(elem, text);
	if (!list->json) {
		printf("%-6s %-11s %-40s ", families[elem->table], elem->set, text);
		if (names && names->network)
			printf("%s %s of network %s\n", names->container_id, names->ifname,
			       names->network);
		else if (names)
			puts(names->container_id);
		else
			puts(*elem->owner ? elem->owner : "-");
		return 0;
	}
	struct value *entry = value_new_object();
	value_set(entry, "table", value_new_string(families[elem->table]));
	value_set(entry, "set", value_new_string(elem->set));
	value_set(entry, "element", value_new_string(text));
	if (*elem->owner)
		value_set(entry, "owner", value_new_string(elem->owner));
	if (names && names->network)
		value_set(entry, "network", value_new_string(names->network));
	if (names)
		value_set(entry, "containerID", value_new_string(names->container_id));
	if (names && names->ifname)
		value_set(entry, "ifname", value_new_string(names->ifname));
	value_append(list->json, entry);
	return 0;
}

int rules_list(const struct hw_plugin *const *plugins, bool json, struct hw_err *e)
{
	AUTO(map_free) struct map *owners = map_new(names_free);
	AUTO(value_free) struct value *array = value_new_array();
	AUTO(nft_close) struct nft *nft = NULL;
	autofree char *state = state_dir_default();
	struct element_list list = { .owners = owners, .json = json ? array : NULL };
	struct errors errors = { 0 };
	int r;

	for (size_t i = 0; plugins[i]; i++)
		if (plugins[i]->record)
			record_each_of_plugin(state, plugins[i]->name, add_owner, owners, &errors);
	r = errors_result(&errors, e);
	if (r < 0)
		return r;
	r = nft_open(&nft, e);
	if (r < 0)
		return r;
	for (const struct nft_set *set = nft_sets; set->name; set++) {
		r = nft_list(nft, set->table, set->name, list_elem, &list, e);
		if (r < 0)
			break;
	}
	for (size_t i = 0; r >= 0 && i < list.networks.n; i++)
		r = nft_list(nft, NFT_INET, list.networks.v[i], list_elem, &list, e);
	hw_strings_free(&list.networks);
	if (r < 0)
		return r;
	if (json) {
		autofree char *text = value_format(array, HW_JSON_PRETTY);
		puts(text);
	}
	return 0;
}

/* ---- repair ---------------------------------------------------------------------------------- */

int rules_repair(const struct hw_plugin *const *plugins, struct hw_err *e)
{
	autofree char *state = state_dir_default();
	AUTO(nft_close) struct nft *nft = NULL;
	struct errors errors = { 0 };
	int r;

	r = record_check_dir(state, e);
	if (r < 0)
		return r;
	r = nft_open(&nft, e);
	if (r < 0)
		return r;
	r = nft_repair(nft, NFT_INET, e);
	if (r < 0)
		return r;
	r = nft_repair(nft, NFT_BRIDGE, e);
	if (r < 0)
		return r;
	int repaired = attach_repair(plugins, state, &errors);
	r = errors_result(&errors, e);
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

int rules_remove(struct hw_err *e)
{
	AUTO(nft_close) struct nft *nft = NULL;
	int removed = 0;
	int r;

	r = nft_open(&nft, e);
	for (const struct nft_set *set = nft_sets; r >= 0 && set->name; set++)
		r = nft_list(nft, set->table, set->name, refuse_owned, NULL, e);
	for (size_t table = 0; r >= 0 && table < ARRAY_SIZE(families); table++) {
		r = nft_delete_table(nft, (enum nft_table)table, e);
		if (r > 0)
			printf("nftables table %s hawser removed\n", families[table]);
		removed += r > 0;
	}
	return r < 0 ? r : removed;
}
