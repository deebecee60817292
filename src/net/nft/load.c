/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/nft/load.c - load hawser's rules; run nft commands
 *
 * How:   libnftables parses the ruleset files. It is loaded at run time with
 *        dlopen(), because it is needed only if the rules are missing: usually once
 *        after a boot.
 *        Each version of the rules adds its number and the numbers of all earlier
 *        versions to the set "version". Loading a version fails if its number is
 *        already in the set. So only one of several concurrent loads succeeds, and
 *        an older version never replaces a newer one. Each version also has a chain
 *        "versionN" with one rule. If the chain has its rule, version N or a newer
 *        one is loaded and has not been flushed.
 *        Version 1 had no set "claimed", and its chains of networks masqueraded
 *        themselves. The transaction that loads the rules adds the ports that already
 *        exist to the set, and changes these chains.
 *        The chain of a network is created before the first element that jumps to
 *        it. Its name is a hash of the network. An element of masq4 or near4 maps a
 *        pod's address to the chain of the pod's network, so a packet is compared
 *        only with that network, even if networks overlap.
 *        The chains of networks are never deleted: their number does not grow with
 *        the number of pods.
 */
#include <assert.h>
#include <dlfcn.h>
#include <errno.h>
#include <linux/netfilter.h>
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
#include "net/nft/foreign.h"
#include "net/nft/ruleset.h"
#include "net/nft/wire.h"

#define LIBRARY "libnftables.so.1"

/* As declared by <nftables/libnftables.h> */
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
	int r;

	r = library_open(LIBRARY, symbols, lib, &lib->handle, e);
	if (r < 0)
		return err_ctx(e, "load libnftables");
	lib->ctx = lib->new (0);
	if (!lib->ctx || lib->buffer_output(lib->ctx) || lib->buffer_error(lib->ctx))
		return err_text(e, -ENOMEM, "cannot create a libnftables context");
	return 0;
}

int nft_run_get_output(const char *commands, char **ret_output, struct hw_err *e)
{
	AUTO(nftables_close) struct nftables lib = { 0 };
	int r;

	r = nftables_open(&lib, e);
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

int nft_run(const char *commands, struct hw_err *e)
{
	return nft_run_get_output(commands, NULL, e);
}

/* ---- rules ------------------------------------------------------------------------------- */

static const struct ruleset {
	const char *family;
	const char *text;
	uint32_t version;
	const char *version_chain;
} rulesets[] = {
	[NFT_INET] = { "inet", nft_ruleset, 2, "version2" },
	[NFT_BRIDGE] = { "bridge", nft_ruleset_bridge, 1, "version1" },
};

/* Return: 1 if the set "version" contains this number, 0 if not, or a negative errno */
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

/* Return: the number of rules of one of hawser's chains, 0 if it is missing, or a negative errno */
static int count_rules(struct nft *nft, enum nft_table table, const char *chain, struct hw_err *e)
{
	struct nlmsghdr *m = nft_start_request(nft, NFT_MSG_GETRULE, NLM_F_DUMP, nft_family(table));
	unsigned n = 0;
	int r;

	mnl_attr_put_strz(m, NFTA_RULE_TABLE, NFT_TABLE);
	mnl_attr_put_strz(m, NFTA_RULE_CHAIN, chain);
	r = nft_send_request(nft, m, count_rule, &n, e);
	return r < 0 && r != -ENOENT ? err_ctx(e, "list nftables chain %s", chain) : (int)n;
}

/* Return: 1 if one of hawser's chains has rules, 0 if it is empty or missing, or a negative
 * errno */
static int has_rules(struct nft *nft, enum nft_table table, const char *chain, struct hw_err *e)
{
	int r;

	r = count_rules(nft, table, chain, e);
	return r < 0 ? r : r > 0;
}

int nft_is_loaded(struct nft *nft, enum nft_table table, struct hw_err *e)
{
	int r;

	r = has_rules(nft, table, rulesets[table].version_chain, e);
	if (r < 0 && nft_is_unsupported(nft))
		return err_text(e, -EPROTONOSUPPORT, "this kernel has no nftables");
	return r;
}

int nft_can_load(struct nft *nft, enum nft_table table, struct hw_err *e)
{
	AUTO(nftables_close) struct nftables lib = { 0 };
	int r;

	r = nft_is_loaded(nft, table, e);
	if (r != 0)
		return r < 0 ? r : 0;
	return nftables_open(&lib, e);
}

static int append_port(void *ctx, const struct nft_elem *elem, struct hw_err *e)
{
	struct nft_elem claim = nft_elem(NFT_INET, "claimed", NFT_OWNED);
	struct buf *text = ctx;
	char key[NFT_ELEM_TEXT];

	(void)e;
	/* Of the port's key, which may have an address in between, keep protocol and port. */
	claim.key = elem->key;
	memcpy(claim.key.v + 4, elem->key.v + elem->key.len - 4, 4);
	claim.key.len = 8;
	buf_printf(text,
		   "add element inet " NFT_TABLE " claimed { %s comment \"" NFT_SEVERAL "\" }\n",
		   nft_elem_format(&claim, key));
	return 0;
}

/* Replaces the verdict "masquerade" in the chains of networks by a jump to the chain that masquerades in
 * this version. @listing: the table, as nft prints it */
static void append_networks(const char *listing, struct buf *text)
{
	static const char chain[] = "\tchain masq_", verdict[] = " masquerade";
	const char *name = NULL;
	int name_len = 0;

	for (const char *line = listing; *line;
	     line += strcspn(line, "\n"), line += *line == '\n') {
		int len = (int)strcspn(line, "\n"), rest = len - (int)strlen(verdict);

		if (str_starts(line, chain)) {
			name = line + strlen("\tchain ");
			name_len = (int)strcspn(name, " ");
			buf_printf(text, "flush chain inet " NFT_TABLE " %.*s\n", name_len, name);
		} else if (str_starts(line, "\t}")) {
			name = NULL;
		} else if (name && rest > 0 && str_starts(line + rest, verdict)) {
			buf_printf(text, "add rule inet " NFT_TABLE " %.*s %.*s goto masqout\n",
				   name_len, name, rest, line);
		}
	}
}

/* Appends what must be changed if there is a table inet of version 1: a claim is added for each port, and
 * the chains of networks are replaced. */
static int append_upgrade(struct nft *nft, struct buf *text, struct hw_err *e)
{
	static const char *const maps[] = { "anyport4", "anyport6", "port4", "port6" };
	static const struct nft_chain_ref guard = { NFPROTO_INET, NFT_TABLE, "guard" };
	autofree char *listing = NULL;
	int r;

	r = nft_has_chain(nft, &guard, e);
	if (r <= 0)
		return r;
	for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(maps); i++)
		r = nft_list(nft, NFT_INET, maps[i], append_port, text, e);
	if (r >= 0)
		r = nft_run_get_output("list table inet " NFT_TABLE, &listing, e);
	if (r >= 0)
		append_networks(listing, text);
	return r;
}

/*
 * Loads the rules again after another program has flushed some of their chains or the set
 * "version". The transaction first creates the number of the next version. This fails, and nothing
 * is changed, if a newer version is loaded.
 */
static int reload(struct nft *nft, enum nft_table table, struct hw_err *e)
{
	const char *family = rulesets[table].family;
	uint32_t newer = rulesets[table].version + 1;
	autofree char *text = str_printf("create element %s " NFT_TABLE " version { %u }\n"
					 "flush set %s " NFT_TABLE " version\n%s",
					 family, newer, family, rulesets[table].text);
	struct hw_err ignored;
	int r;

	r = nft_run(text, e);
	if (r < 0 && has_version(nft, table, newer, &ignored) > 0)
		return err_text(
			e, -ENOENT,
			"nftables table %s " NFT_TABLE
			" belongs to a newer version of hawser-plugin and has been flushed; "
			"run \"hawser-plugin repair\" of that version",
			family);
	return r;
}

int nft_load(struct nft *nft, enum nft_table table, struct hw_err *e)
{
	AUTO(buf_done) struct buf text = { 0 };
	struct hw_err ignored;
	int r;

	r = nft_is_loaded(nft, table, e);
	if (r == 0) {
		buf_printf(&text, "%s", rulesets[table].text);
		r = table == NFT_INET ? append_upgrade(nft, &text, e) : 0;
		if (r >= 0)
			r = nft_run(text.data, e);
		/* Another process may have loaded the rules first, or the chains were flushed. */
		if (r < 0 && nft_is_loaded(nft, table, &ignored) > 0)
			r = 0;
		else if (r < 0 && has_version(nft, table, rulesets[table].version, &ignored) > 0)
			r = reload(nft, table, e);
		if (r < 0)
			err_ctx(e, "load the rules of nftables table %s " NFT_TABLE,
				rulesets[table].family);
	}
	nft->loaded[table] = r >= 0;
	return r < 0 ? r : 0;
}

int nft_check_chain_rules(struct nft *nft, enum nft_table table, const char *chain,
			  struct hw_err *e)
{
	int r;

	r = has_rules(nft, table, chain, e);
	if (r == 0)
		return err_text(e, -ENOENT,
				"chain %s of nftables table %s " NFT_TABLE
				" has no rules; hawser-plugin repair restores them",
				chain, rulesets[table].family);
	return r < 0 ? r : 0;
}

/* ---- check and repair -------------------------------------------------------------------- */

#define CHAINS_MAX 64

/* The chains of a ruleset file: how many rules each must have, and how many it has */
struct chain_counts {
	struct {
		const char *name;
		size_t len;
		unsigned wanted, found;
	} v[CHAINS_MAX];
	size_t n;
};

/*
 * Relies on the format of ruleset.nft: a line that ends with "chain x {" begins a chain with rules,
 * and each rule is a line that is indented by two tabs.
 */
static void count_wanted_rules(const char *text, struct chain_counts *ret_chains)
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

static int count_found_rule(void *ctx, const struct nlmsghdr *m, struct hw_err *e)
{
	struct chain_counts *chains = ctx;
	const struct nlattr *attr;

	(void)e;
	mnl_attr_for_each(attr, m, sizeof(struct nfgenmsg)) {
		if (mnl_attr_get_type(attr) != NFTA_RULE_CHAIN)
			continue;
		for (size_t i = 0; i < chains->n; i++)
			if (strlen(mnl_attr_get_str(attr)) == chains->v[i].len &&
			    str_starts(chains->v[i].name, mnl_attr_get_str(attr)))
				chains->v[i].found++;
	}
	return 0;
}

/* Return: 1 if the rules are complete; 0 if a chain lacks rules, or if the set "version" lacks the
 * number; or a negative errno. If a newer version is loaded, its rules are not counted: only the
 * chain of our version must have its rule. */
static int is_complete(struct nft *nft, enum nft_table table, struct hw_err *e)
{
	uint32_t version = rulesets[table].version;
	struct chain_counts chains = { 0 };
	char newer_chain[NFT_NAME];
	struct nlmsghdr *m;
	int r;

	/* A newer version is recognized by its number or, if the set was flushed, by its chain. */
	r = has_version(nft, table, version + 1, e);
	if (r == 0) {
		snprintf(newer_chain, sizeof(newer_chain), "version%u", version + 1);
		r = has_rules(nft, table, newer_chain, e);
	}
	if (r != 0)
		return r < 0 ? r : nft_is_loaded(nft, table, e);

	r = has_version(nft, table, version, e);
	if (r <= 0)
		return r;
	count_wanted_rules(rulesets[table].text, &chains);
	m = nft_start_request(nft, NFT_MSG_GETRULE, NLM_F_DUMP, nft_family(table));
	mnl_attr_put_strz(m, NFTA_RULE_TABLE, NFT_TABLE);
	r = nft_send_request(nft, m, count_found_rule, &chains, e);
	if (r < 0 && r != -ENOENT)
		return err_ctx(e, "list nftables table %s " NFT_TABLE, rulesets[table].family);
	for (size_t i = 0; i < chains.n; i++)
		if (chains.v[i].found < chains.v[i].wanted)
			return 0;
	return 1;
}

/* Is an older version loaded, which has not been flushed? The next ADD, or repair, replaces it. */
static int is_older_loaded(struct nft *nft, enum nft_table table, struct hw_err *e)
{
	int r;

	r = has_version(nft, table, rulesets[table].version, e);
	if (r != 0)
		return r < 0 ? r : 0;
	r = has_version(nft, table, 1, e);
	return r <= 0 ? r : has_rules(nft, table, "version1", e);
}

int nft_check_rules(struct nft *nft, enum nft_table table, struct hw_err *e)
{
	int r;

	r = is_complete(nft, table, e);
	if (r == 0)
		r = is_older_loaded(nft, table, e);
	if (r == 0)
		return err_text(e, -ENOENT,
				"nftables table %s " NFT_TABLE
				" lacks rules, another program may have flushed it; hawser-plugin "
				"repair restores them",
				rulesets[table].family);
	return r < 0 ? r : 0;
}

int nft_repair(struct nft *nft, enum nft_table table, struct hw_err *e)
{
	int r;

	r = has_version(nft, table, rulesets[table].version, e);
	if (r == 0)
		r = nft_is_loaded(nft, table, e);
	if (r > 0) {
		r = is_complete(nft, table, e);
		if (r == 0)
			r = reload(nft, table, e);
	}
	return r < 0 && !nft_is_unsupported(nft) ? r : 0;
}

int nft_delete_table(struct nft *nft, enum nft_table table, struct hw_err *e)
{
	struct nlmsghdr *m;
	int r;

	nft_batch_begin(nft, 0);
	m = nft_start_message(nft, NFT_MSG_DELTABLE, 0, nft_family(table));
	mnl_attr_put_strz(m, NFTA_TABLE_NAME, NFT_TABLE);
	nft_end_message(nft, m);
	nft->deleted = true;
	r = nft_batch_commit(nft, e);
	if (r == -ENOENT || (r < 0 && nft_is_unsupported(nft)))
		return 0;
	return r < 0 ? err_ctx(e, "delete nftables table %s " NFT_TABLE, rulesets[table].family)
		     : 1;
}

/* ---- chains of networks ------------------------------------------------------------------ */

#define TABLE "inet " NFT_TABLE

static const char *const chain_prefixes[] = { [NFT_MASQ] = "masq", [NFT_HAIRPIN] = "near" };

void nft_data_network_chain(struct nft_elem *elem, enum nft_chain chain,
			    const struct hw_prefix *prefix)
{
	struct hw_prefix network = { prefix_network(prefix), prefix->len };
	char text[HW_PREFIX_TEXT], hash[17], name[NFT_NAME];

	hash_hex(hw_prefix_format(&network, text), sizeof(hash) - 1, hash);
	snprintf(name, sizeof(name), "%s_%s", chain_prefixes[chain], hash);
	nft_data_jump(elem, name);
	elem->network = network;
}

/* Parses an entry of elem->direct. Return: false if it belongs to the other family */
static bool get_direct(const struct nft_elem *elem, size_t i, struct hw_prefix *ret_prefix)
{
	struct hw_err malformed;

	return hw_prefix_parse(elem->direct->v[i], ret_prefix, &malformed) >= 0 &&
	       ret_prefix->ip.family == elem->network.ip.family;
}

static size_t count_direct(const struct nft_elem *elem)
{
	struct hw_prefix ignored;
	size_t n = 0;

	for (size_t i = 0; elem->direct && i < elem->direct->n; i++)
		n += get_direct(elem, i, &ignored);
	return n;
}

void nft_direct_set(const char *chain, int family, char ret_set[NFT_NAME])
{
	snprintf(ret_set, NFT_NAME, "direct%c%s", family == AF_INET ? '4' : '6',
		 chain + strlen(chain_prefixes[NFT_MASQ]));
}

void nft_data_masq_chain(struct nft_elem *elem, const struct hw_prefix *prefix,
			 const struct hw_strings *direct)
{
	AUTO(buf_done) struct buf text = { 0 };
	bool has_network = prefix->len < ip_bits(&prefix->ip);
	/* All pods without a network share a chain: no packet is sent to 0.0.0.0. */
	struct hw_prefix none = { { .family = prefix->ip.family }, prefix->len };
	char hash[17], name[NFT_NAME];

	nft_data_network_chain(elem, NFT_MASQ, has_network ? prefix : &none);
	elem->direct = direct;
	if (!count_direct(elem)) {
		elem->direct = NULL;
		if (!has_network) {
			nft_data_jump(elem, "masqall");
			elem->network = (struct hw_prefix){ 0 };
		}
		return;
	}
	buf_printf(&text, "%s", elem->chain);
	for (size_t i = 0; i < direct->n; i++)
		if (get_direct(elem, i, &none))
			buf_printf(&text, " %s", direct->v[i]);
	hash_hex(text.data, sizeof(hash) - 1, hash);
	snprintf(name, sizeof(name), "%s_%s", chain_prefixes[NFT_MASQ], hash);
	nft_data_jump(elem, name);
}

static void add_direct_commands(struct buf *text, const struct nft_elem *elem)
{
	const char *version = elem->network.ip.family == AF_INET ? "4" : "6";
	char set[NFT_NAME], network[HW_PREFIX_TEXT];
	struct hw_prefix prefix;

	nft_direct_set(elem->chain, elem->network.ip.family, set);
	buf_printf(text,
		   "add set " TABLE " %s { type ipv%s_addr . ipv%s_addr; flags interval; }\n"
		   "flush set " TABLE " %s\n",
		   set, version, version, set);
	for (size_t i = 0; i < elem->direct->n; i++) {
		if (!get_direct(elem, i, &prefix))
			continue;
		hw_prefix_format(&prefix, network);
		buf_printf(text, "add element " TABLE " %s { %s . %s }\n", set, network, network);
	}
}

static void add_chain_commands(struct buf *text, const struct nft_elem *elem)
{
	bool is_ip4 = elem->network.ip.family == AF_INET;
	const char *family = is_ip4 ? "ip" : "ip6", *chain = elem->chain;
	char network[HW_PREFIX_TEXT], set[NFT_NAME];

	hw_prefix_format(&elem->network, network);
	buf_printf(text, "add chain " TABLE " %s\nflush chain " TABLE " %s\n", chain, chain);
	if (str_starts(chain, chain_prefixes[NFT_HAIRPIN])) {
		buf_printf(text, "add rule " TABLE " %s %s saddr %s masquerade\n", chain, family,
			   network);
		return;
	}
	if (elem->direct) {
		nft_direct_set(chain, elem->network.ip.family, set);
		add_direct_commands(text, elem);
		buf_printf(text, "add rule " TABLE " %s %s daddr . %s daddr @%s return\n", chain,
			   family, family, set);
	}
	buf_printf(text,
		   "add rule " TABLE " %s %s daddr %s return\n"
		   "add rule " TABLE " %s %s daddr != %s goto masqout\n",
		   chain, family, network, chain, family, is_ip4 ? "224.0.0.0/4" : "ff00::/8");
}

static int count_elem(void *ctx, const struct nft_elem *elem, struct hw_err *e)
{
	(void)elem;
	(void)e;
	++*(size_t *)ctx;
	return 0;
}

/* Return: 1 if the chain of a network, and its set, are complete, 0 if not, or a negative errno */
static int has_network_chain(struct nft *nft, const struct nft_elem *elem, struct hw_err *e)
{
	int wanted = str_starts(elem->chain, chain_prefixes[NFT_HAIRPIN]) ? 1 : 2 + !!elem->direct;
	char set[NFT_NAME];
	size_t n = 0;
	int r;

	r = count_rules(nft, elem->table, elem->chain, e);
	if (r < wanted || !elem->direct)
		return r < 0 ? r : r >= wanted;
	nft_direct_set(elem->chain, elem->network.ip.family, set);
	r = nft_list(nft, elem->table, set, count_elem, &n, e);
	return r < 0 ? r : n >= count_direct(elem);
}

int nft_check_network(struct nft *nft, const struct nft_elem *elem, struct hw_err *e)
{
	int r;

	/* Version 1 created chains with one rule. */
	r = elem->direct ? has_network_chain(nft, elem, e)
			 : has_rules(nft, elem->table, elem->chain, e);
	if (r == 0)
		return err_text(e, -ENOENT,
				"chain %s of nftables table %s " NFT_TABLE
				" lacks rules or destinations; hawser-plugin repair restores them",
				elem->chain, rulesets[elem->table].family);
	return r < 0 ? r : 0;
}

/* An existing chain may be empty: another program flushed the table, and the process that reloaded
 * the rules only restored the chains of its own networks. The commands flush the chain before they
 * add its rules, so a chain never has a rule twice. */
int nft_repair_networks(struct nft *nft, const struct nft_elem *v, size_t n, struct hw_err *e)
{
	AUTO(buf_done) struct buf text = { 0 };
	int r;

	for (size_t i = 0; i < n; i++) {
		if (!v[i].network.ip.family)
			continue;
		r = has_network_chain(nft, &v[i], e);
		if (r < 0)
			return r;
		if (r == 0)
			add_chain_commands(&text, &v[i]);
	}
	if (!text.len)
		return 0;
	r = nft_load(nft, NFT_INET, e);
	return r < 0 ? r : nft_run(text.data, e);
}
