/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/tuning/conf.c - collects the sysctls and attributes to change from all sources
 *
 * How:   the MAC address is taken from args.cni, runtimeConfig, CNI_ARGS or the
 *        configuration; the first one of these that has a MAC address is used. All
 *        other keys of args.cni override those of the configuration; sysctls are
 *        overridden one by one.
 *        In the key of a sysctl, dots are replaced by slashes before IFNAME is
 *        replaced by the interface's name: a dot in that name is kept.
 * Rules: only sysctls under net/ can be changed. If the administrator's allowlist
 *        exists, a sysctl must also match one of its lines, which are regular
 *        expressions (POSIX extended; \d is also supported, as in upstream).
 */
#include "plugins/tuning/tuning.h"

#include <errno.h>
#include <fcntl.h>
#include <regex.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json/value.h"
#include "base/os/file.h"
#include "base/str.h"

#define ALLOWLIST     "/etc/cni/tuning/allowlist.conf"
#define ALLOWLIST_MAX (1 << 20)

#define KEY_FIELDS(type, member)                                                                   \
	{ "sysctl", HW_MAP, HW_AT(type, member.sysctl),                                            \
	  .help = "values by name, in the pod's namespace; IFNAME stands for the name of the "     \
		  "interface" },                                                                   \
		{ "mac", HW_STRING, HW_AT(type, member.mac), .help = "MAC address" },              \
		{ "promisc", HW_BOOL, HW_AT(type, member.promisc),                                 \
		  .has = HW_HAS(type, member.has_promisc), .help = "promiscuous mode" },           \
		{ "mtu",                                                                           \
		  HW_INT,                                                                          \
		  HW_AT(type, member.mtu),                                                         \
		  .has = HW_HAS(type, member.has_mtu),                                             \
		  .max = INT32_MAX,                                                                \
		  .help = "MTU; 0: unchanged" },                                                   \
		{ "allmulti", HW_BOOL, HW_AT(type, member.allmulti),                               \
		  .has = HW_HAS(type, member.has_allmulti), .help = "all-multicast mode" },        \
	{                                                                                          \
		"txQLen", HW_INT, HW_AT(type, member.txqlen),                                      \
			.has = HW_HAS(type, member.has_txqlen), .max = INT32_MAX,                  \
			.help = "length of the transmit queue"                                     \
	}

/* KEY_FIELDS takes the name of a member, so the keys need a struct around them. */
struct tuning_keys_object {
	struct tuning_keys keys;
};

static const struct hw_field tuning_args_cni_fields[] = {
	KEY_FIELDS(struct tuning_keys_object, keys),
	{ 0 },
};

static const struct hw_field tuning_args_fields[] = {
	{ "cni", HW_OBJECT, HW_AT(struct tuning_args, cni), .sub = tuning_args_cni_fields,
	  .help = "attributes for this pod, with the same keys as above; they override the "
		  "configuration" },
	{ 0 },
};

static const struct hw_field tuning_runtime_fields[] = {
	{ "mac", HW_STRING, HW_AT(struct tuning_runtime, mac),
	  .help = "MAC address (capability mac)" },
	{ 0 },
};

const struct hw_field tuning_fields[] = {
	KEY_FIELDS(struct tuning_conf, keys),
	{ "dataDir", HW_STRING, HW_AT(struct tuning_conf, data_dir), .def = "\"/run/cni/tuning\"",
	  .help = "directory where the former values are saved" },
	{ "args", HW_OBJECT, HW_AT(struct tuning_conf, args), .sub = tuning_args_fields },
	{ "runtimeConfig", HW_OBJECT, HW_AT(struct tuning_conf, runtime),
	  .sub = tuning_runtime_fields },
	{ 0 },
};

/* ---- sysctls ---------------------------------------------------------------------------- */

/* Converts "net.ipv4.conf.IFNAME.x" to "net/ipv4/conf/eth0/x". Empty parts are removed. */
static int format_sysctl_path(const char *key, const char *ifname, char **ret_path,
			      struct hw_err *e)
{
	AUTO(buf_done) struct buf named = { 0 }, path = { 0 };
	AUTO(hw_strings_free) struct hw_strings parts = { 0 };
	autofree char *slashes = str_copy(key);
	char *at;

	for (char *c = slashes; *c; c++)
		*c = *c == '.' ? '/' : *c;
	at = strstr(slashes, "IFNAME");
	buf_add(&named, slashes, at ? (size_t)(at - slashes) : strlen(slashes));
	if (at)
		buf_printf(&named, "%s%s", ifname, at + strlen("IFNAME"));
	strings_split(str_or(named.data, ""), '/', &parts);
	for (size_t i = 0; i < parts.n; i++)
		if (!str_empty(parts.v[i]))
			buf_printf(&path, "%s%s", path.len ? "/" : "", parts.v[i]);
	if (!str_starts(str_or(path.data, ""), "net/"))
		return err_text(e, -EINVAL, "invalid net sysctl key: \"%s\"",
				str_or(named.data, ""));
	*ret_path = buf_take(&path);
	return 0;
}

static struct tuning_sysctl *find_sysctl(struct tuning *t, const char *key)
{
	for (size_t i = 0; i < t->n_sysctls; i++)
		if (str_equal(t->sysctls[i].key, key))
			return &t->sysctls[i];
	return NULL;
}

static int add_sysctls(struct tuning *t, const struct hw_map *map, const char *ifname,
		       struct hw_err *e)
{
	int r = 0;

	for (size_t i = 0; r >= 0 && i < map->n; i++) {
		struct tuning_sysctl *s = find_sysctl(t, map->keys[i]);

		if (s) {
			s->value = map->values[i];
			continue;
		}
		t->sysctls = mem_resize(t->sysctls, t->n_sysctls + 1, sizeof(*s));
		s = &t->sysctls[t->n_sysctls++];
		*s = (struct tuning_sysctl){ .key = map->keys[i], .value = map->values[i] };
		r = format_sysctl_path(s->key, ifname, &s->path, e);
	}
	return r;
}

/* @at: the opening quote. Return: the first character after the closing quote */
static const char *skip_string(const char *at, char **ret_text)
{
	const char *begin = ++at;

	while (*at && *at != '"')
		at += at[0] == '\\' && at[1] ? 2 : 1;
	*ret_text = str_ncopy(begin, (size_t)(at - begin));
	return *at ? at + 1 : at;
}

/* Refuses duplicate sysctl keys. The decoded configuration does not show duplicates, so this
 * function scans the text. The text is already known to be valid JSON, so it is enough to parse
 * strings and the nesting depth. */
static int refuse_duplicates(const char *at, struct hw_err *e)
{
	AUTO(hw_strings_free) struct hw_strings seen = { 0 };
	bool inside = false;
	int depth = 0;

	while (*at) {
		autofree char *text = NULL;

		depth += *at == '{' || *at == '[';
		depth -= *at == '}' || *at == ']';
		if (*at != '"') {
			at++;
			continue;
		}
		at = skip_string(at, &text);
		if (at[strspn(at, " \t\r\n")] != ':')
			continue;
		if (depth == 1)
			inside = value_keys_match(text, "sysctl");
		else if (depth == 2 && inside && strings_has(&seen, text))
			return err_text(e, -EINVAL,
					"failed to load netconf: duplicated sysctl keys are not "
					"allowed: \"%s\"",
					text);
		else if (depth == 2 && inside)
			strings_add(&seen, text);
	}
	return 0;
}

/* ---- all sources ------------------------------------------------------------------------- */

static void apply_keys(struct tuning *t, const struct tuning_keys *keys)
{
	if (keys->has_promisc)
		t->promisc = keys->promisc;
	if (keys->has_mtu)
		t->mtu = keys->mtu;
	if (keys->has_allmulti)
		t->allmulti = keys->allmulti;
	if (keys->has_txqlen)
		t->txqlen = keys->txqlen;
	t->has_allmulti |= keys->has_allmulti;
	t->has_txqlen |= keys->has_txqlen;
}

static int choose_mac(struct tuning *t, const struct tuning_conf *conf, const char *args,
		      struct hw_err *e)
{
	int r;

	static const char *const keys[] = { "MAC", NULL };
	AUTO(hw_strings_free) struct hw_strings values = { 0 };

	r = hw_args_parse(args, keys, &values, e);
	if (r < 0)
		return r;
	const char *sources[] = { conf->args.cni.mac, conf->runtime.mac, values.v[0],
				  conf->keys.mac };
	for (size_t i = 0; i < ARRAY_SIZE(sources) && !t->mac_text; i++)
		if (!str_empty(sources[i]))
			t->mac_text = str_copy(sources[i]);
	if (t->mac_text && hw_mac_parse(t->mac_text, &t->mac, e) < 0)
		return err_ctx(e, "invalid args %s for MAC addr", t->mac_text);
	return 0;
}

int tuning_init(struct tuning *t, const struct hw_call *call, struct hw_err *e)
{
	const struct tuning_conf *conf = call->conf;
	int r;

	*t = (struct tuning){ 0 };
	r = refuse_duplicates(call->input, e);
	if (r >= 0)
		r = choose_mac(t, conf, call->args, e);
	if (r >= 0)
		r = add_sysctls(t, &conf->keys.sysctl, call->ifname, e);
	if (r >= 0)
		r = add_sysctls(t, &conf->args.cni.sysctl, call->ifname, e);
	apply_keys(t, &conf->keys);
	apply_keys(t, &conf->args.cni);
	return r;
}

void tuning_done(struct tuning *t)
{
	for (size_t i = 0; i < t->n_sysctls; i++)
		free(t->sysctls[i].path);
	free(t->sysctls);
	free(t->mac_text);
	*t = (struct tuning){ 0 };
}

bool tuning_has_attributes(const struct tuning *t)
{
	return t->mac.len || t->promisc || t->mtu || t->has_allmulti || t->has_txqlen;
}

/* ---- the administrator's allowlist --------------------------------------------------------- */

/* Return: 1 if there is an allowlist, 0 if not */
static int read_allowlist(struct hw_strings *ret_patterns, struct hw_err *e)
{
	AUTO(hw_strings_free) struct hw_strings lines = { 0 };
	AUTO(buf_done) struct buf text = { 0 };
	int r;

	r = file_read_if_exists(AT_FDCWD, ALLOWLIST, ALLOWLIST_MAX, &text, e);
	if (r <= 0)
		return r;
	strings_split(str_or(text.data, ""), '\n', &lines);
	for (size_t i = 0; i < lines.n; i++) {
		char *line = lines.v[i] + strspn(lines.v[i], " \t\r");

		for (size_t n = strlen(line); n > 0 && strchr(" \t\r", line[n - 1]); n--)
			line[n - 1] = '\0';
		if (*line)
			strings_add(ret_patterns, line);
	}
	return 1;
}

/* Return: 1 if the key matches, 0 if not */
static int match_pattern(const char *pattern, const char *key, struct hw_err *e)
{
	AUTO(buf_done) struct buf posix = { 0 };
	regex_t re;

	for (const char *c = pattern; *c; c++) {
		if (c[0] == '\\' && c[1] == 'd') {
			buf_puts(&posix, "[0-9]");
			c++;
		} else {
			buf_putc(&posix, *c);
			if (c[0] == '\\' && c[1])
				buf_putc(&posix, *++c);
		}
	}
	if (regcomp(&re, str_or(posix.data, ""), REG_EXTENDED | REG_NOSUB) != 0)
		return err_text(e, -EINVAL, "%s: invalid regular expression: %.200s", ALLOWLIST,
				pattern);
	int r = regexec(&re, key, 0, NULL, 0) == 0;
	regfree(&re);
	return r;
}

int tuning_check_allowed(const struct tuning *t, struct hw_err *e)
{
	AUTO(hw_strings_free) struct hw_strings patterns = { 0 };
	int r;

	r = t->n_sysctls ? read_allowlist(&patterns, e) : 0;
	if (r <= 0)
		return r;
	for (size_t i = 0; i < t->n_sysctls; i++) {
		AUTO(buf_done) struct buf list = { 0 };

		r = 0;
		for (size_t j = 0; r == 0 && j < patterns.n; j++)
			r = match_pattern(patterns.v[j], t->sysctls[i].key, e);
		if (r < 0)
			return r;
		if (r > 0)
			continue;
		for (size_t j = 0; j < patterns.n; j++)
			buf_printf(&list, "%s%s", j ? " " : "", patterns.v[j]);
		return err_text(e, -EPERM,
				"Sysctl %s is not allowed. Only the following sysctls are "
				"allowed: [%s]",
				t->sysctls[i].key, str_or(list.data, ""));
	}
	return 0;
}
