/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/nft/elems.c - a list of elements, all of one owner
 */
#include "net/nft/nft.h"

#include <string.h>

#include "base/mem.h"
#include "base/str.h"

#define ROOM 16 /* in the beginning */

/**
 * nft_elems_done() - free what the list holds
 */
void nft_elems_done(struct nft_elems *elems)
{
	free(elems->v);
	*elems = (struct nft_elems){ 0 };
}

/**
 * nft_elems_add() - one more, whose key is complete
 */
void nft_elems_add(struct nft_elems *elems, struct nft_elem elem)
{
	if (elems->n == elems->room) {
		elems->room = elems->room ? 2 * elems->room : ROOM;
		elems->v = mem_resize(elems->v, elems->room, sizeof(*elems->v));
	}
	elems->v[elems->n++] = elem;
}

static bool is_same(const struct nft_elem *a, const struct nft_elem *b)
{
	return a->table == b->table && a->key.len == b->key.len &&
	       !memcmp(a->key.v, b->key.v, a->key.len) && a->end.len == b->end.len &&
	       !memcmp(a->end.v, b->end.v, a->end.len) && str_equal(a->set, b->set) &&
	       (a->mode == NFT_ABSENT) == (b->mode == NFT_ABSENT);
}

/**
 * nft_elems_has() - is an element of that set and key in the list?
 *
 * One that must be absent is another than the same that must be there.
 */
bool nft_elems_has(const struct nft_elems *elems, const struct nft_elem *elem)
{
	for (size_t i = 0; i < elems->n; i++)
		if (is_same(&elems->v[i], elem))
			return true;
	return false;
}

/**
 * nft_elems_add_once() - one more, unless it is in the list already
 */
void nft_elems_add_once(struct nft_elems *elems, struct nft_elem elem)
{
	if (!nft_elems_has(elems, &elem))
		nft_elems_add(elems, elem);
}
