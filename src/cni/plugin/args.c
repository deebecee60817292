/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cni/plugin/args.c - CNI_ARGS: "KEY=VALUE;KEY=VALUE"
 *
 * Parsed as by upstream's plugins: each pair has exactly one '=', so a trailing
 * ';' is an error; keys are case-sensitive; IgnoreUnknown is always a known key.
 */
#include <errno.h>
#include <string.h>
#include <strings.h>

#include <hawser/plugin.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "cni/runtime/conf.h"

static int parse_bool(const char *pair, const char *text, bool *ret, struct hw_err *e)
{
	if (str_equal(text, "1") || !strcasecmp(text, "true"))
		*ret = true;
	else if (str_equal(text, "0") || !strcasecmp(text, "false"))
		*ret = false;
	else
		return err_text(e, -EINVAL,
				"ARGS: error parsing value of pair \"%s\": boolean unmarshal "
				"error: invalid input %s",
				pair, text);
	return 0;
}

struct args_parser {
	const char *const *keys;
	struct hw_strings values;
	bool ignore_unknown;
	struct buf unknown;
};

static void args_parser_done(struct args_parser *p)
{
	hw_strings_free(&p->values);
	buf_done(&p->unknown);
}
AUTO_VALUE_DEFINE(args_parser_done, struct args_parser);

static int parse_pair(struct args_parser *p, const char *pair, struct hw_err *e)
{
	const char *value = strchr(pair, '=');

	if (!value || strchr(value + 1, '='))
		return err_text(e, -EINVAL, "ARGS: invalid pair \"%s\"", pair);
	autofree char *key = str_ncopy(pair, value - pair);
	value++;
	if (str_equal(key, "IgnoreUnknown"))
		return parse_bool(pair, value, &p->ignore_unknown, e);
	for (size_t i = 0; p->keys[i]; i++) {
		if (!str_equal(p->keys[i], key))
			continue;
		free(p->values.v[i]);
		p->values.v[i] = str_copy(value);
		return 0;
	}
	buf_printf(&p->unknown, "%s\"%s\"", p->unknown.len ? " " : "", pair);
	return 0;
}

int hw_args_parse(const char *args, const char *const *keys, struct hw_strings *ret_values,
		  struct hw_err *e)
{
	AUTO(args_parser_done) struct args_parser p = { .keys = keys };
	AUTO(hw_strings_free) struct hw_strings pairs = { 0 };

	while (keys[p.values.n])
		p.values.n++;
	p.values.v = mem_new((p.values.n + 1) * sizeof(char *));
	if (!str_empty(args))
		strings_split(args, ';', &pairs);
	for (size_t i = 0; i < pairs.n; i++) {
		int r = parse_pair(&p, pairs.v[i], e);
		if (r < 0)
			return r;
	}
	if (p.unknown.len && !p.ignore_unknown)
		return err_text(e, -EINVAL, "ARGS: unknown args [%s]", p.unknown.data);
	*ret_values = p.values;
	p.values = (struct hw_strings){ 0 };
	return 0;
}
