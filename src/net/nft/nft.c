/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/nft/nft.c - add, delete, read and check elements in the kernel
 *
 * How:   the kernel deletes an element by its key, whatever its owner is. So the
 *        owner is read first, and the batch carries the number of the generation in
 *        which it was read. If anything has changed since then, the kernel rejects
 *        the batch (-ERESTART), and everything is read again.
 *        The first try to add elements reads nothing, because the elements usually do
 *        not exist yet.
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

#define TRIES 2000 /* a try fails only if another process has just succeeded */

/* ---- read -------------------------------------------------------------------------------- */

struct elem_reader {
	struct nft_elem *elem; /* in: the set to read; if .each is NULL, out: the element */
	bool found;
	int (*each)(void *ctx, const struct nft_elem *elem, struct hw_err *e);
	void *ctx;
	bool failed; /* each() did, and its error needs no context */
};

static int decode_elems(void *ctx, const struct nlmsghdr *m, struct hw_err *e)
{
	struct elem_reader *reader = ctx;
	const struct nlattr *attr, *item;
	int r = 0;

	mnl_attr_for_each(attr, m, sizeof(struct nfgenmsg)) {
		if (mnl_attr_get_type(attr) != NFTA_SET_ELEM_LIST_ELEMENTS)
			continue;
		mnl_attr_for_each_nested(item, attr) {
			struct nft_elem found = nft_elem(reader->elem->table, reader->elem->set,
							 reader->elem->mode);

			if (r < 0)
				break;
			nft_elem_decode(item, &found);
			if (reader->each) {
				r = reader->each(reader->ctx, &found, e);
				reader->failed = r < 0;
			} else {
				*reader->elem = found;
				reader->found = true;
			}
		}
	}
	return r;
}

int nft_get(struct nft *nft, const struct nft_elem *elem, struct nft_elem *ret_elem,
	    struct hw_err *e)
{
	struct nlmsghdr *m = nft_start_request(nft, NFT_MSG_GETSETELEM, 0, nft_family(elem->table));
	struct nft_elem found = *elem;
	struct elem_reader reader = { .elem = &found };
	int r;

	nft_elem_encode(m, elem, NULL);
	r = nft_send_request(nft, m, decode_elems, &reader, e);
	if (r == -ENOENT || (r == 0 && !reader.found))
		return 0;
	if (r < 0)
		return err_ctx(e, "read nftables set %s", elem->set);
	*ret_elem = found;
	return 1;
}

int nft_list(struct nft *nft, enum nft_table table, const char *set,
	     int (*each)(void *ctx, const struct nft_elem *elem, struct hw_err *e), void *ctx,
	     struct hw_err *e)
{
	struct nlmsghdr *m =
		nft_start_request(nft, NFT_MSG_GETSETELEM, NLM_F_DUMP, nft_family(table));
	struct nft_elem in = nft_elem(table, set, NFT_OWNED);
	struct elem_reader reader = { .elem = &in, .each = each, .ctx = ctx };
	int r;

	mnl_attr_put_strz(m, NFTA_SET_ELEM_LIST_TABLE, NFT_TABLE);
	mnl_attr_put_strz(m, NFTA_SET_ELEM_LIST_SET, set);
	r = nft_send_request(nft, m, decode_elems, &reader, e);
	if (r == -ENOENT || (r < 0 && nft_is_unsupported(nft)))
		return 0;
	return r < 0 && !reader.failed ? err_ctx(e, "list nftables set %s", set) : r;
}

/* ---- add --------------------------------------------------------------------------------- */

static void put_elem(struct nft *nft, uint16_t type, uint16_t flags, const struct nft_elem *elem,
		     const char *owner)
{
	struct nlmsghdr *m = nft_start_message(nft, type, flags, nft_family(elem->table));

	nft_elem_encode(m, elem, owner);
	nft_end_message(nft, m);
}

static void put_new(struct nft *nft, const struct nft_elem *elem, const char *owner)
{
	put_elem(nft, NFT_MSG_NEWSETELEM,
		 NLM_F_CREATE | (elem->mode == NFT_SHARED ? 0 : NLM_F_EXCL), elem, owner);
}

static bool is_as_wanted(const struct nft_elem *wanted, const struct nft_elem *there,
			 const char *owner)
{
	if (wanted->mode == NFT_SHARED)
		return nft_elem_covers(there, wanted);
	return str_equal(there->owner, owner) && nft_elem_same_data(there, wanted);
}

/* The existing elements that contain the first and the last address of a wanted element. A missing
 * element has an empty key. If both are the same element, last is empty. */
struct existing {
	struct nft_elem first, last;
};

static bool exists(const struct nft_elem *elem)
{
	return elem->key.len > 0;
}

static int read_existing(struct nft *nft, const struct nft_elem *elem,
			 struct existing *ret_existing, struct hw_err *e)
{
	struct nft_elem last = *elem;

	*ret_existing = (struct existing){ 0 };
	int r = nft_get(nft, elem, &ret_existing->first, e);
	if (r < 0 || !elem->end.len)
		return r;
	last.key = last.end;
	r = nft_get(nft, &last, &ret_existing->last, e);
	if (r > 0 && !memcmp(&ret_existing->first.key, &ret_existing->last.key, sizeof(last.key)))
		ret_existing->last.key.len = 0;
	return r;
}

static void put_del(struct nft *nft, const struct nft_elem *elem)
{
	if (!exists(elem))
		return;
	put_elem(nft, NFT_MSG_DELSETELEM, 0, elem, NULL);
	nft->deleted = true;
}

/* Puts v[i] into the batch, together with the deletion of a different existing element. Puts
 * nothing if the element exists as wanted.
 * Return: 1 if something was put into the batch, 0 if not, -EEXIST if there is a conflict */
static int put_unless_exists(struct nft *nft, const struct nft_elem *v, size_t i, const char *owner,
			     const struct existing *existing, struct nft_conflict *ret_clash,
			     struct hw_err *e)
{
	const struct nft_elem *there = &existing->first;
	bool is_others = exists(there) && !str_equal(there->owner, owner);
	char text[NFT_ELEM_TEXT];

	if (is_others && (v[i].mode == NFT_EXCLUSIVE || v[i].mode == NFT_ABSENT)) {
		if (ret_clash)
			*ret_clash = (struct nft_conflict){ i, *there };
		return err_text(e, -EEXIST, "nftables set %s already has %s, owner: %s", v[i].set,
				nft_elem_format(there, text),
				*there->owner ? there->owner : "none");
	}
	if (v[i].mode == NFT_ABSENT || (exists(there) && is_as_wanted(&v[i], there, owner)))
		return 0;
	put_del(nft, there);
	put_del(nft, &existing->last);
	put_new(nft, &v[i], owner);
	return 1;
}

static int commit_addition(struct nft *nft, const struct nft_elem *first, struct hw_err *e)
{
	char text[NFT_ELEM_TEXT];
	int r;

	r = nft_batch_commit(nft, e);
	if (r < 0)
		return err_ctx(e, "add %s to nftables set %s", nft_elem_format(first, text),
			       first->set);
	return 0;
}

static int add_after_reading(struct nft *nft, const struct nft_elem *v, size_t n, const char *owner,
			     struct nft_conflict *ret_clash, struct hw_err *e)
{
	autofree struct existing *existing = mem_resize(NULL, n, sizeof(*existing));

	for (int tries = 0; tries < TRIES; tries++) {
		uint32_t generation = 0;
		bool changed = false;
		int r;

		r = nft_get_generation(nft, &generation, e);
		for (size_t i = 0; r >= 0 && i < n; i++)
			r = read_existing(nft, &v[i], &existing[i], e);
		if (r < 0)
			return r;
		nft_batch_begin(nft, generation);
		for (size_t i = 0; i < n; i++) {
			r = put_unless_exists(nft, v, i, owner, &existing[i], ret_clash, e);
			if (r < 0)
				return r;
			changed |= r > 0;
		}
		r = changed ? commit_addition(nft, v, e) : 0;
		if (r != -ERESTART)
			return r;
	}
	return -ERESTART; /* *e is that of the last try */
}

static int add_without_reading(struct nft *nft, const struct nft_elem *v, size_t n,
			       const char *owner, struct hw_err *e)
{
	uint32_t generation = 0;
	char text[NFT_ELEM_TEXT];
	struct nft_elem there;
	int r = 0;

	/* Elements with mode NFT_ABSENT must not exist in the generation that the batch
	 * requires. */
	for (size_t i = 0; i < n; i++) {
		if (v[i].mode != NFT_ABSENT)
			continue;
		if (!generation)
			r = nft_get_generation(nft, &generation, e);
		if (r < 0)
			return r;
		r = nft_get(nft, &v[i], &there, e);
		if (r < 0)
			return r;
		if (r > 0)
			return err_text(e, -EEXIST, "nftables set %s already has %s", v[i].set,
					nft_elem_format(&there, text));
	}
	nft_batch_begin(nft, generation);
	for (size_t i = 0; i < n; i++)
		if (v[i].mode != NFT_ABSENT)
			put_new(nft, &v[i], owner);
	return commit_addition(nft, v, e);
}

/* Loads the rules and the network chains that these elements need. again: do not rely on an earlier
 * check that the rules are loaded */
static int load_rules_for(struct nft *nft, const struct nft_elem *v, size_t n, bool again,
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

int nft_add(struct nft *nft, const struct nft_elem *v, size_t n, const char *owner,
	    struct nft_conflict *ret_clash, struct hw_err *e)
{
	int r = 0;

	/* Tries twice, because another program may flush all rules after they were loaded. */
	for (int tries = 0; tries < 2; tries++) {
		r = load_rules_for(nft, v, n, tries > 0, e);
		if (r < 0)
			return r;
		r = add_without_reading(nft, v, n, owner, e);
		/* With these errors an element may already exist. -ENOBUFS: there were so many
		 * error replies that some were lost */
		if (r == -EEXIST || r == -ENOTEMPTY || r == -ERESTART || r == -ENOBUFS)
			r = add_after_reading(nft, v, n, owner, ret_clash, e);
		if (r != -ENOENT)
			break;
	}
	return r;
}

/* ---- delete and check -------------------------------------------------------------------- */

int nft_del(struct nft *nft, const struct nft_elem *v, size_t n, const char *owner,
	    struct hw_err *e)
{
	autofree struct nft_elem *there = mem_resize(NULL, n ? n : 1, sizeof(*there));
	int r = -ERESTART;

	for (int tries = 0; r == -ERESTART && tries < TRIES; tries++) {
		uint32_t generation = 0;
		bool changed = false;

		r = nft_get_generation(nft, &generation, e);
		for (size_t i = 0; r >= 0 && i < n; i++) {
			there[i].key.len = 0;
			if (v[i].mode != NFT_SHARED)
				r = nft_get(nft, &v[i], &there[i], e);
		}
		if (r < 0)
			break;
		nft_batch_begin(nft, generation);
		for (size_t i = 0; i < n; i++)
			if (exists(&there[i]) && str_equal(there[i].owner, owner)) {
				put_del(nft, &there[i]);
				changed = true;
			}
		r = changed ? nft_batch_commit(nft, e) : 0;
		if (r < 0)
			err_ctx(e, "delete from nftables set %s", v[0].set);
	}
	return r >= 0 || nft_is_unsupported(nft) ? 0 : r;
}

static int collect_owned(void *ctx, const struct nft_elem *elem, struct hw_err *e)
{
	struct nft_elems *found = ctx;

	(void)e;
	if (str_equal(elem->owner, found->owner))
		nft_elems_add(found, *elem);
	return 0;
}

int nft_del_owned(struct nft *nft, enum nft_table table, const char *set, const char *owner,
		  struct hw_err *e)
{
	AUTO(nft_elems_done) struct nft_elems found = { 0 };

	memcpy(found.owner, owner, sizeof(found.owner));
	int r = nft_list(nft, table, set, collect_owned, &found, e);
	return r < 0 || !found.n ? r : nft_del(nft, found.v, found.n, owner, e);
}

static int check_elem(struct nft *nft, const struct nft_elem *elem, const char *owner,
		      struct hw_err *e)
{
	char text[NFT_ELEM_TEXT], want[NFT_ELEM_TEXT];
	struct nft_elem there;

	int r = nft_get(nft, elem, &there, e);
	if (r < 0)
		return r;
	if (r == 0)
		return err_text(e, -ENOENT,
				"nftables set %s lacks %s; hawser-plugin repair restores it",
				elem->set, nft_elem_format(elem, text));
	if (!is_as_wanted(elem, &there, owner))
		return err_text(
			e, -ESTALE,
			"nftables set %s: element mismatch: got %s (owner %s), want %s (owner %s)",
			elem->set, nft_elem_format(&there, text),
			*there.owner ? there.owner : "none", nft_elem_format(elem, want),
			elem->mode == NFT_SHARED ? "none" : owner);
	return elem->network.ip.family ? nft_check_chain_rules(nft, elem->table, elem->chain, e)
				       : 0;
}

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
