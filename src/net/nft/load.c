/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/nft/load.c - our rules, and commands of nft in general
 *
 * How:   libnftables reads the text. It is loaded at run time, as it is needed
 *        only where the rules are missing: mostly once after a boot.
 *        Each version of the rules puts its number into the set "version", with
 *        those of all versions before it. The text itself fails when its number is
 *        there, so that of many that load at once one wins, and no older one replaces
 *        a newer. There is a chain for each number, too, with a rule: one look
 *        tells whether ours, or a newer version, is there, and not just its empty
 *        chains.
 */
#include <assert.h>
#include <dlfcn.h>
#include <errno.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/buf.h"
#include "base/hash.h"
#include "base/ip.h"
#include "base/os/library.h"
#include "base/str.h"
#include "net/nft/elem.h"
#include "net/nft/ruleset.h"
#include "net/nft/wire.h"

#define LIBRARY "libnftables.so.1"

/* What <nftables/libnftables.h> declares. */
struct nft_ctx;

struct nftables {
	void *handle;
	struct nft_ctx *ctx;
	struct nft_ctx *(*new)(uint32_t flags);
	void (*free)(struct nft_ctx *ctx);
	int (*buffer_output)(struct nft_ctx *ctx);
	int (*buffer_error)(struct nft_ctx *ctx);
	const char *(*get_output)(struct nft_ctx *ctx);
	const char *(*get_error)(struct nft_ctx *ctx);
	int (*run)(struct nft_ctx *ctx, const char *commands);
};

static const struct library_symbol symbols[] = {
	{ "nft_ctx_new", offsetof(struct nftables, new) },
	{ "nft_ctx_free", offsetof(struct nftables, free) },
	{ "nft_ctx_buffer_output", offsetof(struct nftables, buffer_output) },
	{ "nft_ctx_buffer_error", offsetof(struct nftables, buffer_error) },
	{ "nft_ctx_get_output_buffer", offsetof(struct nftables, get_output) },
	{ "nft_ctx_get_error_buffer", offsetof(struct nftables, get_error) },
	{ "nft_run_cmd_from_buffer", offsetof(struct nftables, run) },
	{ 0 },
};

static void nftables_close(struct nftables *lib)
{
	if (lib->ctx)
		lib->free(lib->ctx);
	if (lib->handle)
		dlclose(lib->handle);
}
AUTO_VALUE_DEFINE(nftables_close, struct nftables);

static int nftables_open(struct nftables *lib, struct hw_err *e)
{
	int r = library_open(LIBRARY, symbols, lib, &lib->handle, e);
	if (r < 0)
		return err_ctx(e, "load libnftables");
	lib->ctx = lib->new (0);
	if (!lib->ctx || lib->buffer_output(lib->ctx) || lib->buffer_error(lib->ctx))
		return err_text(e, -ENOMEM, "libnftables does not start");
	return 0;
}

/**
 * nft_run_for() - run commands of nft, one transaction, and keep what they print
 */
int nft_run_for(const char *commands, char **ret_output, struct hw_err *e)
{
	AUTO(nftables_close) struct nftables lib = { 0 };

	int r = nftables_open(&lib, e);
	if (r < 0)
		return r;
	if (lib.run(lib.ctx, commands) != 0) {
		autofree char *why = str_copy(str_or(lib.get_error(lib.ctx), ""));

		why[strcspn(why, "\n")] = '\0';
		return err_text(e, -EINVAL, "nft: %s", why);
	}
	if (ret_output)
		*ret_output = str_copy(str_or(lib.get_output(lib.ctx), ""));
	return 0;
}

/**
 * nft_run() - run commands of nft, one transaction
 */
int nft_run(const char *commands, struct hw_err *e)
{
	return nft_run_for(commands, NULL, e);
}

/* ---- our rules --------------------------------------------------------------------------- */

static const struct rules {
	const char *family;
	const char *text;
	uint32_t version;
	const char *witness; /* its chain */
} rules[] = {
	[NFT_INET] = { "inet", nft_ruleset, 1, "version1" },
	[NFT_BRIDGE] = { "bridge", nft_ruleset_bridge, 1, "version1" },
};

/* Return: 1 when a version of the rules, or a newer one, has been loaded */
static int has_version(struct nft *nft, enum nft_table table, uint32_t number, struct hw_err *e)
{
	struct nft_elem version = nft_elem(table, "version", NFT_SHARED), there;

	nft_key_number(&version, number);
	return nft_get(nft, &version, &there, e);
}

static int count_rule(void *ctx, const struct nlmsghdr *m, struct hw_err *e)
{
	(void)m;
	(void)e;
	++*(unsigned *)ctx;
	return 0;
}

/* Has a chain of ours rules? */
static int has_rules(struct nft *nft, enum nft_table table, const char *chain, struct hw_err *e)
{
	struct nlmsghdr *m = nft_question(nft, NFT_MSG_GETRULE, NLM_F_DUMP, nft_family(table));
	unsigned n = 0;
	int r;

	mnl_attr_put_strz(m, NFTA_RULE_TABLE, NFT_TABLE);
	mnl_attr_put_strz(m, NFTA_RULE_CHAIN, chain);
	r = nft_ask(nft, m, count_rule, &n, e);
	return r < 0 && r != -ENOENT ? err_set(e, r, "list chain %s", chain) : n > 0;
}

/* Return: 1 when the rules are there, and not just their empty chains */
static int is_loaded(struct nft *nft, enum nft_table table, struct hw_err *e)
{
	int r = has_rules(nft, table, rules[table].witness, e);

	if (r < 0 && nft_is_missing(nft))
		return err_text(e, -EPROTONOSUPPORT, "this kernel has no nftables");
	return r;
}

/**
 * nft_can_load() - are the rules of a table there, or is what loads them?
 */
int nft_can_load(struct nft *nft, enum nft_table table, struct hw_err *e)
{
	AUTO(nftables_close) struct nftables lib = { 0 };

	int r = is_loaded(nft, table, e);
	if (r != 0)
		return r < 0 ? r : 0;
	return nftables_open(&lib, e);
}

/*
 * Load them where they are there, but lack something. No transaction that is about a newer version
 * is done: nobody can create its number then.
 */
static int load_again(struct nft *nft, enum nft_table table, struct hw_err *e)
{
	const char *family = rules[table].family;
	uint32_t newer = rules[table].version + 1;
	autofree char *text = str_printf("create element %s " NFT_TABLE " version { %u }\n"
					 "flush set %s " NFT_TABLE " version\n%s",
					 family, newer, family, rules[table].text);
	struct hw_err ignored;

	int r = nft_run(text, e);
	if (r < 0 && has_version(nft, table, newer, &ignored) > 0)
		return err_text(e, -ENOENT,
				"the rules of table %s " NFT_TABLE " are of a newer hawser-plugin, "
				"and somebody has emptied them; its own repair restores them",
				family);
	return r;
}

/**
 * nft_load() - have the rules of a table
 *
 * Return: 0, or a negative errno
 */
int nft_load(struct nft *nft, enum nft_table table, struct hw_err *e)
{
	struct hw_err ignored;

	int r = is_loaded(nft, table, e);
	if (r == 0) {
		r = nft_run(rules[table].text, e);
		/* Somebody else may have been faster; or somebody has emptied the chains. */
		if (r < 0 && is_loaded(nft, table, &ignored) > 0)
			r = 0;
		else if (r < 0 && has_version(nft, table, rules[table].version, &ignored) > 0)
			r = load_again(nft, table, e);
		if (r < 0)
			err_ctx(e, "load the rules of table %s " NFT_TABLE, rules[table].family);
	}
	nft->loaded[table] = r >= 0;
	return r < 0 ? r : 0;
}

/**
 * nft_check_chain() - has a chain of ours, which is not in the text, its rules?
 */
int nft_check_chain(struct nft *nft, enum nft_table table, const char *chain, struct hw_err *e)
{
	int r = has_rules(nft, table, chain, e);

	if (r == 0)
		return err_text(e, -ENOENT,
				"chain %s of nftables table %s " NFT_TABLE
				" has no rules any more; hawser-plugin repair restores them",
				chain, rules[table].family);
	return r < 0 ? r : 0;
}

/* ---- are they complete? -------------------------------------------------------------------- */

#define CHAINS_MAX 64

/* The chains of the text, and how many rules each must have */
struct chains {
	struct {
		const char *name;
		size_t len;
		unsigned wanted, there;
	} v[CHAINS_MAX];
	size_t n;
};

/*
 * As ruleset.nft is written: "chain x {" at the end of its line begins one that has rules, each of
 * which is a line two tabs deep.
 */
static void read_text(const char *text, struct chains *ret_chains)
{
	static const char chain[] = "\tchain ";
	bool inside = false;

	for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
		size_t len = strcspn(line, "\n");

		if (str_starts(line, chain) && line[len - 1] == '{') {
			const char *name = line + strlen(chain);

			assert(ret_chains->n < CHAINS_MAX);
			ret_chains->v[ret_chains->n].name = name;
			ret_chains->v[ret_chains->n++].len = strcspn(name, " ");
			inside = true;
		} else if (str_starts(line, "\t}")) {
			inside = false;
		} else if (inside && str_starts(line, "\t\t") && line[2] != '#') {
			ret_chains->v[ret_chains->n - 1].wanted++;
		}
	}
}

static int count_in_chains(void *ctx, const struct nlmsghdr *m, struct hw_err *e)
{
	struct chains *chains = ctx;
	const struct nlattr *attr;

	(void)e;
	mnl_attr_for_each(attr, m, sizeof(struct nfgenmsg)) {
		if (mnl_attr_get_type(attr) != NFTA_RULE_CHAIN)
			continue;
		for (size_t i = 0; i < chains->n; i++)
			if (strlen(mnl_attr_get_str(attr)) == chains->v[i].len &&
			    str_starts(chains->v[i].name, mnl_attr_get_str(attr)))
				chains->v[i].there++;
	}
	return 0;
}

/* By its number, or where somebody has emptied the set, by its chain */
static int has_newer(struct nft *nft, enum nft_table table, struct hw_err *e)
{
	uint32_t newer = rules[table].version + 1;
	char chain[NFT_NAME];

	snprintf(chain, sizeof(chain), "version%u", newer);
	int r = has_version(nft, table, newer, e);
	return r != 0 ? r : has_rules(nft, table, chain, e);
}

/* Return: 1; 0 when one of our chains lacks rules, or the set its number. Of a newer version we know
 * no more than that it is there. */
static int is_complete(struct nft *nft, enum nft_table table, struct hw_err *e)
{
	struct chains chains = { 0 };
	struct nlmsghdr *m;

	int r = has_newer(nft, table, e);
	if (r != 0)
		return r < 0 ? r : is_loaded(nft, table, e);
	r = has_version(nft, table, rules[table].version, e);
	if (r <= 0)
		return r;
	read_text(rules[table].text, &chains);
	m = nft_question(nft, NFT_MSG_GETRULE, NLM_F_DUMP, nft_family(table));
	mnl_attr_put_strz(m, NFTA_RULE_TABLE, NFT_TABLE);
	r = nft_ask(nft, m, count_in_chains, &chains, e);
	if (r < 0 && r != -ENOENT)
		return err_set(e, r, "list table %s " NFT_TABLE, rules[table].family);
	for (size_t i = 0; i < chains.n; i++)
		if (chains.v[i].there < chains.v[i].wanted)
			return 0;
	return 1;
}

/**
 * nft_check_rules() - are the rules of a table there?
 */
int nft_check_rules(struct nft *nft, enum nft_table table, struct hw_err *e)
{
	int r = is_complete(nft, table, e);

	if (r == 0)
		return err_text(e, -ENOENT,
				"our nftables rules, table %s " NFT_TABLE
				", are gone: somebody has flushed them; hawser-plugin repair "
				"restores them",
				rules[table].family);
	return r < 0 ? r : 0;
}

/**
 * nft_repair() - load the rules again where somebody has emptied their chains, or one of them, or
 * the set of their version
 *
 * Where they are gone altogether nft_add() brings them back, if anybody needs them; a kernel without
 * nftables has lost nothing.
 */
int nft_repair(struct nft *nft, enum nft_table table, struct hw_err *e)
{
	int r = has_version(nft, table, rules[table].version, e);
	if (r == 0)
		r = is_loaded(nft, table, e);
	if (r > 0) {
		r = is_complete(nft, table, e);
		if (r == 0)
			r = load_again(nft, table, e);
	}
	return r < 0 && !nft_is_missing(nft) ? r : 0;
}

/**
 * nft_remove() - delete a table of ours with all that is in it
 *
 * Return: 1, or 0 when there was none
 */
int nft_remove(struct nft *nft, enum nft_table table, struct hw_err *e)
{
	struct nlmsghdr *m;

	nft_begin(nft, 0);
	m = nft_message(nft, NFT_MSG_DELTABLE, 0, nft_family(table));
	mnl_attr_put_strz(m, NFTA_TABLE_NAME, NFT_TABLE);
	nft_put(nft, m);
	nft->deleted = true;
	int r = nft_commit(nft, e);
	if (r == -ENOENT || (r < 0 && nft_is_missing(nft)))
		return 0;
	return r < 0 ? err_set(e, r, "delete nftables table %s " NFT_TABLE, rules[table].family)
		     : 1;
}

/* ---- chains of networks --------------------------------------------------------------------- */

#define TABLE "inet " NFT_TABLE

static const char *const names[] = { [NFT_MASQ] = "masq", [NFT_NEAR] = "near" };

/**
 * nft_data_network() - lead to a chain of a network
 */
void nft_data_network(struct nft_elem *elem, enum nft_chain chain, const struct hw_prefix *prefix)
{
	struct hw_prefix network = { prefix_network(prefix), prefix->len };
	char text[HW_PREFIX_TEXT], hash[17], name[NFT_NAME];

	hash_hex(hw_prefix_format(&network, text), sizeof(hash) - 1, hash);
	snprintf(name, sizeof(name), "%s_%s", names[chain], hash);
	nft_data_jump(elem, name);
	elem->network = network;
}

static void put_chain(struct buf *text, const struct nft_elem *elem)
{
	bool is_ip4 = elem->network.ip.family == AF_INET;
	const char *family = is_ip4 ? "ip" : "ip6", *chain = elem->chain;
	char network[HW_PREFIX_TEXT];

	hw_prefix_format(&elem->network, network);
	buf_printf(text, "add chain " TABLE " %s\nflush chain " TABLE " %s\n", chain, chain);
	if (str_starts(chain, names[NFT_NEAR]))
		buf_printf(text, "add rule " TABLE " %s %s saddr %s masquerade\n", chain, family,
			   network);
	else
		buf_printf(text, "add rule " TABLE " %s %s daddr != %s %s daddr != %s masquerade\n",
			   chain, family, network, family, is_ip4 ? "224.0.0.0/4" : "ff00::/8");
}

/**
 * nft_repair_networks() - have the chains of networks to which elements lead
 *
 * Also where one is there, but empty: somebody has flushed the table, and whoever loaded its rules
 * again knew of other networks only. However often this is done, each has its one rule.
 */
int nft_repair_networks(struct nft *nft, const struct nft_elem *v, size_t n, struct hw_err *e)
{
	AUTO(buf_done) struct buf text = { 0 };

	for (size_t i = 0; i < n; i++) {
		if (!v[i].network.ip.family)
			continue;
		int r = has_rules(nft, v[i].table, v[i].chain, e);
		if (r < 0)
			return r;
		if (r == 0)
			put_chain(&text, &v[i]);
	}
	if (!text.len)
		return 0;
	int r = nft_load(nft, NFT_INET, e);
	return r < 0 ? r : nft_run(text.data, e);
}
