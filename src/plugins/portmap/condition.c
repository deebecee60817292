/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/portmap/condition.c - conditionsV4 and conditionsV6 as text for nft
 *
 * How:   in nft's own syntax they are taken as they are. In that of iptables,
 *        which begins with - or !, what nft can say as well is translated.
 * Rules: the text becomes part of one rule, so whatever would end the rule is
 *        refused. All that is refused is code 7.
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

/* Without blanks before and behind */
static const char *trim(const char *word, int *ret_len)
{
	word += strspn(word, " ");
	size_t len = strlen(word);
	while (len && word[len - 1] == ' ')
		len--;
	*ret_len = (int)len;
	return word;
}

static void join(const struct hw_strings *tokens, struct buf *text)
{
	int len;

	for (size_t i = 0; i < tokens->n; i++) {
		const char *word = trim(tokens->v[i], &len);

		if (len)
			buf_printf(text, "%s%.*s", text->len ? " " : "", len, word);
	}
}

/**
 * portmap_condition_is_iptables() - is it of iptables' syntax?
 */
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

/* ---- nft's syntax -------------------------------------------------------------------------- */

/* Words that no condition has, but what changes packets or sets: nft would take them in front of a
 * verdict, too. What only counts or logs may stay, and what ends a rule nft itself refuses. */
static const char *const acts[] = { "add", "delete", "dup",	 "fwd",	   "notrack", "reset",
				    "set", "tproxy", "synproxy", "update", "vmap" };

static const char *find_act(const char *text)
{
	static const char word[] = "abcdefghijklmnopqrstuvwxyz0123456789_-@/.:\"";

	for (; *text; text += strspn(text, word)) {
		text += strcspn(text, word);
		for (size_t i = 0; i < ARRAY_SIZE(acts); i++)
			if (strspn(text, word) == strlen(acts[i]) && str_starts(text, acts[i]))
				return acts[i];
	}
	return NULL;
}

static int check_verbatim(const char *text, struct hw_err *e)
{
	bool quoted = false;
	int depth = 0;

	for (const char *c = text; *c && depth >= 0; c++) {
		if (!isprint((unsigned char)*c) || strchr(";#$\\`", *c))
			return err_cni(e, HW_CNI_INVALID_CONFIG,
				       "a condition may not have \"%c\" in it: %.200s",
				       isprint((unsigned char)*c) ? *c : '?', text);
		quoted ^= *c == '"';
		depth += !quoted && *c == '{';
		depth -= !quoted && *c == '}';
	}
	if (quoted || depth)
		return err_cni(e, HW_CNI_INVALID_CONFIG,
			       "a condition has quotes or braces that do not match: %.200s", text);
	const char *act = find_act(text);
	if (act)
		return err_cni(e, HW_CNI_INVALID_CONFIG,
			       "a condition may not do anything, as \"%s\" does: %.200s", act,
			       text);
	return 0;
}

/* ---- iptables' syntax ------------------------------------------------------------------------ */

static int put_network(const char *field, const char *value, bool negated, int family,
		       struct buf *out, struct hw_err *e)
{
	struct hw_prefix network = { .len = family == AF_INET ? 32 : 128 };
	char text[HW_PREFIX_TEXT];
	struct hw_err why;

	int r = strchr(value, '/') ? hw_prefix_parse(value, &network, &why)
				   : hw_ip_parse(value, &network.ip, &why);
	if (r < 0 || network.ip.family != family)
		return err_cni(e, HW_CNI_INVALID_CONFIG,
			       "a condition has \"%.100s\", which is no IPv%d address or network",
			       value, family == AF_INET ? 4 : 6);
	network.ip = prefix_network(&network);
	buf_printf(out, "%s%s %s %s%s", out->len ? " " : "", family == AF_INET ? "ip" : "ip6",
		   field, negated ? "!= " : "", hw_prefix_format(&network, text));
	return 0;
}

/* iptables' "eth+" is nft's "eth*". */
static int put_link(const char *field, const char *value, bool negated, int family, struct buf *out,
		    struct hw_err *e)
{
	size_t len = strlen(value);
	bool any = len && value[len - 1] == '+', good = len && len < IFNAMSIZ;

	(void)family;
	for (size_t i = 0; i < len - any; i++)
		good = good && isgraph((unsigned char)value[i]) && !strchr("\"\\*+/;#$`", value[i]);
	if (!good || len == any)
		return err_cni(e, HW_CNI_INVALID_CONFIG,
			       "a condition has \"%.100s\", which is no name of an interface",
			       value);
	buf_printf(out, "%s%s %s\"%.*s%s\"", out->len ? " " : "", field, negated ? "!= " : "",
		   (int)(len - any), value, any ? "*" : "");
	return 0;
}

static const struct option {
	const char *name, *long_name, *field;
	int (*put)(const char *field, const char *value, bool negated, int family, struct buf *out,
		   struct hw_err *e);
} options[] = {
	{ "-s", "--source", "saddr", put_network },
	{ "-d", "--destination", "daddr", put_network },
	{ "-i", "--in-interface", "iifname", put_link },
	{ "-o", "--out-interface", "oifname", put_link },
};

static const struct option *find_option(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(options); i++)
		if (str_equal(name, options[i].name) || str_equal(name, options[i].long_name))
			return &options[i];
	return NULL;
}

/* One word, and the next; NULL when there is none */
static const char *next_word(const struct hw_strings *words, size_t *i)
{
	while (*i < words->n && str_empty(words->v[*i]))
		++*i;
	return *i < words->n ? words->v[(*i)++] : NULL;
}

/* "! -s VALUE", or "-s ! VALUE" as it was written long ago */
static int translate(const char *text, int family, struct buf *out, struct hw_err *e)
{
	AUTO(hw_strings_free) struct hw_strings words = { 0 };
	size_t i = 0;

	strings_split(text, ' ', &words);
	for (const char *word; (word = next_word(&words, &i));) {
		bool negated = str_equal(word, "!");
		const struct option *option = find_option(negated ? next_word(&words, &i) : word);
		const char *value = option ? next_word(&words, &i) : NULL;

		if (value && !negated && str_equal(value, "!")) {
			negated = true;
			value = next_word(&words, &i);
		}
		if (!value)
			return err_cni(
				e, HW_CNI_INVALID_CONFIG,
				"of iptables' conditions only -s, -d, -i and -o, each with a "
				"value, are understood; write \"%.200s\" in nft's syntax",
				text);
		int r = option->put(option->field, value, negated, family, out, e);
		if (r < 0)
			return r;
	}
	return 0;
}

/**
 * portmap_condition() - conditions as a part of a rule
 * @ret_text: to be freed; NULL when there are none
 */
int portmap_condition(const struct hw_strings *tokens, int family, char **ret_text,
		      struct hw_err *e)
{
	AUTO(buf_done) struct buf text = { 0 }, out = { 0 };

	*ret_text = NULL;
	join(tokens, &text);
	if (!text.len)
		return 0;
	if (!portmap_condition_is_iptables(tokens)) {
		int r = check_verbatim(text.data, e);
		if (r >= 0)
			*ret_text = buf_take(&text);
		return r;
	}
	int r = translate(text.data, family, &out, e);
	if (r >= 0)
		*ret_text = buf_take(&out);
	return r;
}
