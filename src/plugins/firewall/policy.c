/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/firewall/policy.c - ingressPolicy: what a bridge has in our sets
 *
 * What:  elements that are the bridge's, not a pod's: they stay when its pods go.
 * How:   an ADD removes those of another policy than its own, once no pod
 *        on the bridge has that policy any more; the records say which do.
 * Rules: a pod's record is there before its elements are. So whoever deletes
 *        looks at the records once more behind that, and puts back what somebody
 *        has come to need meanwhile. As long as pods of several policies share
 *        a bridge, an ADD reads no more records than until it has found them.
 */
#include <string.h>

#include "base/err.h"
#include "base/str.h"
#include "cni/lock.h"
#include "cni/plugin/record.h"
#include "net/nft/nft.h"
#include "plugins/firewall/firewall.h"

static const char *const policies[] = { "isolated", "same-bridge" };

static const char *set_of(const char *policy)
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

/**
 * firewall_policy_fill() - the elements of a record's bridge
 *
 * Of a link that is no bridge they are the pod's own.
 */
void firewall_policy_fill(struct nft_elems *elems, const struct firewall_made *made)
{
	enum nft_mode mode = made->is_pods ? NFT_OWNED : NFT_SHARED;

	if (!made->bridge || !made->policy)
		return;
	nft_elems_add(elems, bridge_elem("protected", made->bridge, mode));
	nft_elems_add(elems, bridge_elem(set_of(made->policy), made->bridge, mode));
}

/* ---- those of another policy -------------------------------------------------------------------- */

struct search {
	const struct hw_call *call;
	const char *bridge;
	bool there[ARRAY_SIZE(policies)]; /* whether some pod has it is the question */
	bool found[ARRAY_SIZE(policies)]; /* some pod has it */
};

static bool is_answered(const struct search *search)
{
	for (size_t i = 0; i < ARRAY_SIZE(policies); i++)
		if (search->there[i] && !search->found[i])
			return false;
	return true;
}

static int look_at_record(void *ctx, const struct record *record, struct hw_err *e)
{
	struct search *search = ctx;
	const struct hw_call *call = search->call;
	struct firewall_made made = { 0 };

	if (!record->made || (str_equal(record->network, call->network) &&
			      str_equal(record->container_id, call->container_id) &&
			      str_equal(record->ifname, call->ifname)))
		return 0;
	int r = hw_field_decode(firewall_made_fields, record->made, strlen(record->made), &made, e);
	for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(policies); i++)
		search->found[i] |= str_equal(made.bridge, search->bridge) &&
				    str_equal(made.policy, policies[i]);
	hw_field_clear(firewall_made_fields, &made);
	return is_answered(search);
}

/* Every element in question that this ADD does not want, and, by the records, nobody else */
static void find_stale(struct nft_elems *stale, struct search *search, const char *policy)
{
	autofree char *state = lock_state_dir();
	struct errors errors = { 0 };
	struct hw_err unread;
	bool open = str_empty(policy);

	record_each_of(state, "firewall", look_at_record, search, &errors);
	if (errors_end(&errors, &unread) < 0)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(policies); i++) {
		open &= !search->found[i];
		if (search->there[i] && !search->found[i] && !str_equal(policies[i], policy))
			nft_elems_add(stale,
				      bridge_elem(set_of(policies[i]), search->bridge, NFT_OWNED));
	}
	if (open)
		nft_elems_add(stale, bridge_elem("protected", search->bridge, NFT_OWNED));
}

/* Of which policies are there any? */
static int find_others(struct nft *nft, struct search *search, const char *policy, struct hw_err *e)
{
	struct nft_elem there;
	int r = 0;

	for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(policies); i++) {
		struct nft_elem elem = bridge_elem(set_of(policies[i]), search->bridge, NFT_OWNED);

		if (str_equal(policies[i], policy))
			continue;
		r = nft_get(nft, &elem, &there, e);
		search->there[i] = r > 0;
	}
	return r;
}

/* Those that are not stale any more */
static int put_back(struct nft *nft, const struct nft_elems *gone, const struct nft_elems *stale,
		    struct hw_err *e)
{
	AUTO(nft_elems_done) struct nft_elems back = { 0 };

	for (size_t i = 0; i < gone->n; i++)
		if (!nft_elems_has(stale, &gone->v[i])) {
			nft_elems_add(&back, gone->v[i]);
			back.v[back.n - 1].mode = NFT_SHARED;
		}
	return back.n ? nft_add(nft, back.v, back.n, "", NULL, e) : 0;
}

/**
 * firewall_policy_settle() - forget what a bridge has of a policy that nobody on it has any more
 * @policy: that of the pod which comes; NULL or "": open
 */
int firewall_policy_settle(struct nft *nft, const struct hw_call *call, const char *bridge,
			   const char *policy, struct hw_err *e)
{
	AUTO(nft_elems_done) struct nft_elems before = { 0 }, after = { 0 };
	struct search first = { .call = call, .bridge = bridge },
		      second = { call, bridge, { true, true }, { 0 } };

	int r = find_others(nft, &first, policy, e);
	if (r < 0 || is_answered(&first))
		return r < 0 ? r : 0;
	find_stale(&before, &first, policy);
	r = before.n ? nft_del(nft, before.v, before.n, "", e) : 0;
	if (r < 0 || !before.n)
		return r;
	find_stale(&after, &second, policy);
	return put_back(nft, &before, &after, e);
}
