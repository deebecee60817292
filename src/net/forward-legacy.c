/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/forward-legacy.c - would the FORWARD chain of iptables-legacy drop what pods send?
 *
 * What:  the older iptables of the kernel, beside nftables: some hosts still use
 *        it. We put no rules there, but tell what is missing.
 * How:   a table is a block of entries, each with matches and a target, read by
 *        getsockopt(). The last entry of a chain is its policy.
 * Rules: asking for a table makes it; so only those are asked for that are there.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/netfilter/xt_mark.h>
#include <linux/netfilter_ipv4/ip_tables.h>
#include <linux/netfilter_ipv6/ip6_tables.h>
#include <string.h>
#include <sys/socket.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "net/forward.h"

#define NAMES_MAX 4096
#define TRIES	  4 /* against whoever changes the table between its size and its content */

static const struct legacy {
	const char *program;
	const char *names; /* of the tables that are there */
	int family, level, get_info, get_entries;
	size_t matches, target, next; /* where they, or their offsets, are in an entry */
} legacies[] = {
	{ "iptables-legacy", "/proc/net/ip_tables_names", AF_INET, IPPROTO_IP, IPT_SO_GET_INFO,
	  IPT_SO_GET_ENTRIES, offsetof(struct ipt_entry, elems),
	  offsetof(struct ipt_entry, target_offset), offsetof(struct ipt_entry, next_offset) },
	{ "ip6tables-legacy", "/proc/net/ip6_tables_names", AF_INET6, IPPROTO_IPV6,
	  IP6T_SO_GET_INFO, IP6T_SO_GET_ENTRIES, offsetof(struct ip6t_entry, elems),
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

static size_t offset(const char *entry, size_t at)
{
	uint16_t value;

	memcpy(&value, entry + at, sizeof(value));
	return value;
}

/* -NF_ACCEPT - 1 and the like; 0: it is something else that happens */
static int verdict(const struct legacy *legacy, const char *entry)
{
	struct xt_standard_target target;

	if (offset(entry, legacy->next) < offset(entry, legacy->target) + sizeof(target))
		return 0;
	memcpy(&target, entry + offset(entry, legacy->target), sizeof(target));
	return *target.target.u.user.name ? 0 : target.verdict;
}

/* Are its matches just that of the mark? (That of addresses and links comes before them, and
 * whoever adds some to our line wants less than all.) */
static bool accepts_mark(const struct legacy *legacy, const char *entry, uint32_t mark)
{
	size_t len = offset(entry, legacy->target) - legacy->matches;
	struct xt_mark_mtinfo1 info;
	struct xt_entry_match match;

	if (len != XT_ALIGN(sizeof(match)) + XT_ALIGN(sizeof(info)))
		return false;
	memcpy(&match, entry + legacy->matches, sizeof(match));
	memcpy(&info, entry + legacy->matches + XT_ALIGN(sizeof(match)), sizeof(info));
	return str_equal(match.u.user.name, "mark") && info.mark == mark && info.mask == mark &&
	       !info.invert && verdict(legacy, entry) == -NF_ACCEPT - 1;
}

static bool drops(const struct legacy *legacy, const struct ipt_getinfo *info, const char *table,
		  uint32_t mark)
{
	size_t at = info->hook_entry[NF_INET_FORWARD], policy = info->underflow[NF_INET_FORWARD];

	for (; at < policy && policy < info->size; at += offset(table + at, legacy->next))
		if (accepts_mark(legacy, table + at, mark) || !offset(table + at, legacy->next))
			return false;
	return at == policy && verdict(legacy, table + at) == -NF_DROP - 1;
}

/* ---- tables ------------------------------------------------------------------------------------ */

/* Return: 1 when it drops */
static int look(const struct legacy *legacy, int fd, uint32_t mark)
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
	return drops(legacy, &info, (const char *)entries->entrytable, mark);
}

/**
 * forward_check_legacy() - does iptables-legacy let what has the mark pass?
 *
 * Return: 0; -EPERM with the way out; another negative errno
 */
int forward_check_legacy(uint32_t mark, struct hw_err *e)
{
	for (size_t i = 0; i < ARRAY_SIZE(legacies); i++) {
		autoclose int fd = -1;
		int r = -EAGAIN;

		if (!has_filter(&legacies[i]))
			continue;
		fd = socket(legacies[i].family, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_RAW);
		if (fd < 0)
			return err_set(e, -errno, "ask %s", legacies[i].program);
		for (int tries = 0; r == -EAGAIN && tries < TRIES; tries++)
			r = look(&legacies[i], fd, mark);
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
