/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/forward/legacy.c - check whether iptables-legacy drops pod traffic
 *
 * What:  reads the FORWARD chain of iptables-legacy, the older packet filter of the
 *        kernel, which some hosts use in addition to nftables. hawser adds no rules to
 *        it, but reports the rule that the administrator should add.
 * How:   getsockopt() returns a table as a block of entries, each with matches and a
 *        target. The last entry of a built-in chain is its policy; the last entry of
 *        any other chain returns to the calling chain.
 * Rules: reading a table creates it, so only existing tables are read.
 *        A drop is reported only if it is certain: if any entry may accept packets of
 *        pods, nothing is reported. Entries that accept only replies are ignored. If
 *        there are too many entries to check, nothing is reported.
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
#define DEPTH_MAX   16	   /* nested jumps */
#define ENTRIES_MAX 200000 /* entries to check; an entry is counted again for each jump to it */
#define TRIES	    4	   /* the table may change between reading its size and its content */

static const struct legacy_family {
	const char *program;
	const char *names; /* file with the names of the existing tables */
	int family, level, get_info, get_entries;
	size_t head;	     /* size of the first part of an entry: addresses and interfaces */
	size_t flags;	     /* offset of the flags (one byte) in that part */
	size_t matches;	     /* offset of the matches in an entry */
	size_t target, next; /* where an entry stores the offsets of its target and its end */
} legacy_families[] = {
	{ "iptables-legacy", "/proc/net/ip_tables_names", AF_INET, IPPROTO_IP, IPT_SO_GET_INFO,
	  IPT_SO_GET_ENTRIES, sizeof(struct ipt_ip), offsetof(struct ipt_ip, flags),
	  offsetof(struct ipt_entry, elems), offsetof(struct ipt_entry, target_offset),
	  offsetof(struct ipt_entry, next_offset) },
	{ "ip6tables-legacy", "/proc/net/ip6_tables_names", AF_INET6, IPPROTO_IPV6,
	  IP6T_SO_GET_INFO, IP6T_SO_GET_ENTRIES, sizeof(struct ip6t_ip6),
	  offsetof(struct ip6t_ip6, flags), offsetof(struct ip6t_entry, elems),
	  offsetof(struct ip6t_entry, target_offset), offsetof(struct ip6t_entry, next_offset) },
};

/* The structs of IPv4 and IPv6 are the same, except for the entries. */
_Static_assert(sizeof(struct ipt_getinfo) == sizeof(struct ip6t_getinfo),
	       "the structs of IPv4 and IPv6 differ");
_Static_assert(offsetof(struct ipt_get_entries, entrytable) ==
		       offsetof(struct ip6t_get_entries, entrytable),
	       "the structs of IPv4 and IPv6 differ");

static bool has_filter_table(const struct legacy_family *legacy)
{
	AUTO(buf_done) struct buf names = { 0 };
	AUTO(hw_strings_free) struct hw_strings lines = { 0 };
	struct hw_err ignored;

	if (file_read(AT_FDCWD, legacy->names, NAMES_MAX, &names, &ignored) < 0)
		return false;
	strings_split(str_or(names.data, ""), '\n', &lines);
	return strings_has(&lines, "filter");
}

/* ---- entries ----------------------------------------------------------------------------- */

enum { ACCEPT = -NF_ACCEPT - 1, DROP = -NF_DROP - 1 }; /* verdicts, in addition to XT_RETURN */

struct legacy_table {
	const struct legacy_family *legacy;
	const char *entries;
	size_t size;
	size_t policy;	  /* offset of the policy of FORWARD */
	unsigned checked; /* number of entries checked so far */
};

static size_t read_offset(const char *entry, size_t at)
{
	uint16_t value;

	memcpy(&value, entry + at, sizeof(value));
	return value;
}

/* Return: NULL if the entry is malformed; the caller then assumes that packets may pass */
static const char *get_entry(const struct legacy_table *table, size_t at)
{
	const struct legacy_family *legacy = table->legacy;
	const char *entry = table->entries + at;

	if (at > table->size || table->size - at < legacy->matches ||
	    read_offset(entry, legacy->next) > table->size - at ||
	    read_offset(entry, legacy->target) < legacy->matches ||
	    read_offset(entry, legacy->next) <
		    read_offset(entry, legacy->target) + sizeof(struct xt_entry_target))
		return NULL;
	return entry;
}

/* Does the entry match replies only? (A conntrack match on states without NEW) */
static bool is_for_replies(const struct legacy_family *legacy, const char *entry)
{
	size_t end = read_offset(entry, legacy->target);
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

/* Is this a named target that never accepts a packet? */
static bool never_accepts(const char *name)
{
	static const char *const names[] = { "LOG", "NFLOG", "MARK", "CONNMARK", "REJECT" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (str_equal(name, names[i]))
			return true;
	return false;
}

/* ---- chains ------------------------------------------------------------------------------ */

static bool may_pass(struct legacy_table *table, size_t at, unsigned depth);

/* May the entry accept a packet that matches it? */
static bool may_accept(struct legacy_table *table, size_t at, const char *entry, unsigned depth)
{
	const struct legacy_family *legacy = table->legacy;
	struct xt_standard_target target = { 0 };
	size_t room = read_offset(entry, legacy->next) - read_offset(entry, legacy->target);

	memcpy(&target, entry + read_offset(entry, legacy->target),
	       room < sizeof(target) ? room : sizeof(target));
	if (*target.target.u.user.name)
		return !never_accepts(target.target.u.user.name);
	if (target.verdict == XT_RETURN) /* a return from FORWARD itself leads to the policy */
		return !depth && at != table->policy && may_pass(table, table->policy, depth);
	if (target.verdict < 0)
		return target.verdict != DROP;
	if ((size_t)target.verdict == at + read_offset(entry, legacy->next))
		return false; /* the entry has no target: evaluation continues after it */
	return (entry[legacy->flags] & IPT_F_GOTO) ||
	       may_pass(table, (size_t)target.verdict, depth + 1);
}

/* Does the entry match every packet and end the evaluation of the chain? */
static bool is_final(const struct legacy_table *table, const char *entry)
{
	static const char no_conditions[sizeof(struct ip6t_ip6)];
	const struct legacy_family *legacy = table->legacy;
	size_t at = read_offset(entry, legacy->target);
	struct xt_standard_target target = { 0 };

	if (at != legacy->matches || memcmp(entry, no_conditions, legacy->head) != 0 ||
	    read_offset(entry, legacy->next) < at + sizeof(target))
		return false;
	memcpy(&target, entry + at, sizeof(target));
	return str_equal(target.target.u.user.name, "REJECT") ||
	       (!*target.target.u.user.name && target.verdict < 0);
}

/* May an entry of this chain, or of a chain to which it jumps, accept a packet of a pod? */
static bool may_pass(struct legacy_table *table, size_t at, unsigned depth)
{
	const char *entry = get_entry(table, at);

	for (; entry && depth < DEPTH_MAX; entry = get_entry(table, at)) {
		if (table->checked++ >= ENTRIES_MAX)
			return true;
		if (!is_for_replies(table->legacy, entry) && may_accept(table, at, entry, depth))
			return true;
		if (is_final(table, entry))
			return false;
		at += read_offset(entry, table->legacy->next);
	}
	return true;
}

/* ---- tables ------------------------------------------------------------------------------ */

/* Return: 1 if FORWARD certainly drops packets of pods, 0 if not, or a negative errno */
static int is_dropping(const struct legacy_family *legacy, int fd)
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
	struct legacy_table table = { legacy, (const char *)entries->entrytable, info.size,
				      info.underflow[NF_INET_FORWARD], 0 };
	return !may_pass(&table, info.hook_entry[NF_INET_FORWARD], 0);
}

int forward_check_legacy(uint32_t mark, bool six, struct hw_err *e)
{
	for (size_t i = 0; i < ARRAY_SIZE(legacy_families); i++) {
		autoclose int fd = -1;
		int r = -EAGAIN;

		if ((legacy_families[i].family == AF_INET6 && !six) ||
		    !has_filter_table(&legacy_families[i]))
			continue;
		fd = socket(legacy_families[i].family, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_RAW);
		if (fd < 0)
			return err_set(e, -errno, "open socket for %s", legacy_families[i].program);
		for (int tries = 0; r == -EAGAIN && tries < TRIES; tries++)
			r = is_dropping(&legacy_families[i], fd);
		if (r < 0)
			return err_set(e, r, "read the filter table of %s",
				       legacy_families[i].program);
		if (r > 0)
			return err_text(e, -EPERM,
					"%s drops pod traffic; to accept it: %s -I FORWARD -m "
					"mark --mark 0x%x/0x%x -j ACCEPT",
					legacy_families[i].program, legacy_families[i].program,
					mark, mark);
	}
	return 0;
}
