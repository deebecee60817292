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

/* ---- change --------------------------------------------------------------------------------- */

/* The owner that an element of a list has or gets. @owner: the owner of the list */
static const char *owner_of(const struct nft_elem *elem, const char *owner)
{
	return *elem->owner ? elem->owner : owner;
}

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
		 NLM_F_CREATE | (elem->mode == NFT_SHARED ? 0 : NLM_F_EXCL), elem,
		 owner_of(elem, owner));
}

static bool is_as_wanted(const struct nft_elem *wanted, const struct nft_elem *there,
			 const char *owner)
{
	if (wanted->mode == NFT_SHARED)
		return nft_elem_covers(there, wanted);
	return str_equal(there->owner, owner_of(wanted, owner)) &&
	       nft_elem_same_data(there, wanted);
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

/* Puts what makes the element exist as wanted into the batch. Return: false if nothing is needed */
static bool put_change(struct nft *nft, const struct nft_elem *elem, const char *owner,
		       const struct existing *existing)
{
	const struct nft_elem *there = &existing->first;

	if (elem->mode == NFT_GONE) {
		if (!exists(there) || !str_equal(there->owner, owner_of(elem, owner)))
			return false;
		put_del(nft, there);
		return true;
	}
	if (exists(there) && is_as_wanted(elem, there, owner))
		return false;
	put_del(nft, there);
	put_del(nft, &existing->last);
	put_new(nft, elem, owner);
	return true;
}

static int commit_elems(struct nft *nft, const struct nft_elem *first, struct hw_err *e)
{
	char text[NFT_ELEM_TEXT];

	int r = nft_batch_commit(nft, e);
	if (r >= 0)
		return 0;
	if (first->mode == NFT_GONE)
		return err_ctx(e, "delete from nftables set %s", first->set);
	return err_ctx(e, "add %s to nftables set %s", nft_elem_format(first, text), first->set);
}

/* Changes nothing and returns -ERESTART if @generation is not the current one. */
static int change_at(struct nft *nft, uint32_t generation, const struct nft_elem *v, size_t n,
		     const char *owner, struct hw_err *e)
{
	autofree struct existing *existing = mem_resize(NULL, n, sizeof(*existing));
	bool changed = false;
	int r = 0;

	for (size_t i = 0; r >= 0 && i < n; i++)
		r = read_existing(nft, &v[i], &existing[i], e);
	if (r < 0)
		return r;
	nft_batch_begin(nft, generation);
	for (size_t i = 0; i < n; i++)
		changed |= put_change(nft, &v[i], owner, &existing[i]);
	return changed ? commit_elems(nft, v, e) : 0;
}

/*
 * The kernel increments the generation just before the changes of a transaction become visible. An
 * element that is read in between may already be deleted: deleting it then fails with -ENOENT, and
 * is tried again like after a change of the generation.
 */
static int change_after_reading(struct nft *nft, const struct nft_elem *v, size_t n,
				const char *owner, struct hw_err *e)
{
	bool again = true;
	int r = 0;

	for (int tries = 0; again && tries < TRIES; tries++) {
		uint32_t generation = 0;

		r = nft_get_generation(nft, &generation, e);
		if (r >= 0)
			r = change_at(nft, generation, v, n, owner, e);
		again = r == -ERESTART || (r == -ENOENT && v[0].mode == NFT_GONE);
	}
	return r;
}

/* @generation: 0: any */
static int add_without_reading(struct nft *nft, uint32_t generation, const struct nft_elem *v,
			       size_t n, const char *owner, struct hw_err *e)
{
	nft_batch_begin(nft, generation);
	for (size_t i = 0; i < n; i++)
		put_new(nft, &v[i], owner);
	return commit_elems(nft, v, e);
}

/* After add_without_reading(): may an element already exist? -ENOBUFS: there were so many error
 * replies that some were lost */
static bool may_exist(int r)
{
	return r == -EEXIST || r == -ENOTEMPTY || r == -ENOBUFS;
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
	    struct hw_err *e)
{
	int r = 0;

	/* Tries twice, because another program may flush all rules after they were loaded. */
	for (int tries = 0; tries < 2; tries++) {
		r = load_rules_for(nft, v, n, tries > 0, e);
		if (r < 0)
			return r;
		r = add_without_reading(nft, 0, v, n, owner, e);
		if (may_exist(r))
			r = change_after_reading(nft, v, n, owner, e);
		if (r != -ENOENT)
			break;
	}
	return r;
}

/* Does the list have an element to delete (@gone true), or one to add (false)? */
static bool has_change(const struct nft_elems *elems, bool gone)
{
	for (size_t i = 0; i < elems->n; i++)
		if ((elems->v[i].mode == NFT_GONE) == gone)
			return true;
	return false;
}

static int update_at(struct nft *nft, uint32_t generation, const struct nft_elems *elems,
		     bool again, struct hw_err *e)
{
	int r = has_change(elems, false) ? load_rules_for(nft, elems->v, elems->n, again, e) : 0;

	if (r < 0)
		return r;
	if (!has_change(elems, true)) {
		r = add_without_reading(nft, generation, elems->v, elems->n, elems->owner, e);
		if (!may_exist(r))
			return r;
	}
	return change_at(nft, generation, elems->v, elems->n, elems->owner, e);
}

int nft_update(struct nft *nft, struct nft_elems *elems, int (*fill)(void *ctx, struct hw_err *e),
	       void *ctx, struct hw_err *e)
{
	bool again = false;
	int r = -ERESTART;

	for (int tries = 0; r == -ERESTART && tries < TRIES; tries++) {
		uint32_t generation = 0;

		elems->n = 0;
		r = nft_get_generation(nft, &generation, e);
		if (r < 0 && nft_is_unsupported(nft))
			return err_text(e, -EPROTONOSUPPORT, "this kernel has no nftables");
		if (r >= 0)
			r = fill(ctx, e);
		if (r == -ERESTART)
			continue;
		if (r < 0 || !elems->n)
			return r;
		r = update_at(nft, generation, elems, again, e);
		/* Another program may flush all rules after they were loaded. */
		if (r == -ENOENT && !again) {
			again = true;
			r = -ERESTART;
		}
	}
	return r;
}

int nft_del(struct nft *nft, const struct nft_elem *v, size_t n, const char *owner,
	    struct hw_err *e)
{
	AUTO(nft_elems_done) struct nft_elems gone = { 0 };

	for (size_t i = 0; i < n; i++) {
		if (v[i].mode == NFT_SHARED)
			continue;
		nft_elems_add(&gone, v[i]);
		gone.v[gone.n - 1].mode = NFT_GONE;
	}
	int r = gone.n ? change_after_reading(nft, gone.v, gone.n, owner, e) : 0;
	return r >= 0 || nft_is_unsupported(nft) ? 0 : r;
}

/* ---- delete by owner, check ---------------------------------------------------------------- */

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
			elem->mode == NFT_SHARED ? "none" : owner_of(elem, owner));
	return elem->network.ip.family ? nft_check_network(nft, elem, e) : 0;
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
