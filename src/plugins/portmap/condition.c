/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/portmap/condition.c - translation of conditionsV4 and conditionsV6 to nft syntax
 *
 * How:   conditions in nft syntax are checked and used unchanged. Conditions in
 *        iptables syntax, which start with - or !, are translated; only -s, -d, -i
 *        and -o are supported.
 * Rules: the text becomes part of one rule, so text that could end the rule is
 *        rejected. Every rejection has CNI code 7.
 */
#include <ctype.h>
#include <net/if.h>
#include <string.h>
#include <sys/socket.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/ip.h"
#include "base/str.h"
#include "plugins/portmap/portmap.h"

/* Skips leading blanks. @ret_len: length without trailing blanks */
static const char *trim(const char *word, int *ret_len)
{
	word += strspn(word, " ");
	size_t len = strlen(word);
	while (len && word[len - 1] == ' ')
		len--;
	*ret_len = (int)len;
	return word;
}

bool portmap_condition_is_iptables(const struct hw_strings *tokens)
{
	int len;

	for (size_t i = 0; i < tokens->n; i++) {
		const char *word = trim(tokens->v[i], &len);

		if (len)
			return *word == '-' || *word == '!';
	}
	return false;
}

/* ---- nft syntax ------------------------------------------------------------------------------ */

/* Keywords of statements that change packets or sets. nft accepts these statements before a
 * verdict, but a condition may only match packets; counting and logging are also allowed.
 * Terminal statements, such as accept or dnat, need not be listed: nft itself rejects a rule that
 * has another statement after them. */
static const char *const statements[] = { "add", "delete", "dup",      "fwd",	 "notrack", "reset",
					  "set", "tproxy", "synproxy", "update", "vmap" };

static const char *find_statement(const char *text)
{
	static const char word[] = "abcdefghijklmnopqrstuvwxyz0123456789_-@/.:\"";

	for (; *text; text += strspn(text, word)) {
		text += strcspn(text, word);
		for (size_t i = 0; i < ARRAY_SIZE(statements); i++)
			if (strspn(text, word) == strlen(statements[i]) &&
			    str_starts(text, statements[i]))
				return statements[i];
	}
	return NULL;
}

static int check_nft_condition(const char *text, struct hw_err *e)
{
	bool quoted = false;
	int depth = 0;

	for (const char *c = text; *c && depth >= 0; c++) {
		if (!isprint((unsigned char)*c) || strchr(";#$\\`", *c))
			return err_cni(e, HW_CNI_INVALID_CONFIG,
				       "character \"%c\" is not allowed in a condition: %.200s",
				       isprint((unsigned char)*c) ? *c : '?', text);
		quoted ^= *c == '"';
		depth += !quoted && *c == '{';
		depth -= !quoted && *c == '}';
	}
	if (quoted || depth)
		return err_cni(e, HW_CNI_INVALID_CONFIG,
			       "unbalanced quotes or braces in a condition: %.200s", text);
	const char *statement = find_statement(text);
	if (statement)
		return err_cni(e, HW_CNI_INVALID_CONFIG,
			       "statement \"%s\" is not allowed in a condition: %.200s", statement,
			       text);
	return 0;
}

/* ---- iptables syntax ------------------------------------------------------------------------- */

static int put_network(const char *field, const char *value, bool negated, int family,
		       struct buf *out, struct hw_err *e)
{
	struct hw_prefix network = { .len = family == AF_INET ? 32 : 128 };
	char text[HW_PREFIX_TEXT];
	struct hw_err ignored;
	int r;

	r = strchr(value, '/') ? hw_prefix_parse(value, &network, &ignored)
			       : hw_ip_parse(value, &network.ip, &ignored);
	if (r < 0 || network.ip.family != family)
		return err_cni(e, HW_CNI_INVALID_CONFIG,
			       "invalid IPv%d address or network \"%.100s\" in a condition",
			       family == AF_INET ? 4 : 6, value);
	network.ip = prefix_network(&network);
	buf_printf(out, "%s%s %s %s%s", out->len ? " " : "", family == AF_INET ? "ip" : "ip6",
		   field, negated ? "!= " : "", hw_prefix_format(&network, text));
	return 0;
}

/* "eth+" in iptables syntax is "eth*" in nft syntax. */
static int put_interface(const char *field, const char *value, bool negated, int family,
			 struct buf *out, struct hw_err *e)
{
	size_t len = strlen(value);
	bool any = len && value[len - 1] == '+', good = len && len < IFNAMSIZ;

	(void)family;
	for (size_t i = 0; i < len - any; i++)
		good = good && isgraph((unsigned char)value[i]) && !strchr("\"\\*+/;#$`", value[i]);
	if (!good || len == any)
		return err_cni(e, HW_CNI_INVALID_CONFIG,
			       "invalid interface name \"%.100s\" in a condition", value);
	buf_printf(out, "%s%s %s\"%.*s%s\"", out->len ? " " : "", field, negated ? "!= " : "",
		   (int)(len - any), value, any ? "*" : "");
	return 0;
}

static const struct iptables_option {
	const char *name, *long_name, *field;
	int (*put)(const char *field, const char *value, bool negated, int family, struct buf *out,
		   struct hw_err *e);
} options[] = {
	{ "-s", "--source", "saddr", put_network },
	{ "-d", "--destination", "daddr", put_network },
	{ "-i", "--in-interface", "iifname", put_interface },
	{ "-o", "--out-interface", "oifname", put_interface },
};

static const struct iptables_option *find_option(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(options); i++)
		if (str_equal(name, options[i].name) || str_equal(name, options[i].long_name))
			return &options[i];
	return NULL;
}

/* Returns the next non-empty word, and advances *i. Return: NULL at the end */
static const char *next_word(const struct hw_strings *words, size_t *i)
{
	while (*i < words->n && str_empty(words->v[*i]))
		++*i;
	return *i < words->n ? words->v[(*i)++] : NULL;
}

/* A negated condition is "! -s VALUE", or in the old syntax "-s ! VALUE". */
static int translate_iptables(const char *text, int family, struct buf *out, struct hw_err *e)
{
	AUTO(hw_strings_free) struct hw_strings words = { 0 };
	size_t i = 0;

	strings_split(text, ' ', &words);
	for (const char *word; (word = next_word(&words, &i));) {
		bool negated = str_equal(word, "!");
		const struct iptables_option *option =
			find_option(negated ? next_word(&words, &i) : word);
		const char *value = option ? next_word(&words, &i) : NULL;
		int r;

		if (value && !negated && str_equal(value, "!")) {
			negated = true;
			value = next_word(&words, &i);
		}
		if (!value)
			return err_cni(e, HW_CNI_INVALID_CONFIG,
				       "unsupported iptables condition: only -s, -d, -i and -o, "
				       "each with a value, are supported; write \"%.200s\" in nft "
				       "syntax",
				       text);
		r = option->put(option->field, value, negated, family, out, e);
		if (r < 0)
			return r;
	}
	return 0;
}

int portmap_condition(const struct hw_strings *tokens, int family, char **ret_text,
		      struct hw_err *e)
{
	AUTO(buf_done) struct buf text = { 0 }, out = { 0 };
	int len, r;

	*ret_text = NULL;
	for (size_t i = 0; i < tokens->n; i++) {
		const char *word = trim(tokens->v[i], &len);

		if (len)
			buf_printf(&text, "%s%.*s", text.len ? " " : "", len, word);
	}
	if (!text.len)
		return 0;
	if (!portmap_condition_is_iptables(tokens)) {
		r = check_nft_condition(text.data, e);
		if (r >= 0)
			*ret_text = buf_take(&text);
		return r;
	}
	r = translate_iptables(text.data, family, &out, e);
	if (r >= 0)
		*ret_text = buf_take(&out);
	return r;
}
