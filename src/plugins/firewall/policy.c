/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/firewall/policy.c - ingressPolicy: elements of a bridge in our sets
 *
 * What:  these elements belong to the bridge, not to a pod: they stay after the DEL of
 *        the last pod.
 * How:   an ADD deletes the bridge's elements for each policy that differs from its own
 *        and that, according to the attachment records, no pod on the bridge has.
 * Rules: a pod's record is written before its elements are added. So after elements were
 *        deleted, the records are read again, and elements that a new record needs are
 *        added again. Reading the records stops as soon as a pod was found for each of
 *        the policies.
 */
#include <string.h>

#include "base/err.h"
#include "base/str.h"
#include "cni/lock.h"
#include "cni/plugin/record.h"
#include "net/nft/nft.h"
#include "plugins/firewall/firewall.h"

static const char *const policies[] = { "isolated", "same-bridge" };

static const char *policy_set(const char *policy)
{
	return str_equal(policy, "isolated") ? "isolated" : "samebridge";
}

static struct nft_elem bridge_elem(const char *set, const char *bridge, enum nft_mode mode)
{
	struct nft_elem elem = nft_elem(NFT_INET, set, mode);

	nft_key_ifname(&elem, bridge);
	if (!str_equal(set, "protected"))
		nft_key_ifname(&elem, bridge);
	return elem;
}

void firewall_policy_put(struct nft_elems *elems, const struct firewall_record *record)
{
	enum nft_mode mode = record->owned_by_pod ? NFT_OWNED : NFT_SHARED;

	if (!record->bridge || !record->policy)
		return;
	nft_elems_add(elems, bridge_elem("protected", record->bridge, mode));
	nft_elems_add(elems, bridge_elem(policy_set(record->policy), record->bridge, mode));
}

/* ---- stale policies -------------------------------------------------------------------------- */

struct policy_search {
	const struct hw_call *call;
	const char *bridge;
	bool candidate[ARRAY_SIZE(policies)]; /* look for pods with this policy */
	bool found[ARRAY_SIZE(policies)];     /* a pod with this policy was found */
};

static bool is_complete(const struct policy_search *search)
{
	for (size_t i = 0; i < ARRAY_SIZE(policies); i++)
		if (search->candidate[i] && !search->found[i])
			return false;
	return true;
}

static int search_record(void *ctx, const struct record *r, struct hw_err *e)
{
	struct policy_search *search = ctx;
	const struct hw_call *call = search->call;
	struct firewall_record record = { 0 };
	int decoded;

	if (!r->created ||
	    (str_equal(r->network, call->network) &&
	     str_equal(r->container_id, call->container_id) && str_equal(r->ifname, call->ifname)))
		return 0;
	decoded =
		hw_field_decode(firewall_record_fields, r->created, strlen(r->created), &record, e);
	for (size_t i = 0; decoded >= 0 && i < ARRAY_SIZE(policies); i++)
		search->found[i] |= str_equal(record.bridge, search->bridge) &&
				    str_equal(record.policy, policies[i]);
	hw_field_clear(firewall_record_fields, &record);
	return is_complete(search);
}

/* Collects the elements of the policies in search->candidate that neither this ADD nor any record
 * uses. Collects nothing if a record is unreadable. */
static void find_stale(struct nft_elems *stale, struct policy_search *search, const char *policy)
{
	autofree char *state = state_dir_default();
	struct errors errors = { 0 };
	struct hw_err ignored;
	bool open = str_empty(policy);

	record_each_of_plugin(state, "firewall", search_record, search, &errors);
	if (errors_result(&errors, &ignored) < 0)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(policies); i++) {
		open &= !search->found[i];
		if (search->candidate[i] && !search->found[i] && !str_equal(policies[i], policy))
			nft_elems_add(stale, bridge_elem(policy_set(policies[i]), search->bridge,
							 NFT_OWNED));
	}
	if (open)
		nft_elems_add(stale, bridge_elem("protected", search->bridge, NFT_OWNED));
}

int firewall_policy_delete_stale(struct nft *nft, const struct hw_call *call, const char *bridge,
				 const char *policy, struct hw_err *e)
{
	AUTO(nft_elems_done) struct nft_elems deleted = { 0 }, stale = { 0 }, needed = { 0 };
	struct policy_search first = { .call = call, .bridge = bridge },
			     second = { call, bridge, { true, true }, { 0 } };
	struct nft_elem found;
	int r;

	/* The candidates are the other policies for which the bridge has elements. */
	for (size_t i = 0; i < ARRAY_SIZE(policies); i++) {
		struct nft_elem elem = bridge_elem(policy_set(policies[i]), bridge, NFT_OWNED);

		if (str_equal(policies[i], policy))
			continue;
		r = nft_get(nft, &elem, &found, e);
		if (r < 0)
			return r;
		first.candidate[i] = r > 0;
	}
	if (is_complete(&first))
		return 0;
	find_stale(&deleted, &first, policy);
	if (!deleted.n)
		return 0;
	r = nft_del(nft, deleted.v, deleted.n, "", e);
	if (r < 0)
		return r;

	/* Add those deleted elements again that are no longer stale. */
	find_stale(&stale, &second, policy);
	for (size_t i = 0; i < deleted.n; i++)
		if (!nft_elems_has(&stale, &deleted.v[i])) {
			nft_elems_add(&needed, deleted.v[i]);
			needed.v[needed.n - 1].mode = NFT_SHARED;
		}
	return needed.n ? nft_add(nft, needed.v, needed.n, "", e) : 0;
}
