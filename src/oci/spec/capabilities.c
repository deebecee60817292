/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci/spec/capabilities.c - capabilities of a container
 */
#include "oci/spec/capabilities.h"

#include <errno.h>
#include <linux/capability.h>
#include <strings.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/str.h"

#define BIT(cap) (UINT64_C(1) << (cap))

static const char *const names[] = {
	[CAP_CHOWN] = "CHOWN",
	[CAP_DAC_OVERRIDE] = "DAC_OVERRIDE",
	[CAP_DAC_READ_SEARCH] = "DAC_READ_SEARCH",
	[CAP_FOWNER] = "FOWNER",
	[CAP_FSETID] = "FSETID",
	[CAP_KILL] = "KILL",
	[CAP_SETGID] = "SETGID",
	[CAP_SETUID] = "SETUID",
	[CAP_SETPCAP] = "SETPCAP",
	[CAP_LINUX_IMMUTABLE] = "LINUX_IMMUTABLE",
	[CAP_NET_BIND_SERVICE] = "NET_BIND_SERVICE",
	[CAP_NET_BROADCAST] = "NET_BROADCAST",
	[CAP_NET_ADMIN] = "NET_ADMIN",
	[CAP_NET_RAW] = "NET_RAW",
	[CAP_IPC_LOCK] = "IPC_LOCK",
	[CAP_IPC_OWNER] = "IPC_OWNER",
	[CAP_SYS_MODULE] = "SYS_MODULE",
	[CAP_SYS_RAWIO] = "SYS_RAWIO",
	[CAP_SYS_CHROOT] = "SYS_CHROOT",
	[CAP_SYS_PTRACE] = "SYS_PTRACE",
	[CAP_SYS_PACCT] = "SYS_PACCT",
	[CAP_SYS_ADMIN] = "SYS_ADMIN",
	[CAP_SYS_BOOT] = "SYS_BOOT",
	[CAP_SYS_NICE] = "SYS_NICE",
	[CAP_SYS_RESOURCE] = "SYS_RESOURCE",
	[CAP_SYS_TIME] = "SYS_TIME",
	[CAP_SYS_TTY_CONFIG] = "SYS_TTY_CONFIG",
	[CAP_MKNOD] = "MKNOD",
	[CAP_LEASE] = "LEASE",
	[CAP_AUDIT_WRITE] = "AUDIT_WRITE",
	[CAP_AUDIT_CONTROL] = "AUDIT_CONTROL",
	[CAP_SETFCAP] = "SETFCAP",
	[CAP_MAC_OVERRIDE] = "MAC_OVERRIDE",
	[CAP_MAC_ADMIN] = "MAC_ADMIN",
	[CAP_SYSLOG] = "SYSLOG",
	[CAP_WAKE_ALARM] = "WAKE_ALARM",
	[CAP_BLOCK_SUSPEND] = "BLOCK_SUSPEND",
	[CAP_AUDIT_READ] = "AUDIT_READ",
	[CAP_PERFMON] = "PERFMON",
	[CAP_BPF] = "BPF",
	[CAP_CHECKPOINT_RESTORE] = "CHECKPOINT_RESTORE",
};

uint64_t spec_own_capabilities(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = { 0 };
	uint64_t own = 0;

	if (syscall(SYS_capget, &head, data) < 0)
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (data[CAP_TO_INDEX(i)].permitted & CAP_TO_MASK(i) &&
		    prctl(PR_CAPBSET_READ, i, 0, 0, 0) == 1)
			own |= BIT(i);
	return own;
}

static bool is_all(const char *name)
{
	return strcasecmp(name, "ALL") == 0;
}

static bool has_all(const struct hw_strings *list)
{
	for (size_t i = 0; list && i < list->n; i++)
		if (is_all(list->v[i]))
			return true;
	return false;
}

/* Ignores ALL. */
static int parse(const struct hw_strings *list, uint64_t *ret_set, struct hw_err *e)
{
	uint64_t set = 0;

	for (size_t i = 0; list && i < list->n; i++) {
		const char *name = list->v[i];
		size_t cap;

		if (is_all(name))
			continue;
		if (strncasecmp(name, "CAP_", 4) == 0)
			name += 4;
		for (cap = 0; cap < ARRAY_SIZE(names); cap++)
			if (strcasecmp(name, names[cap]) == 0)
				break;
		if (cap == ARRAY_SIZE(names))
			return err_text(e, -EINVAL, "unknown capability %.100s", list->v[i]);
		set |= BIT(cap);
	}
	*ret_set = set;
	return 0;
}

int spec_parse_capabilities(const struct hw_strings *list, uint64_t *ret_set, struct hw_err *e)
{
	if (has_all(list))
		return err_text(e, -EINVAL, "unknown capability ALL");
	return parse(list, ret_set, e);
}

/* An error for the first capability of @wanted that is not available. */
static int check_available(uint64_t wanted, uint64_t available, struct hw_err *e)
{
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (wanted & ~available & BIT(i))
			return err_text(e, -EPERM, "capability %s: not available to this process",
					names[i]);
	return 0;
}

static void add_names(struct hw_strings *list, uint64_t set)
{
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (set & BIT(i)) {
			autofree char *name = str_printf("CAP_%s", names[i]);

			strings_add(list, name);
		}
}

int spec_set_capabilities(struct oci_spec *s, const struct spec_capabilities *c, struct hw_err *e)
{
	struct oci_capabilities *caps = &s->process.capabilities;
	uint64_t set, add = 0, drop = 0, ambient = 0;
	int r;

	r = spec_parse_capabilities(c->defaults, &set, e);
	if (r == 0 && !c->privileged)
		r = parse(c->add, &add, e);
	if (r == 0 && !c->privileged)
		r = parse(c->drop, &drop, e);
	if (r == 0 && !c->privileged)
		r = spec_parse_capabilities(c->ambient, &ambient, e);
	if (r == 0)
		r = check_available((add | ambient) & ~drop, c->available, e);
	if (r < 0)
		return r;
	ambient &= ~drop;
	if (c->privileged || has_all(c->add))
		set = c->available;
	if (!c->privileged && has_all(c->drop))
		set = 0;
	set = ((set & c->available) | add | ambient) & ~drop;
	add_names(&caps->bounding, set);
	add_names(&caps->effective, set);
	add_names(&caps->permitted, set);
	add_names(&caps->inheritable, ambient);
	add_names(&caps->ambient, ambient);
	return 0;
}
