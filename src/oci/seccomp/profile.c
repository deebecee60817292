/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci/seccomp/profile.c - seccomp profiles: which system calls a container may make
 *
 * How:   one field table for both forms. Members that only Docker's form has are empty once their
 *        conditions are decided, and then they are not encoded.
 */
#include "oci/seccomp/profile.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"

#define ERRNO_MAX 4095

#define ARGUMENT(member) HW_AT(struct profile_argument, member)
static const struct hw_field argument_fields[] = {
	{ "index", HW_UINT32, ARGUMENT(index), .max = 5, .flags = HW_ALWAYS },
	{ "value", HW_INT64, ARGUMENT(value), .max = -1, .flags = HW_ALWAYS },
	{ "valueTwo", HW_INT64, ARGUMENT(value_two), .max = -1 },
	{ "op", HW_STRING, ARGUMENT(op), .flags = HW_REQUIRED },
	{ 0 },
};

#define CONDITION(member) HW_AT(struct profile_condition, member)
static const struct hw_field condition_fields[] = {
	{ "caps", HW_STRINGS, CONDITION(capabilities) },
	{ "arches", HW_STRINGS, CONDITION(architectures) },
	{ "minKernel", HW_STRING, CONDITION(min_kernel) },
	{ 0 },
};

#define RULE(member) HW_AT(struct profile_rule, member)
static const struct hw_field rule_fields[] = {
	{ "name", HW_STRING, RULE(name) },
	{ "names", HW_STRINGS, RULE(names) },
	{ "action", HW_STRING, RULE(action), .flags = HW_REQUIRED },
	{ "errnoRet", HW_UINT32, RULE(error), .max = ERRNO_MAX,
	  .has = HW_HAS(struct profile_rule, has_errno) },
	{ "args", HW_LIST, RULE(arguments), .sub = argument_fields,
	  .size = sizeof(struct profile_argument) },
	{ "includes", HW_OBJECT, RULE(includes), .sub = condition_fields },
	{ "excludes", HW_OBJECT, RULE(excludes), .sub = condition_fields },
	{ 0 },
};

static const struct hw_field arch_fields[] = {
	{ "architecture", HW_STRING, HW_AT(struct profile_arch, name), .flags = HW_REQUIRED },
	{ "subArchitectures", HW_STRINGS, HW_AT(struct profile_arch, subs) },
	{ 0 },
};

#define PROFILE(member) HW_AT(struct profile, member)
static const struct hw_field profile_fields[] = {
	{ "defaultAction", HW_STRING, PROFILE(default_action), .flags = HW_REQUIRED },
	{ "defaultErrnoRet", HW_UINT32, PROFILE(default_errno), .max = ERRNO_MAX,
	  .has = HW_HAS(struct profile, has_default_errno) },
	{ "architectures", HW_STRINGS, PROFILE(architectures) },
	{ "archMap", HW_LIST, PROFILE(arch_map), .sub = arch_fields,
	  .size = sizeof(struct profile_arch) },
	{ "flags", HW_STRINGS, PROFILE(flags) },
	{ "listenerPath", HW_STRING, PROFILE(listener_path) },
	{ "syscalls", HW_LIST, PROFILE(rules), .sub = rule_fields,
	  .size = sizeof(struct profile_rule) },
	{ 0 },
};

/* ---- machines ---------------------------------------------------------------------------------- */

static const struct profile_machine machines[] = {
	{ "amd64", { "SCMP_ARCH_X86_64", "SCMP_ARCH_X86", "SCMP_ARCH_X32" } },
	{ "arm64", { "SCMP_ARCH_AARCH64", "SCMP_ARCH_ARM" } },
};

#if defined(__x86_64__)
#define THIS_MACHINE "amd64"
#elif defined(__aarch64__)
#define THIS_MACHINE "arm64"
#endif

const struct profile_machine *profile_machine(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(machines); i++)
		if (str_equal(machines[i].name, str_or(name, THIS_MACHINE)))
			return &machines[i];
	return NULL;
}

/* ---- decode and encode ------------------------------------------------------------------------- */

static int check_rule(const struct profile_rule *rule, size_t i, struct hw_err *e)
{
	if (!str_empty(rule->name) && rule->names.n)
		return err_text(e, -EINVAL, "syscalls[%zu]: name and names exclude each other", i);
	if (str_empty(rule->name) && !rule->names.n)
		return err_text(e, -EINVAL, "syscalls[%zu].names is missing", i);
	return 0;
}

int profile_decode(const char *text, size_t len, struct profile *ret, struct hw_err *e)
{
	AUTO(profile_done) struct profile p = { 0 };
	const struct profile_rule *rules;
	int r;

	if (len > PROFILE_MAX)
		return err_text(e, -EFBIG, "more than %d bytes", PROFILE_MAX);
	r = hw_field_decode(profile_fields, text, len, &p, e);
	rules = p.rules.v;
	for (size_t i = 0; r == 0 && i < p.rules.n; i++)
		r = check_rule(&rules[i], i, e);
	if (r == 0 && p.architectures.n && p.arch_map.n)
		r = err_text(e, -EINVAL, "architectures and archMap exclude each other");
	if (r < 0)
		return r;
	*ret = p;
	p = (struct profile){ 0 };
	return 0;
}

char *profile_encode(const struct profile *p)
{
	return hw_field_encode(profile_fields, p, 0);
}

void profile_done(struct profile *p)
{
	hw_field_clear(profile_fields, p);
}

struct profile_rule *profile_add_rule(struct profile *p)
{
	struct profile_rule *rules =
		mem_resize(p->rules.v, p->rules.n + 1, sizeof(struct profile_rule));

	p->rules.v = rules;
	rules[p->rules.n] = (struct profile_rule){ 0 };
	return &rules[p->rules.n++];
}

/* ---- conditions -------------------------------------------------------------------------------- */

/* MAJOR.MINOR; what follows does not matter. */
static int parse_release(const char *text, long *ret, struct hw_err *e)
{
	char *end = NULL;
	long major = 0, minor = 0;

	if (isdigit((unsigned char)*text))
		major = strtol(text, &end, 10);
	if (!end || *end != '.' || !isdigit((unsigned char)end[1]))
		return err_text(e, -EINVAL, "kernel \"%.100s\": expected MAJOR.MINOR", text);
	minor = strtol(end + 1, NULL, 10);
	if (major > 9999 || minor > 9999)
		return err_text(e, -EINVAL, "kernel \"%.100s\": out of range", text);
	*ret = major * 10000 + minor;
	return 0;
}

/* Return: 1 if the kernel is at least @min; 0 if it is older; or a negative errno */
static int has_kernel(const char *min, const char *kernel, struct hw_err *e)
{
	long wanted, found;
	int r;

	r = parse_release(min, &wanted, e);
	if (r == 0)
		r = parse_release(kernel, &found, e);
	return r < 0 ? r : found >= wanted;
}

/* Whether a rule applies. Of its includes, all must hold, and any of the architectures; of its
 * excludes, none. */
static int applies(const struct profile_rule *rule, const struct profile_target *target,
		   struct hw_err *e)
{
	const struct profile_condition *in = &rule->includes, *out = &rule->excludes;
	int r = 1;

	if (strings_has(&out->architectures, target->machine->name) ||
	    (in->architectures.n && !strings_has(&in->architectures, target->machine->name)))
		return 0;
	for (size_t i = 0; i < out->capabilities.n; i++)
		if (strings_has(target->capabilities, out->capabilities.v[i]))
			return 0;
	for (size_t i = 0; i < in->capabilities.n; i++)
		if (!strings_has(target->capabilities, in->capabilities.v[i]))
			return 0;
	if (!str_empty(out->min_kernel)) {
		r = has_kernel(out->min_kernel, target->kernel, e);
		r = r < 0 ? r : !r;
	}
	if (r == 1 && !str_empty(in->min_kernel))
		r = has_kernel(in->min_kernel, target->kernel, e);
	return r;
}

static void clear_conditions(struct profile_rule *rule)
{
	hw_field_clear(condition_fields, &rule->includes);
	hw_field_clear(condition_fields, &rule->excludes);
	if (!str_empty(rule->name))
		strings_add(&rule->names, rule->name);
	free(take_ptr(rule->name));
}

/* The entry of the map for this machine becomes the list of architectures. */
static void resolve_arch_map(struct profile *p, const struct profile_machine *machine)
{
	struct profile_arch *map = p->arch_map.v;

	for (size_t i = 0; i < p->arch_map.n; i++) {
		if (p->architectures.n == 0 && str_equal(map[i].name, machine->arch[0])) {
			strings_add(&p->architectures, map[i].name);
			for (size_t k = 0; k < map[i].subs.n; k++)
				strings_add(&p->architectures, map[i].subs.v[k]);
		}
		hw_field_clear(arch_fields, &map[i]);
	}
	free(map);
	p->arch_map = (struct hw_list){ 0 };
}

int profile_resolve(struct profile *p, const struct profile_target *target, struct hw_err *e)
{
	struct profile_rule *rules = p->rules.v;
	size_t n = p->rules.n, kept = 0;
	int r = 0;

	if (!str_empty(p->listener_path))
		return err_text(e, -EINVAL, "listenerPath is not supported");
	for (size_t i = 0; r >= 0 && i < n; i++) {
		r = applies(&rules[i], target, e);
		if (r < 0)
			err_ctx(e, "syscalls[%zu]", i);
		if (r == 0)
			hw_field_clear(rule_fields, &rules[i]);
		if (r == 1) {
			clear_conditions(&rules[i]);
			rules[kept++] = rules[i];
			if (kept <= i)
				rules[i] = (struct profile_rule){ 0 };
		}
	}
	if (r < 0)
		return r;
	p->rules.n = kept;
	resolve_arch_map(p, target->machine);
	return 0;
}
