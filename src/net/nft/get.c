/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/nft/get.c - look into our nftables sets and maps
 */
#include <errno.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>

#include "net/nft/elem.h"
#include "net/nft/wire.h"

struct look {
	struct nft_elem *elem; /* in which set; then what was found */
	bool found;
	int (*each)(void *ctx, const struct nft_elem *elem, struct hw_err *e);
	void *ctx;
};

static int look_at_item(struct look *look, const struct nlattr *item, struct hw_err *e)
{
	struct nft_elem found = nft_elem(look->elem->table, look->elem->set, look->elem->mode);

	nft_elem_decode(item, &found);
	if (look->each)
		return look->each(look->ctx, &found, e);
	*look->elem = found;
	look->found = true;
	return 0;
}

static int look_at(void *ctx, const struct nlmsghdr *m, struct hw_err *e)
{
	const struct nlattr *attr, *item;
	int r = 0;

	mnl_attr_for_each(attr, m, sizeof(struct nfgenmsg))
		if (mnl_attr_get_type(attr) == NFTA_SET_ELEM_LIST_ELEMENTS)
			mnl_attr_for_each_nested(item, attr)
				if (r >= 0)
					r = look_at_item(ctx, item, e);
	return r;
}

/**
 * nft_get() - one element by its key; of an interval the one that holds its beginning
 *
 * Return: 1 with what is there, 0 when it, its set or its table is not
 */
int nft_get(struct nft *nft, const struct nft_elem *elem, struct nft_elem *ret_elem,
	    struct hw_err *e)
{
	struct nlmsghdr *m = nft_question(nft, NFT_MSG_GETSETELEM, 0, nft_family(elem->table));
	struct nft_elem found = *elem;
	struct look look = { .elem = &found };
	int r;

	nft_elem_encode(m, elem, NULL);
	r = nft_ask(nft, m, look_at, &look, e);
	if (r == -ENOENT || (r == 0 && !look.found))
		return 0;
	if (r < 0)
		return err_set(e, r, "look into nftables set %s", elem->set);
	*ret_elem = found;
	return 1;
}

/**
 * nft_list() - every element of a set, once all of them are read
 *
 * Return: 0, or what @each returned, which ends it when negative
 */
int nft_list(struct nft *nft, enum nft_table table, const char *set,
	     int (*each)(void *ctx, const struct nft_elem *elem, struct hw_err *e), void *ctx,
	     struct hw_err *e)
{
	struct nlmsghdr *m = nft_question(nft, NFT_MSG_GETSETELEM, NLM_F_DUMP, nft_family(table));
	struct nft_elem in = nft_elem(table, set, NFT_OWNED);
	struct look look = { .elem = &in, .each = each, .ctx = ctx };
	int r;

	mnl_attr_put_strz(m, NFTA_SET_ELEM_LIST_TABLE, NFT_TABLE);
	mnl_attr_put_strz(m, NFTA_SET_ELEM_LIST_SET, set);
	e->msg[0] = '\0';
	r = nft_ask(nft, m, look_at, &look, e);
	if (r == -ENOENT || (r < 0 && nft_is_missing(nft)))
		return 0;
	return r < 0 && !*e->msg ? err_set(e, r, "list nftables set %s", set) : r;
}
