/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/forward/legacy.c - would the FORWARD chain of iptables-legacy drop what pods send?
 *
 * What:  the older iptables of the kernel, beside nftables: some hosts still use
 *        it. We put no rules there, but tell what is missing.
 * How:   a table is a block of entries, each with matches and a target, read by
 *        getsockopt(). The last entry of a chain is its policy, or goes back.
 * Rules: asking for a table makes it; so only those are asked for that are there.
 *        Only what is certain is complained about: of all that may accept, only
 *        what accepts nothing but answers does not count. Nothing is certain where
 *        there is too much to look at.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/netfilter/nf_conntrack_common.h>
#include <linux/netfilter/xt_conntrack.h>
#include <linux/netfilter_ipv4/ip_tables.h>
#include <linux/netfilter_ipv6/ip6_tables.h>
#include <string.h>
#include <sys/socket.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/os/file.h"
#include "base/str.h"
#include "net/forward/forward.h"

#define NAMES_MAX   4096
#define DEPTH_MAX   16	   /* of jumps that are followed */
#define ENTRIES_MAX 200000 /* looked at, each as often as a jump leads there */
#define TRIES	    4	   /* against whoever changes the table between its size and its content */

static const struct legacy {
	const char *program;
	const char *names; /* of the tables that are there */
	int family, level, get_info, get_entries;
	size_t head;		      /* of an entry: addresses and links */
	size_t flags;		      /* one byte of it */
	size_t matches, target, next; /* where they, or their offsets, are in an entry */
} legacies[] = {
	{ "iptables-legacy", "/proc/net/ip_tables_names", AF_INET, IPPROTO_IP, IPT_SO_GET_INFO,
	  IPT_SO_GET_ENTRIES, sizeof(struct ipt_ip), offsetof(struct ipt_ip, flags),
	  offsetof(struct ipt_entry, elems), offsetof(struct ipt_entry, target_offset),
	  offsetof(struct ipt_entry, next_offset) },
	{ "ip6tables-legacy", "/proc/net/ip6_tables_names", AF_INET6, IPPROTO_IPV6,
	  IP6T_SO_GET_INFO, IP6T_SO_GET_ENTRIES, sizeof(struct ip6t_ip6),
	  offsetof(struct ip6t_ip6, flags), offsetof(struct ip6t_entry, elems),
	  offsetof(struct ip6t_entry, target_offset), offsetof(struct ip6t_entry, next_offset) },
};

/* Both families' structs are the same, but for the entries. */
_Static_assert(sizeof(struct ipt_getinfo) == sizeof(struct ip6t_getinfo), "same");
_Static_assert(offsetof(struct ipt_get_entries, entrytable) ==
		       offsetof(struct ip6t_get_entries, entrytable),
	       "same");

static bool has_filter(const struct legacy *legacy)
{
	AUTO(buf_done) struct buf names = { 0 };
	AUTO(hw_strings_free) struct hw_strings lines = { 0 };
	struct hw_err none;

	if (file_read(AT_FDCWD, legacy->names, NAMES_MAX, &names, &none) < 0)
		return false;
	strings_split(str_or(names.data, ""), '\n', &lines);
	return strings_has(&lines, "filter");
}

/* ---- entries --------------------------------------------------------------------------------- */

enum { ACCEPT = -NF_ACCEPT - 1, DROP = -NF_DROP - 1 }; /* as a verdict; XT_RETURN is another */

struct table {
	const struct legacy *legacy;
	const char *entries;
	size_t size;
	size_t policy;	 /* of FORWARD */
	unsigned looked; /* at so many entries so far */
};

static size_t offset(const char *entry, size_t at)
{
	uint16_t value;

	memcpy(&value, entry + at, sizeof(value));
	return value;
}

/* The kernel made it; but nothing is certain about what does not look so. */
static const char *entry_at(const struct table *table, size_t at)
{
	const struct legacy *legacy = table->legacy;
	const char *entry = table->entries + at;

	if (at > table->size || table->size - at < legacy->matches ||
	    offset(entry, legacy->next) > table->size - at ||
	    offset(entry, legacy->target) < legacy->matches ||
	    offset(entry, legacy->next) <
		    offset(entry, legacy->target) + sizeof(struct xt_entry_target))
		return NULL;
	return entry;
}

static bool is_plain(const struct legacy *legacy, const char *entry)
{
	static const char none[sizeof(struct ip6t_ip6)];

	return offset(entry, legacy->target) == legacy->matches &&
	       !memcmp(entry, none, legacy->head);
}

/* Is it for answers only? (States are the only thing that is then asked for.) */
static bool is_for_answers(const struct legacy *legacy, const char *entry)
{
	size_t end = offset(entry, legacy->target);
	struct xt_conntrack_mtinfo3 info;
	struct xt_entry_match match;

	for (size_t at = legacy->matches; end - at >= sizeof(match); at += match.u.match_size) {
		memcpy(&match, entry + at, sizeof(match));
		if (match.u.match_size < sizeof(match) || match.u.match_size > end - at)
			return false;
		if (!str_equal(match.u.user.name, "conntrack") || match.u.user.revision != 3 ||
		    match.u.match_size < XT_ALIGN(sizeof(match)) + sizeof(info))
			continue;
		memcpy(&info, entry + at + XT_ALIGN(sizeof(match)), sizeof(info));
		if (info.match_flags == XT_CONNTRACK_STATE && !info.invert_flags &&
		    !(info.state_mask & XT_CONNTRACK_STATE_BIT(IP_CT_NEW)))
			return true;
	}
	return false;
}

/* Targets that have a name, and let nothing pass */
static bool is_harmless(const char *name)
{
	static const char *const names[] = { "LOG", "NFLOG", "MARK", "CONNMARK", "REJECT" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (str_equal(name, names[i]))
			return true;
	return false;
}

/* ---- chains ------------------------------------------------------------------------------------ */

static bool may_pass(struct table *table, size_t at, unsigned depth);

/* Could the entry let a packet pass that it is about? */
static bool may_accept(struct table *table, size_t at, const char *entry, unsigned depth)
{
	const struct legacy *legacy = table->legacy;
	struct xt_standard_target target = { 0 };
	size_t room = offset(entry, legacy->next) - offset(entry, legacy->target);

	memcpy(&target, entry + offset(entry, legacy->target),
	       room < sizeof(target) ? room : sizeof(target));
	if (*target.target.u.user.name)
		return !is_harmless(target.target.u.user.name);
	if (target.verdict == XT_RETURN) /* of FORWARD itself: to its policy */
		return !depth && at != table->policy && may_pass(table, table->policy, depth);
	if (target.verdict < 0)
		return target.verdict != DROP;
	if ((size_t)target.verdict == at + offset(entry, legacy->next))
		return false; /* has no -j */
	return (entry[legacy->flags] & IPT_F_GOTO) ||
	       may_pass(table, (size_t)target.verdict, depth + 1);
}

/* Is it the last that a packet comes to? */
static bool is_last(const struct table *table, const char *entry)
{
	const struct legacy *legacy = table->legacy;
	struct xt_standard_target target = { 0 };

	if (!is_plain(legacy, entry) ||
	    offset(entry, legacy->next) < offset(entry, legacy->target) + sizeof(target))
		return false;
	memcpy(&target, entry + offset(entry, legacy->target), sizeof(target));
	return str_equal(target.target.u.user.name, "REJECT") ||
	       (!*target.target.u.user.name && target.verdict < 0);
}

/* Could a pod's packet pass, by a rule of the chain or by one behind a jump? */
static bool may_pass(struct table *table, size_t at, unsigned depth)
{
	const char *entry = entry_at(table, at);

	for (; entry && depth < DEPTH_MAX; entry = entry_at(table, at)) {
		if (table->looked++ >= ENTRIES_MAX)
			return true;
		if (!is_for_answers(table->legacy, entry) && may_accept(table, at, entry, depth))
			return true;
		if (is_last(table, entry))
			return false;
		at += offset(entry, table->legacy->next);
	}
	return true;
}

/* ---- tables ------------------------------------------------------------------------------------ */

/* Return: 1 when it drops */
static int look(const struct legacy *legacy, int fd)
{
	struct ipt_getinfo info = { .name = "filter" };
	autofree struct ipt_get_entries *entries = NULL;
	socklen_t len = sizeof(info);

	if (getsockopt(fd, legacy->level, legacy->get_info, &info, &len) < 0)
		return -errno;
	len = (socklen_t)(sizeof(*entries) + info.size);
	entries = mem_new(len);
	memcpy(entries->name, info.name, sizeof(entries->name));
	entries->size = info.size;
	if (getsockopt(fd, legacy->level, legacy->get_entries, entries, &len) < 0)
		return -errno;
	struct table table = { legacy, (const char *)entries->entrytable, info.size,
			       info.underflow[NF_INET_FORWARD], 0 };
	return !may_pass(&table, info.hook_entry[NF_INET_FORWARD], 0);
}

/**
 * forward_check_legacy() - does iptables-legacy let what has the mark pass?
 *
 * Return: 0; -EPERM with the way out; another negative errno
 */
int forward_check_legacy(uint32_t mark, bool six, struct hw_err *e)
{
	for (size_t i = 0; i < ARRAY_SIZE(legacies); i++) {
		autoclose int fd = -1;
		int r = -EAGAIN;

		if ((legacies[i].family == AF_INET6 && !six) || !has_filter(&legacies[i]))
			continue;
		fd = socket(legacies[i].family, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_RAW);
		if (fd < 0)
			return err_set(e, -errno, "ask %s", legacies[i].program);
		for (int tries = 0; r == -EAGAIN && tries < TRIES; tries++)
			r = look(&legacies[i], fd);
		if (r < 0)
			return err_set(e, r, "read table filter of %s", legacies[i].program);
		if (r > 0)
			return err_text(e, -EPERM,
					"%s drops what pods send; to let it pass: %s -I FORWARD -m "
					"mark --mark 0x%x/0x%x -j ACCEPT",
					legacies[i].program, legacies[i].program, mark, mark);
	}
	return 0;
}
