/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cni/plugin/args.c - CNI_ARGS: "KEY=VALUE;KEY=VALUE"
 *
 * Parsed as in upstream's plugins: each pair has exactly one '=', so a trailing
 * ';' is an error. Keys are case-sensitive. IgnoreUnknown is always a known key.
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

int hw_args_parse(const char *args, const char *const *keys, struct hw_strings *ret_values,
		  struct hw_err *e)
{
	AUTO(hw_strings_free) struct hw_strings values = { 0 }, pairs = { 0 };
	AUTO(buf_done) struct buf unknown = { 0 };
	bool ignore_unknown = false;
	int r;

	while (keys[values.n])
		values.n++;
	values.v = mem_new((values.n + 1) * sizeof(char *));
	if (!str_empty(args))
		strings_split(args, ';', &pairs);
	for (size_t i = 0; i < pairs.n; i++) {
		const char *pair = pairs.v[i], *value = strchr(pair, '=');
		autofree char *key = NULL;
		size_t k = 0;

		if (!value || strchr(value + 1, '='))
			return err_text(e, -EINVAL, "ARGS: invalid pair \"%s\"", pair);
		key = str_ncopy(pair, value - pair);
		value++;
		while (keys[k] && !str_equal(keys[k], key))
			k++;
		if (str_equal(key, "IgnoreUnknown")) {
			r = parse_bool(pair, value, &ignore_unknown, e);
			if (r < 0)
				return r;
		} else if (keys[k]) {
			free(values.v[k]);
			values.v[k] = str_copy(value);
		} else {
			buf_printf(&unknown, "%s\"%s\"", unknown.len ? " " : "", pair);
		}
	}
	if (unknown.len && !ignore_unknown)
		return err_text(e, -EINVAL, "ARGS: unknown args [%s]", unknown.data);
	*ret_values = values;
	values = (struct hw_strings){ 0 };
	return 0;
}
