/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/nft/nft.c - elements of our nftables sets and maps
 *
 * How:   deleting looks at the key alone, so whose element it is has to be looked
 *        up before; the batch carries the number of the generation in which that
 *        was seen, and the kernel refuses it when anything has been changed since.
 *        Then all is looked up again.
 *        Adding tries first without looking: mostly nothing is in the way.
 * Rules: a batch that fails changes nothing.
 */
#include "net/nft/nft.h"

#include <errno.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <string.h>

#include "base/str.h"
#include "net/nft/elem.h"
#include "net/nft/wire.h"

#define TRIES 2000 /* whoever loses against others' changes; with each try, one of all has won */

/* ---- reading ----------------------------------------------------------------------------- */

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

/* ---- adding ------------------------------------------------------------------------------ */

static void put_elem(struct nft *nft, uint16_t type, uint16_t flags, const struct nft_elem *elem,
		     const char *owner)
{
	struct nlmsghdr *m = nft_message(nft, type, flags, nft_family(elem->table));

	nft_elem_encode(m, elem, owner);
	nft_put(nft, m);
}

static void put_new(struct nft *nft, const struct nft_elem *elem, const char *owner)
{
	put_elem(nft, NFT_MSG_NEWSETELEM,
		 NLM_F_CREATE | (elem->mode == NFT_SHARED ? 0 : NLM_F_EXCL), elem, owner);
}

static bool is_right(const struct nft_elem *wanted, const struct nft_elem *there, const char *owner)
{
	if (wanted->mode == NFT_SHARED)
		return nft_elem_covers(there, wanted);
	return str_equal(there->owner, owner) && nft_elem_same_data(there, wanted);
}

static int clash(const struct nft_elem *v, size_t i, const struct nft_elem *there,
		 struct nft_clash *ret_clash, struct hw_err *e)
{
	char text[NFT_ELEM_TEXT];

	if (ret_clash)
		*ret_clash = (struct nft_clash){ i, *there };
	return err_text(e, -EEXIST, "nftables set %s has %s already, of %s", v[i].set,
			nft_elem_format(there, text), *there->owner ? there->owner : "nobody");
}

/* What is there where an element begins and where it ends; those that are not there have no key. */
struct place {
	struct nft_elem first, last;
};

static bool is_there(const struct nft_elem *elem)
{
	return elem->key.len > 0;
}

static int look_at_place(struct nft *nft, const struct nft_elem *elem, struct place *ret_place,
			 struct hw_err *e)
{
	struct nft_elem last = *elem;

	*ret_place = (struct place){ 0 };
	int r = nft_get(nft, elem, &ret_place->first, e);
	if (r < 0 || !elem->end.len)
		return r;
	last.key = last.end;
	r = nft_get(nft, &last, &ret_place->last, e);
	if (r > 0 && !memcmp(&ret_place->first.key, &ret_place->last.key, sizeof(last.key)))
		ret_place->last.key.len = 0;
	return r;
}

/* All in one generation */
static int look_at_all(struct nft *nft, const struct nft_elem *v, size_t n,
		       uint32_t *ret_generation, struct place *ret_places, struct hw_err *e)
{
	int r = nft_generation(nft, ret_generation, e);

	for (size_t i = 0; r >= 0 && i < n; i++)
		r = look_at_place(nft, &v[i], &ret_places[i], e);
	return r < 0 ? r : 0;
}

static void put_del(struct nft *nft, const struct nft_elem *there)
{
	if (!is_there(there))
		return;
	put_elem(nft, NFT_MSG_DELSETELEM, 0, there, NULL);
	nft->deleted = true;
}

/* What is right stays, what is another's goes. Return: how many were put */
static int put_unless_there(struct nft *nft, const struct nft_elem *v, size_t i, const char *owner,
			    const struct place *place, struct nft_clash *ret_clash,
			    struct hw_err *e)
{
	const struct nft_elem *there = &place->first;
	bool others = is_there(there) && !str_equal(there->owner, owner);

	if (others && (v[i].mode == NFT_EXCLUSIVE || v[i].mode == NFT_ABSENT))
		return clash(v, i, there, ret_clash, e);
	if (v[i].mode == NFT_ABSENT || (is_there(there) && is_right(&v[i], there, owner)))
		return 0;
	put_del(nft, there);
	put_del(nft, &place->last);
	put_new(nft, &v[i], owner);
	return 1;
}

static int add_once(struct nft *nft, const struct nft_elem *v, size_t n, const char *owner,
		    struct place *places, struct nft_clash *ret_clash, struct hw_err *e)
{
	uint32_t generation = 0;
	int changes = 0;

	int r = look_at_all(nft, v, n, &generation, places, e);
	if (r < 0)
		return r;
	nft_begin(nft, generation);
	for (size_t i = 0; i < n; i++) {
		r = put_unless_there(nft, v, i, owner, &places[i], ret_clash, e);
		if (r < 0)
			return r;
		changes += r;
	}
	return changes ? nft_commit(nft, e) : 0;
}

static int add_with_care(struct nft *nft, const struct nft_elem *v, size_t n, const char *owner,
			 struct nft_clash *ret_clash, struct hw_err *e)
{
	autofree struct place *places = mem_resize(NULL, n, sizeof(*places));
	int r = -ERESTART;

	e->msg[0] = '\0';
	for (int tries = 0; r == -ERESTART && tries < TRIES; tries++)
		r = add_once(nft, v, n, owner, places, ret_clash, e);
	return r;
}

/* The generation in which all that must be absent is; 0: there is no such element. */
static int look_for_absent(struct nft *nft, const struct nft_elem *v, size_t n,
			   uint32_t *ret_generation, struct hw_err *e)
{
	struct nft_elem there;
	int r = 0;

	*ret_generation = 0;
	for (size_t i = 0; r == 0 && i < n; i++) {
		if (v[i].mode != NFT_ABSENT)
			continue;
		if (!*ret_generation)
			r = nft_generation(nft, ret_generation, e);
		if (r >= 0)
			r = nft_get(nft, &v[i], &there, e);
	}
	return r > 0 ? -EEXIST : r;
}

static int add_at_once(struct nft *nft, const struct nft_elem *v, size_t n, const char *owner,
		       struct hw_err *e)
{
	uint32_t generation;

	int r = look_for_absent(nft, v, n, &generation, e);
	if (r < 0)
		return r;
	nft_begin(nft, generation);
	for (size_t i = 0; i < n; i++)
		if (v[i].mode != NFT_ABSENT)
			put_new(nft, &v[i], owner);
	return nft_commit(nft, e);
}

/* -ENOBUFS: so many errors that not all could be told */
static bool is_in_the_way(int r)
{
	return r == -EEXIST || r == -ENOTEMPTY || r == -ERESTART || r == -ENOBUFS;
}

static int load_for(struct nft *nft, const struct nft_elem *v, size_t n, bool again,
		    struct hw_err *e)
{
	int r = 0;

	if (again)
		memset(nft->loaded, 0, sizeof(nft->loaded));
	for (size_t i = 0; r >= 0 && i < n; i++)
		if (!nft->loaded[v[i].table])
			r = nft_load(nft, v[i].table, e);
	return r < 0 ? r : nft_repair_networks(nft, v, n, e);
}

/**
 * nft_add() - add elements, all or none
 * @owner:     by nft_owner()
 * @ret_clash: what was in the way, with -EEXIST; may be NULL
 *
 * Return: 0; -EEXIST; -ENOENT: a verdict's chain is not there; another negative errno
 */
int nft_add(struct nft *nft, const struct nft_elem *v, size_t n, const char *owner,
	    struct nft_clash *ret_clash, struct hw_err *e)
{
	char text[NFT_ELEM_TEXT];
	int r = 0;

	/* Twice: somebody may flush all rules just after they were seen. */
	for (int tries = 0; tries < 2; tries++) {
		r = load_for(nft, v, n, tries > 0, e);
		if (r < 0)
			return r;
		e->msg[0] = '\0';
		r = add_at_once(nft, v, n, owner, e);
		if (is_in_the_way(r))
			r = add_with_care(nft, v, n, owner, ret_clash, e);
		if (r != -ENOENT)
			break;
	}
	if (r < 0 && !*e->msg)
		return err_set(e, r, "add %s to nftables set %s", nft_elem_format(&v[0], text),
			       v[0].set);
	return r;
}

/* ---- deleting and checking ------------------------------------------------------------------ */

static int del_once(struct nft *nft, const struct nft_elem *v, size_t n, const char *owner,
		    struct nft_elem *there, struct hw_err *e)
{
	uint32_t generation = 0;
	int deletes = 0;

	int r = nft_generation(nft, &generation, e);
	for (size_t i = 0; r >= 0 && i < n; i++) {
		there[i].key.len = 0;
		if (v[i].mode != NFT_SHARED)
			r = nft_get(nft, &v[i], &there[i], e);
	}
	if (r < 0)
		return r;
	nft_begin(nft, generation);
	for (size_t i = 0; i < n; i++)
		if (is_there(&there[i]) && str_equal(there[i].owner, owner)) {
			put_del(nft, &there[i]);
			deletes++;
		}
	return deletes ? nft_commit(nft, e) : 0;
}

/**
 * nft_del() - delete those elements that are still @owner's
 */
int nft_del(struct nft *nft, const struct nft_elem *v, size_t n, const char *owner,
	    struct hw_err *e)
{
	autofree struct nft_elem *there = mem_resize(NULL, n ? n : 1, sizeof(*there));
	int r = -ERESTART;

	e->msg[0] = '\0';
	for (int tries = 0; r == -ERESTART && tries < TRIES; tries++)
		r = del_once(nft, v, n, owner, there, e);
	if (r >= 0 || nft_is_missing(nft))
		return 0;
	return *e->msg ? r : err_set(e, r, "delete from nftables set %s", v[0].set);
}

static int collect(void *ctx, const struct nft_elem *elem, struct hw_err *e)
{
	struct nft_elems *found = ctx;

	(void)e;
	if (str_equal(elem->owner, found->owner))
		nft_elems_add(found, *elem);
	return 0;
}

/**
 * nft_sweep() - delete all of a set that is @owner's
 */
int nft_sweep(struct nft *nft, enum nft_table table, const char *set, const char *owner,
	      struct hw_err *e)
{
	AUTO(nft_elems_done) struct nft_elems found = { 0 };

	memcpy(found.owner, owner, sizeof(found.owner));
	int r = nft_list(nft, table, set, collect, &found, e);
	return r < 0 || !found.n ? r : nft_del(nft, found.v, found.n, owner, e);
}

static int check_elem(struct nft *nft, const struct nft_elem *elem, const char *owner,
		      struct hw_err *e)
{
	char text[NFT_ELEM_TEXT];
	struct nft_elem there;

	int r = nft_get(nft, elem, &there, e);
	if (r < 0)
		return r;
	if (r == 0)
		return err_text(e, -ENOENT,
				"nftables set %s lacks %s; hawser-plugin repair restores it",
				elem->set, nft_elem_format(elem, text));
	if (!is_right(elem, &there, owner))
		return err_text(e, -ESTALE, "nftables set %s has %s for somebody else, %s",
				elem->set, nft_elem_format(&there, text),
				*there.owner ? there.owner : "without an owner");
	return elem->network.ip.family ? nft_check_chain(nft, elem->table, elem->chain, e) : 0;
}

/**
 * nft_check() - are all of them there, and the rules that use them?
 */
int nft_check(struct nft *nft, const struct nft_elem *v, size_t n, const char *owner,
	      struct hw_err *e)
{
	bool checked[ARRAY_SIZE(nft->loaded)] = { 0 };
	int r = 0;

	for (size_t i = 0; r >= 0 && i < n; i++) {
		if (!checked[v[i].table])
			r = nft_check_rules(nft, v[i].table, e);
		checked[v[i].table] = true;
		if (r >= 0)
			r = check_elem(nft, &v[i], owner, e);
	}
	return r;
}
