/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci/compiler/main.c - hawser-seccomp: compiles a seccomp profile, for the daemon
 *
 * What:  standard input is a profile in OCI's form, without conditions; standard output is the filter,
 *        an array of struct sock_filter. Exit status 0; or 1 if the profile is invalid, with one line
 *        on standard error.
 * How:   libseccomp compiles it. In front of its filter are a few instructions of ours: a call whose
 *        number is higher than every one that the profile names is newer than the profile, and fails
 *        with ENOSYS, as runc does it. With EPERM the C library would not fall back to an older call.
 * Rules: before the profile is read, the process is confined: it can use its open descriptors and its
 *        memory. It ends with the thread that has started it, and after CPU_S seconds of work.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/os/file.h"
#include "base/os/helper.h"
#include "base/str.h"
#include "confine/confine.h"
#include "oci/seccomp/profile.h"

#define MEMORY	 ((size_t)128 << 20) /* limit in bytes */
#define CPU_S	 10
#define ARCH_MAX 20 /* in a profile */
#define X32_BIT	 0x40000000u

/* ---- words ------------------------------------------------------------------------------------- */

struct word {
	const char *name;
	uint32_t value;
};

/* ERRNO and TRACE also have an errno. SCMP_ACT_NOTIFY is missing: no process would listen. */
static const struct word actions[] = {
	{ "SCMP_ACT_ALLOW", SCMP_ACT_ALLOW },
	{ "SCMP_ACT_ERRNO", SCMP_ACT_ERRNO(0) },
	{ "SCMP_ACT_KILL", SCMP_ACT_KILL },
	{ "SCMP_ACT_KILL_PROCESS", SCMP_ACT_KILL_PROCESS },
	{ "SCMP_ACT_KILL_THREAD", SCMP_ACT_KILL_THREAD },
	{ "SCMP_ACT_LOG", SCMP_ACT_LOG },
	{ "SCMP_ACT_TRACE", SCMP_ACT_TRACE(0) },
	{ "SCMP_ACT_TRAP", SCMP_ACT_TRAP },
};

static const struct word operators[] = {
	{ "SCMP_CMP_NE", SCMP_CMP_NE },
	{ "SCMP_CMP_LT", SCMP_CMP_LT },
	{ "SCMP_CMP_LE", SCMP_CMP_LE },
	{ "SCMP_CMP_EQ", SCMP_CMP_EQ },
	{ "SCMP_CMP_GE", SCMP_CMP_GE },
	{ "SCMP_CMP_GT", SCMP_CMP_GT },
	{ "SCMP_CMP_MASKED_EQ", SCMP_CMP_MASKED_EQ },
};

static const struct word architectures[] = {
	{ "SCMP_ARCH_X86", SCMP_ARCH_X86 },
	{ "SCMP_ARCH_X86_64", SCMP_ARCH_X86_64 },
	{ "SCMP_ARCH_X32", SCMP_ARCH_X32 },
	{ "SCMP_ARCH_ARM", SCMP_ARCH_ARM },
	{ "SCMP_ARCH_AARCH64", SCMP_ARCH_AARCH64 },
	{ "SCMP_ARCH_MIPS", SCMP_ARCH_MIPS },
	{ "SCMP_ARCH_MIPS64", SCMP_ARCH_MIPS64 },
	{ "SCMP_ARCH_MIPS64N32", SCMP_ARCH_MIPS64N32 },
	{ "SCMP_ARCH_MIPSEL", SCMP_ARCH_MIPSEL },
	{ "SCMP_ARCH_MIPSEL64", SCMP_ARCH_MIPSEL64 },
	{ "SCMP_ARCH_MIPSEL64N32", SCMP_ARCH_MIPSEL64N32 },
	{ "SCMP_ARCH_PPC", SCMP_ARCH_PPC },
	{ "SCMP_ARCH_PPC64", SCMP_ARCH_PPC64 },
	{ "SCMP_ARCH_PPC64LE", SCMP_ARCH_PPC64LE },
	{ "SCMP_ARCH_S390", SCMP_ARCH_S390 },
	{ "SCMP_ARCH_S390X", SCMP_ARCH_S390X },
	{ "SCMP_ARCH_PARISC", SCMP_ARCH_PARISC },
	{ "SCMP_ARCH_PARISC64", SCMP_ARCH_PARISC64 },
	{ "SCMP_ARCH_RISCV64", SCMP_ARCH_RISCV64 },
};

static int find_word(const struct word *words, size_t n, const char *name, const char *field,
		     uint32_t *ret, struct hw_err *e)
{
	for (size_t i = 0; i < n; i++)
		if (str_equal(words[i].name, name)) {
			*ret = words[i].value;
			return 0;
		}
	return err_text(e, -EINVAL, "%s: unknown value \"%.100s\"", field, name);
}

/* The errno is EPERM by default. */
static int find_action(const char *name, bool has_errno, uint32_t error, const char *field,
		       uint32_t *ret, struct hw_err *e)
{
	uint32_t action = 0;
	int r;

	r = find_word(actions, ARRAY_SIZE(actions), name, field, &action, e);
	if (r < 0)
		return r;
	if (action == SCMP_ACT_ERRNO(0))
		action = SCMP_ACT_ERRNO(has_errno ? error : EPERM);
	else if (action == SCMP_ACT_TRACE(0))
		action = SCMP_ACT_TRACE(has_errno ? error : EPERM);
	else if (has_errno)
		return err_text(e, -EINVAL, "%s: %s takes no errno", field, name);
	*ret = action;
	return 0;
}

/* ---- rules ------------------------------------------------------------------------------------- */

struct compiler {
	const struct profile *profile;
	scmp_filter_ctx ctx;
	uint32_t default_action;
	uint32_t arch[ARCH_MAX];
	size_t n_arch;
};

static int add_architectures(struct compiler *c, struct hw_err *e)
{
	const struct hw_strings *names = &c->profile->architectures;

	c->arch[c->n_arch++] = seccomp_arch_native();
	for (size_t i = 0; i < names->n; i++) {
		uint32_t arch = 0;
		int r;

		r = find_word(architectures, ARRAY_SIZE(architectures), names->v[i],
			      "architectures", &arch, e);
		if (r < 0)
			return r;
		r = seccomp_arch_add(c->ctx, arch);
		if (r == -EEXIST)
			continue;
		if (r < 0 || c->n_arch == ARCH_MAX)
			return err_text(e, -EINVAL,
					"architectures: %s cannot be combined with this machine's",
					names->v[i]);
		c->arch[c->n_arch++] = arch;
	}
	return 0;
}

/* Unknown calls are skipped, as by other runtimes: a profile names calls of newer kernels, too. */
static int add_calls(struct compiler *c, const struct profile_rule *rule, uint32_t action,
		     const struct scmp_arg_cmp *args, unsigned n_args, struct hw_err *e)
{
	for (size_t i = 0; i < rule->names.n; i++) {
		int call, r;

		call = seccomp_syscall_resolve_name(rule->names.v[i]);
		if (call == __NR_SCMP_ERROR)
			continue;
		r = seccomp_rule_add_array(c->ctx, action, call, n_args, args);
		if (r < 0 && r != -EEXIST)
			return err_set(e, r == -ENOMEM ? -ENOMEM : -EINVAL, "rule for %.100s",
				       rule->names.v[i]);
	}
	return 0;
}

static bool has_index(const struct scmp_arg_cmp *args, unsigned n, unsigned index)
{
	for (unsigned i = 0; i < n; i++)
		if (args[i].arg == index)
			return true;
	return false;
}

/* libseccomp takes one comparison of each argument in a rule. If there are more, each comparison becomes
 * a rule, as in runc. */
static int add_rule(struct compiler *c, const struct profile_rule *rule, struct hw_err *e)
{
	const struct profile_argument *arguments = rule->arguments.v;
	struct scmp_arg_cmp args[6];
	unsigned n = 0;
	bool separate = rule->arguments.n > ARRAY_SIZE(args);
	uint32_t action = 0, op = 0;
	int r;

	r = find_action(rule->action, rule->has_errno, rule->error, "action", &action, e);
	if (r < 0 || action == c->default_action) /* libseccomp refuses rules without an effect */
		return r;
	for (size_t i = 0; i < rule->arguments.n && !separate; i++) {
		separate = has_index(args, n, arguments[i].index);
		args[n++].arg = arguments[i].index;
	}
	n = 0;
	for (size_t i = 0; i < rule->arguments.n; i++) {
		const struct profile_argument *a = &arguments[i];

		r = find_word(operators, ARRAY_SIZE(operators), a->op, "op", &op, e);
		if (r < 0)
			return r;
		args[n++] = SCMP_CMP64(a->index, (enum scmp_compare)op, (scmp_datum_t)a->value,
				       (scmp_datum_t)a->value_two);
		if (separate) {
			r = add_calls(c, rule, action, args, n, e);
			if (r < 0)
				return r;
			n = 0;
		}
	}
	return separate ? 0 : add_calls(c, rule, action, args, n, e);
}

static int add_rules(struct compiler *c, struct hw_err *e)
{
	const struct profile_rule *rules = c->profile->rules.v;

	for (size_t i = 0; i < c->profile->rules.n; i++)
		if (add_rule(c, &rules[i], e) < 0)
			return err_ctx(e, "syscalls[%zu]", i);
	return 0;
}

/* ---- newer calls ------------------------------------------------------------------------------- */

/* Return: the highest number of a call that the profile names; -1: none */
static int64_t highest_call(const struct compiler *c, uint32_t arch)
{
	const struct profile_rule *rules = c->profile->rules.v;
	int64_t highest = -1;

	for (size_t i = 0; i < c->profile->rules.n; i++)
		for (size_t k = 0; k < rules[i].names.n; k++) {
			int call = seccomp_syscall_resolve_name_arch(arch, rules[i].names.v[k]);

			if (call > highest)
				highest = call;
		}
	return highest;
}

/* A profile that allows everything else also allows newer calls. So does a tracer, which decides itself. */
static bool is_permissive(uint32_t action)
{
	return action == SCMP_ACT_ALLOW || action == SCMP_ACT_LOG ||
	       (action & SECCOMP_RET_ACTION_FULL) == SECCOMP_RET_TRACE;
}

#define LOAD(member)                                                                               \
	(struct sock_filter)                                                                       \
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, member))
#define JUMP(how, value, yes, no)                                                                  \
	(struct sock_filter) BPF_JUMP(BPF_JMP | (how) | BPF_K, (uint32_t)(value), yes, no)
#define PART	 4 /* instructions for an architecture */
#define PART_X86 6

static size_t part_len(uint32_t arch)
{
	return arch == SCMP_ARCH_X86_64 ? PART_X86 : PART;
}

/* For an architecture: if the number of the call is too high, the filter ends. Numbers of X32 share the
 * architecture of X86_64, with a bit set. @after: instructions for other architectures that follow */
static size_t write_limit(struct sock_filter *to, uint32_t arch, int64_t highest, int64_t x32,
			  size_t after)
{
	size_t n = 0;

	to[n++] = JUMP(BPF_JEQ, arch, 0, (uint8_t)(part_len(arch) - 1));
	to[n++] = LOAD(nr);
	if (arch == SCMP_ARCH_X86_64) {
		to[n++] = JUMP(BPF_JGE, X32_BIT, 1, 0);
		to[n++] = JUMP(BPF_JGT, highest, 1, (uint8_t)(2 + after));
		/* without X32 in the profile, the filter itself refuses them */
		to[n++] = x32 < 0 ? JUMP(BPF_JA, 1 + after, 0, 0)
				  : JUMP(BPF_JGT, x32, 0, (uint8_t)(1 + after));
	} else {
		to[n++] = JUMP(BPF_JGT, highest, 0, (uint8_t)(1 + after));
	}
	to[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS);
	return n;
}

static int write_limits(const struct compiler *c, struct hw_err *e)
{
	struct sock_filter program[1 + ARCH_MAX * PART_X86];
	uint32_t arch[ARCH_MAX];
	int64_t highest[ARCH_MAX], x32 = -1;
	size_t n_arch = 0, n = 0, after = 0;

	if (is_permissive(c->default_action) || c->default_action == SCMP_ACT_ERRNO(ENOSYS))
		return 0;
	for (size_t i = 0; i < c->n_arch; i++) {
		int64_t call = highest_call(c, c->arch[i]);

		if (c->arch[i] == SCMP_ARCH_X32) {
			x32 = call;
		} else if (call >= 0) {
			arch[n_arch] = c->arch[i];
			highest[n_arch++] = call;
			after += part_len(c->arch[i]);
		}
	}
	program[n++] = LOAD(arch);
	for (size_t i = 0; i < n_arch; i++) {
		after -= part_len(arch[i]);
		n += write_limit(program + n, arch[i], highest[i], x32, after);
	}
	return file_write_fd(STDOUT_FILENO, program, n * sizeof(*program), e);
}

/* ---- the filter -------------------------------------------------------------------------------- */

static int build(struct compiler *c, struct hw_err *e)
{
	int r;

	r = add_architectures(c, e);
	if (r == 0)
		r = add_rules(c, e);
	if (r == 0)
		r = write_limits(c, e);
	if (r < 0)
		return r;
	/* a binary tree: fewer instructions are executed for each call */
	r = seccomp_attr_set(c->ctx, SCMP_FLTATR_CTL_OPTIMIZE, 2);
	if (r == 0)
		r = seccomp_export_bpf(c->ctx, STDOUT_FILENO);
	return r < 0 ? err_set(e, r, "write the filter") : 0;
}

static int compile(const struct profile *p, struct hw_err *e)
{
	struct compiler c = { .profile = p };
	int r;

	r = find_action(p->default_action, p->has_default_errno, p->default_errno, "defaultAction",
			&c.default_action, e);
	if (r < 0)
		return r;
	c.ctx = seccomp_init(c.default_action);
	if (!c.ctx)
		return err_text(e, -ENOMEM, "libseccomp: cannot create a filter");
	r = build(&c, e);
	seccomp_release(c.ctx);
	return r;
}

static int run(struct hw_err *e)
{
	const struct rlimit cpu = { CPU_S, CPU_S };
	AUTO(profile_done) struct profile p = { 0 };
	AUTO(buf_done) struct buf text = { 0 };
	int r;

	helper_reset_oom_score();
	r = helper_limit_memory(MEMORY, e);
	if (r == 0)
		r = helper_end_with_parent(getppid(), e);
	if (r < 0)
		return r;
	if (setrlimit(RLIMIT_CPU, &cpu) < 0)
		return err_set(e, -errno, "limit the CPU time");
	(void)seccomp_api_get(); /* asks the kernel, which the confinement does not allow later */
	r = confine(CONFINE_COMPILER, -1, e);
	if (r == 0)
		r = file_read_fd(STDIN_FILENO, PROFILE_MAX, &text, e);
	if (r == 0)
		r = profile_decode(str_or(text.data, ""), text.len, &p, e);
	return r < 0 ? r : compile(&p, e);
}

int main(void)
{
	struct hw_err e;

	file_open_missing_stdio(O_PATH);
	/* _exit(): a leak detector, which runs at exit, needs more than the confinement allows */
	if (run(&e) == 0)
		_exit(EXIT_SUCCESS);
	dprintf(STDERR_FILENO, "%s\n", e.msg);
	_exit(EXIT_FAILURE);
}
