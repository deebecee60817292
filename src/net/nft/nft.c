/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/nft/nft.c - add, delete, read and check elements in the kernel
 *
 * How:   the kernel deletes an element by its key, whatever its owner is. So the
 *        owner is read first, and the batch carries the number of the generation in
 *        which it was read. If anything has changed since then, the kernel rejects
 *        the batch (-ERESTART), and everything is read again. nft_change() does
 *        without the generation: its caller's lock excludes other changes.
 *        The first try to add elements reads nothing, because the elements usually do
 *        not exist yet.
 * Rules: a batch that fails changes nothing.
 */
#include "net/nft/nft.h"

#include <errno.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "net/nft/elem.h"
#include "net/nft/wire.h"

#define GET_CHUNK 32 /* the replies fit into the socket's buffer, at up to 5 KB each */
#define DEL_CHUNK 64 /* a chunk is read and deleted much faster than other programs change rules */
#define TRIES	  3  /* another program may delete the table after the rules were loaded */

/* ---- read -------------------------------------------------------------------------------- */

struct elem_list {
	const struct nft_elem *set; /* an element of the set to read */
	int (*each)(void *ctx, const struct nft_elem *elem, struct hw_err *e);
	void *ctx;
	bool failed; /* each() did, and its error needs no context */
};

static int decode_elems(void *ctx, const struct nlmsghdr *m, struct hw_err *e)
{
	struct elem_list *list = ctx;
	const struct nlattr *attr, *item;
	int r = 0;

	mnl_attr_for_each(attr, m, sizeof(struct nfgenmsg)) {
		if (mnl_attr_get_type(attr) != NFTA_SET_ELEM_LIST_ELEMENTS)
			continue;
		mnl_attr_for_each_nested(item, attr) {
			struct nft_elem found =
				nft_elem(list->set->table, list->set->set, list->set->mode);

			if (r < 0)
				break;
			nft_elem_decode(item, &found);
			r = list->each(list->ctx, &found, e);
			list->failed = r < 0;
		}
	}
	return r;
}

/* Requests of one exchange, and where their replies go */
struct elem_requests {
	const struct nft_elem *v;
	struct nft_elem *ret_v;
	uint32_t first; /* sequence number of the request for v[0] */
};

static int copy_elem(void *ctx, const struct nft_elem *elem, struct hw_err *e)
{
	(void)e;
	*(struct nft_elem *)ctx = *elem;
	return 0;
}

static int decode_requested(void *ctx, const struct nlmsghdr *m, struct hw_err *e)
{
	const struct elem_requests *requests = ctx;
	uint32_t i = m->nlmsg_seq - requests->first;
	struct elem_list list = { .set = &requests->v[i],
				  .each = copy_elem,
				  .ctx = &requests->ret_v[i] };

	return decode_elems(&list, m, e);
}

static int get_chunk(struct nft *nft, const struct nft_elem *v, size_t n, struct nft_elem *ret_v,
		     struct hw_err *e)
{
	struct elem_requests requests = { v, ret_v, nft_start_requests(nft) };
	int r;

	for (size_t i = 0; i < n; i++) {
		struct nlmsghdr *m =
			nft_start_message(nft, NFT_MSG_GETSETELEM, 0, nft_family(v[i].table));

		nft_elem_encode(m, &v[i], NULL);
		nft_end_message(nft, m);
		ret_v[i].key.len = 0;
	}
	r = nft_send_requests(nft, decode_requested, &requests, e);
	return r < 0 ? err_ctx(e, "read nftables set %s", v[0].set) : 0;
}

int nft_get_all(struct nft *nft, const struct nft_elem *v, size_t n, struct nft_elem *ret_v,
		struct hw_err *e)
{
	int r = 0;

	for (size_t i = 0; r >= 0 && i < n; i += GET_CHUNK) {
		size_t rest = n - i;

		r = get_chunk(nft, v + i, rest < GET_CHUNK ? rest : GET_CHUNK, ret_v + i, e);
	}
	return r;
}

int nft_get(struct nft *nft, const struct nft_elem *elem, struct nft_elem *ret_elem,
	    struct hw_err *e)
{
	struct nft_elem found;
	int r;

	r = get_chunk(nft, elem, 1, &found, e);
	if (r < 0 || !nft_elem_exists(&found))
		return r;
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
	struct elem_list list = { .set = &in, .each = each, .ctx = ctx };
	int r;

	mnl_attr_put_strz(m, NFTA_SET_ELEM_LIST_TABLE, NFT_TABLE);
	mnl_attr_put_strz(m, NFTA_SET_ELEM_LIST_SET, set);
	r = nft_send_request(nft, m, decode_elems, &list, e);
	if (r == -ENOENT || (r < 0 && nft_is_unsupported(nft)))
		return 0;
	return r < 0 && !list.failed ? err_ctx(e, "list nftables set %s", set) : r;
}

static int refuse_elem(void *ctx, const struct nft_elem *elem, struct hw_err *e)
{
	const char *needed = ctx;
	char text[NFT_ELEM_TEXT];

	return err_text(e, -EBUSY, "%s needed by a pod: %s", needed, nft_elem_format(elem, text));
}

int nft_require_empty(struct nft *nft, const char *set, const char *needed, struct hw_err *e)
{
	return nft_list(nft, NFT_INET, set, refuse_elem, (void *)needed, e);
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

/* The existing elements that contain the first and the last address of each wanted element. A missing
 * element has an empty key. If both are the same element, last is empty. */
struct existing {
	struct nft_elem *first, *last;
};

static void existing_done(struct existing *existing)
{
	free(existing->first);
	free(existing->last);
}
AUTO_VALUE_DEFINE(existing_done, struct existing);

static int read_existing(struct nft *nft, const struct nft_elem *v, size_t n,
			 struct existing *ret_existing, struct hw_err *e)
{
	struct nft_elem *first = mem_new(n * sizeof(*first)), *last = mem_new(n * sizeof(*last));
	int r;

	*ret_existing = (struct existing){ first, last };
	r = nft_get_all(nft, v, n, first, e);
	for (size_t i = 0; r >= 0 && i < n; i++) {
		struct nft_elem end = v[i];

		if (!end.end.len)
			continue;
		end.key = end.end;
		r = nft_get(nft, &end, &last[i], e);
		if (r > 0 && !memcmp(&first[i].key, &last[i].key, sizeof(end.key)))
			last[i].key.len = 0;
	}
	return r;
}

static void put_del(struct nft *nft, const struct nft_elem *elem)
{
	if (!nft_elem_exists(elem))
		return;
	put_elem(nft, NFT_MSG_DELSETELEM, 0, elem, NULL);
	nft->deleted = true;
}

/* Puts what makes the element exist as wanted into the batch. Return: false if nothing is needed */
static bool put_change(struct nft *nft, const struct nft_elem *elem, const char *owner,
		       const struct nft_elem *there, const struct nft_elem *last)
{
	if (elem->mode == NFT_GONE) {
		if (!nft_elem_exists(there) || !str_equal(there->owner, owner_of(elem, owner)))
			return false;
		put_del(nft, there);
		return true;
	}
	if (nft_elem_exists(there) && is_as_wanted(elem, there, owner))
		return false;
	put_del(nft, there);
	put_del(nft, last);
	put_new(nft, elem, owner);
	return true;
}

static int commit_elems(struct nft *nft, const struct nft_elem *first, struct hw_err *e)
{
	char text[NFT_ELEM_TEXT];
	int r;

	r = nft_batch_commit(nft, e);
	if (r >= 0)
		return 0;
	if (first->mode == NFT_GONE)
		return err_ctx(e, "delete from nftables set %s", first->set);
	return err_ctx(e, "add %s to nftables set %s", nft_elem_format(first, text), first->set);
}

/* Changes nothing and returns -ERESTART if @generation is not the current one. @generation: 0: any */
static int change_at(struct nft *nft, uint32_t generation, const struct nft_elem *v, size_t n,
		     const char *owner, struct hw_err *e)
{
	AUTO(existing_done) struct existing existing = { 0 };
	bool changed = false;
	int r;

	r = read_existing(nft, v, n, &existing, e);
	if (r < 0)
		return r;
	nft_batch_begin(nft, generation);
	for (size_t i = 0; i < n; i++)
		changed |= put_change(nft, &v[i], owner, &existing.first[i], &existing.last[i]);
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
	struct nft_retry retry = nft_retry_start();

	for (;;) {
		uint32_t generation = 0;
		int r;

		r = nft_get_generation(nft, &generation, e);
		if (r >= 0)
			r = change_at(nft, generation, v, n, owner, e);
		if (r != -ERESTART && (r != -ENOENT || v[0].mode != NFT_GONE))
			return r;
		r = nft_retry_wait(&retry, e);
		if (r < 0)
			return r;
	}
}

static int add_without_reading(struct nft *nft, const struct nft_elem *v, size_t n,
			       const char *owner, struct hw_err *e)
{
	nft_batch_begin(nft, 0);
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
	int r = -ENOENT;

	for (int tries = 0; r == -ENOENT && tries < TRIES; tries++) {
		r = load_rules_for(nft, v, n, tries > 0, e);
		if (r < 0)
			return r;
		r = add_without_reading(nft, v, n, owner, e);
		if (may_exist(r))
			r = change_after_reading(nft, v, n, owner, e);
	}
	return r;
}

int nft_add_new(struct nft *nft, const struct nft_elems *elems, struct hw_err *e)
{
	int r = -ENOENT;

	for (int tries = 0; r == -ENOENT && tries < TRIES; tries++) {
		r = load_rules_for(nft, elems->v, elems->n, tries > 0, e);
		if (r < 0)
			return r;
		r = add_without_reading(nft, elems->v, elems->n, elems->owner, e);
	}
	return may_exist(r) ? -EEXIST : r;
}

static bool has_addition(const struct nft_elems *elems)
{
	for (size_t i = 0; i < elems->n; i++)
		if (elems->v[i].mode != NFT_GONE)
			return true;
	return false;
}

int nft_change(struct nft *nft, const struct nft_elems *elems, struct hw_err *e)
{
	bool adds = has_addition(elems);
	int r = -ENOENT;

	for (int tries = 0; r == -ENOENT && tries < TRIES; tries++) {
		r = adds ? load_rules_for(nft, elems->v, elems->n, tries > 0, e) : 0;
		if (r < 0)
			return r;
		r = change_at(nft, 0, elems->v, elems->n, elems->owner, e);
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
	int r = 0;
	for (size_t i = 0; r >= 0 && i < gone.n; i += DEL_CHUNK) {
		size_t rest = gone.n - i;

		r = change_after_reading(nft, gone.v + i, rest < DEL_CHUNK ? rest : DEL_CHUNK,
					 owner, e);
	}
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
	int r;

	memcpy(found.owner, owner, sizeof(found.owner));
	r = nft_list(nft, table, set, collect_owned, &found, e);
	return r < 0 || !found.n ? r : nft_del(nft, found.v, found.n, owner, e);
}

static int check_elem(struct nft *nft, const struct nft_elem *elem, const struct nft_elem *there,
		      const char *owner, struct hw_err *e)
{
	char text[NFT_ELEM_TEXT], want[NFT_ELEM_TEXT];

	if (!nft_elem_exists(there))
		return err_text(e, -ENOENT,
				"nftables set %s lacks %s; hawser-plugin repair restores it",
				elem->set, nft_elem_format(elem, text));
	if (!is_as_wanted(elem, there, owner))
		return err_text(
			e, -ESTALE,
			"nftables set %s: element mismatch: got %s (owner %s), want %s (owner %s)",
			elem->set, nft_elem_format(there, text),
			*there->owner ? there->owner : "none", nft_elem_format(elem, want),
			elem->mode == NFT_SHARED ? "none" : owner_of(elem, owner));
	return elem->network.ip.family ? nft_check_network(nft, elem, e) : 0;
}

int nft_check(struct nft *nft, const struct nft_elem *v, size_t n, const char *owner,
	      struct hw_err *e)
{
	autofree struct nft_elem *there = mem_new(n * sizeof(*there));
	bool checked[ARRAY_SIZE(nft->loaded)] = { 0 };
	int r;

	r = nft_get_all(nft, v, n, there, e);
	for (size_t i = 0; r >= 0 && i < n; i++) {
		if (!checked[v[i].table])
			r = nft_check_rules(nft, v[i].table, e);
		checked[v[i].table] = true;
		if (r >= 0)
			r = check_elem(nft, &v[i], &there[i], owner, e);
	}
	return r;
}
