/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/nft/foreign.c - delete chains and rules that upstream created for a pod
 *
 * How:   the rules of one chain are listed. The rules that contain the given text (the
 *        name of a chain, or a comment) are deleted by their handles, in the same
 *        transaction as the chain.
 */
#include "net/nft/foreign.h"

#include <errno.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <string.h>

#include "net/nft/rule.h"
#include "net/nft/wire.h"

#define TRIES	    100 /* a try fails if another process deletes one of the rules first */
#define PARENTS_MAX 4

struct rule_search {
	const char *text;
	size_t len;
	uint16_t in; /* the attribute of a rule in which to search */
	uint64_t *handles;
	size_t n;
};

static void search_done(struct rule_search *search)
{
	free(search->handles);
}
AUTO_VALUE_DEFINE(search_done, struct rule_search);

static int search_rule(void *ctx, const struct nlmsghdr *m, struct hw_err *e)
{
	struct rule_search *search = ctx;
	const struct nlattr *attr;
	bool found = false;
	uint64_t handle = 0;

	(void)e;
	mnl_attr_for_each(attr, m, sizeof(struct nfgenmsg)) {
		if (mnl_attr_get_type(attr) == NFTA_RULE_HANDLE)
			handle = mnl_attr_get_u64(attr);
		else if (mnl_attr_get_type(attr) == search->in)
			found = memmem(mnl_attr_get_payload(attr), mnl_attr_get_payload_len(attr),
				       search->text, search->len);
	}
	if (!found)
		return 0;
	search->handles = mem_resize(search->handles, search->n + 1, sizeof(*search->handles));
	search->handles[search->n++] = handle;
	return 0;
}

static struct nlmsghdr *put_chain_names(struct nlmsghdr *m, const struct nft_chain_ref *place)
{
	nft_put_name(m, NFTA_RULE_TABLE, place->table);
	nft_put_name(m, NFTA_RULE_CHAIN, place->chain);
	return m;
}

static int search_chain(struct nft *nft, const struct nft_chain_ref *place,
			struct rule_search *search, struct hw_err *e)
{
	struct nlmsghdr *m = nft_start_request(nft, NFT_MSG_GETRULE, NLM_F_DUMP, place->family);
	int r;

	r = nft_send_request(nft, put_chain_names(m, place), search_rule, search, e);
	return r == -ENOENT ? 0 : r;
}

int nft_has_chain(struct nft *nft, const struct nft_chain_ref *place, struct hw_err *e)
{
	struct nft_chain_info ignored;

	return nft_get_chain(nft, place, &ignored, e);
}

/* Deletes the found rules; if @found is NULL, all rules of the chain. */
static void put_delete_rules(struct nft *nft, const struct nft_chain_ref *place,
			     const struct rule_search *found)
{
	for (size_t i = 0; i < (found ? found->n : 1); i++) {
		struct nlmsghdr *m = nft_start_message(nft, NFT_MSG_DELRULE, 0, place->family);

		put_chain_names(m, place);
		if (found)
			mnl_attr_put_u64(m, NFTA_RULE_HANDLE, found->handles[i]);
		nft_end_message(nft, m);
	}
}

/* Return: 0; -ENOENT if another process has deleted some of the objects since they were read, then
 * nothing was deleted; or another negative errno */
static int commit_deletion(struct nft *nft, const struct nft_chain_ref *place, struct hw_err *e)
{
	int r;

	nft->deleted = true;
	r = nft_batch_commit(nft, e);
	if (r >= 0)
		return r;
	return err_ctx(e, "delete rules of nftables chain %s of table %s", place->chain,
		       place->table);
}

static int delete_chain_once(struct nft *nft, const struct nft_chain_ref *place,
			     const char *const *parents, struct hw_err *e)
{
	struct rule_search found[PARENTS_MAX] = { 0 };
	struct nlmsghdr *m;
	size_t n = 0;
	int r;

	r = nft_has_chain(nft, place, e);
	if (r <= 0)
		return r;
	for (; r >= 0 && n < PARENTS_MAX && parents[n]; n++) {
		struct nft_chain_ref parent = { place->family, place->table, parents[n] };

		found[n] = (struct rule_search){ .text = place->chain,
						 .len = strlen(place->chain) + 1,
						 .in = NFTA_RULE_EXPRESSIONS };
		r = search_chain(nft, &parent, &found[n], e);
	}
	nft_batch_begin(nft, 0);
	for (size_t i = 0; i < n; i++) {
		struct nft_chain_ref parent = { place->family, place->table, parents[i] };

		put_delete_rules(nft, &parent, &found[i]);
		search_done(&found[i]);
	}
	put_delete_rules(nft, place, NULL);
	m = nft_start_message(nft, NFT_MSG_DELCHAIN, 0, place->family);
	nft_put_name(m, NFTA_CHAIN_TABLE, place->table);
	nft_put_name(m, NFTA_CHAIN_NAME, place->chain);
	nft_end_message(nft, m);
	return r < 0 ? err_ctx(e, "list nftables table %s", place->table)
		     : commit_deletion(nft, place, e);
}

int nft_foreign_delete_chain(struct nft *nft, const struct nft_chain_ref *place,
			     const char *const *parents, struct hw_err *e)
{
	int r = -ENOENT;

	for (int tries = 0; r == -ENOENT && tries < TRIES; tries++)
		r = delete_chain_once(nft, place, parents, e);
	return r == -ENOENT ? 0 : r;
}

static int delete_rules(struct nft *nft, const struct nft_chain_ref *place, const char *text,
			size_t len, struct hw_err *e)
{
	for (int tries = 0; tries < TRIES; tries++) {
		AUTO(search_done)
		struct rule_search found = { .text = text, .len = len, .in = NFTA_RULE_USERDATA };
		int r;

		r = nft_has_chain(nft, place, e);
		if (r <= 0)
			return r;
		r = search_chain(nft, place, &found, e);
		if (r < 0)
			return err_ctx(e, "list nftables chain %s of table %s", place->chain,
				       place->table);
		if (!found.n)
			return 0;
		nft_batch_begin(nft, 0);
		put_delete_rules(nft, place, &found);
		r = commit_deletion(nft, place, e);
		if (r != -ENOENT)
			return r;
	}
	return 0;
}

int nft_foreign_has_rule_containing(struct nft *nft, const struct nft_chain_ref *place,
				    const char *comment, struct hw_err *e)
{
	AUTO(search_done)
	struct rule_search found = { .text = comment,
				     .len = strlen(comment),
				     .in = NFTA_RULE_USERDATA };
	int r;

	r = search_chain(nft, place, &found, e);
	if (r < 0 && !nft_is_unsupported(nft))
		return err_ctx(e, "list nftables chain %s of table %s", place->chain, place->table);
	return found.n > 0;
}

int nft_foreign_delete_rules_containing(struct nft *nft, const struct nft_chain_ref *place,
					const char *comment, struct hw_err *e)
{
	return delete_rules(nft, place, comment, strlen(comment), e);
}

/* Searches for the comment in the format in which nft stores it: type 0, length, text with NUL. */
int nft_foreign_delete_rules(struct nft *nft, const struct nft_chain_ref *place,
			     const char *comment, struct hw_err *e)
{
	size_t len = strlen(comment) + 1;
	autofree char *userdata = mem_new(len + 2);

	if (len > UINT8_MAX)
		return 0;
	userdata[1] = (char)len;
	memcpy(userdata + 2, comment, len);
	return delete_rules(nft, place, userdata, len + 2, e);
}
