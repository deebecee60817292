/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/confine/confine.c - a process that can do nothing but unpack, or read an archive
 *
 * How:   chroot(), so that even a path that is looked up wrongly stays inside;
 *        capabilities; a seccomp filter, without which CAP_SYS_ADMIN, needed for
 *        overlayfs's attributes, would undo the rest. A call that is not in the
 *        list does not exist (ENOSYS): a C library of another year may try a
 *        newer one first.
 */
#include "fetch/confine/confine.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/mem.h"

#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#endif

/* Owners and modes of others' files, devices, file capabilities, trusted.overlay attributes. */
static const int kept[] = {
	CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_FOWNER, CAP_FSETID, CAP_MKNOD, CAP_SETFCAP, CAP_SYS_ADMIN,
};

/* What unpacking makes, and reading an archive does not: files by their names. */
static const int file_calls[] = {
	SYS_openat,	SYS_openat2,   SYS_mkdirat,   SYS_mknodat,    SYS_symlinkat,  SYS_linkat,
	SYS_unlinkat,	SYS_renameat2, SYS_renameat,  SYS_getdents64, SYS_readlinkat, SYS_syncfs,
	SYS_newfstatat, SYS_statx,     SYS_fchown,    SYS_fchownat,   SYS_fchmod,     SYS_fchmodat,
	SYS_utimensat,	SYS_fsetxattr, SYS_fgetxattr, SYS_flistxattr,
};

/* The other way round: threads, and messages on the socket that is open. */
static const int reader_calls[] = {
	SYS_clone,
	SYS_clone3,
	SYS_set_robust_list,
	SYS_rseq,
	SYS_sendmsg,
	SYS_recvmsg,
	SYS_prlimit64,
	SYS_sched_yield,
	SYS_sched_getaffinity,
	SYS_clock_nanosleep,
};

static const int common_calls[] = {
	/* bytes */
	SYS_read,
	SYS_write,
	SYS_pread64,
	SYS_pwrite64,
	SYS_lseek,
	SYS_ftruncate,
	SYS_ppoll,
	SYS_fsync,
	SYS_fdatasync,
	SYS_close,
	SYS_fstat,
	SYS_fstatfs,
	SYS_fcntl,
	/* the process itself */
	SYS_brk,
	SYS_mmap,
	SYS_munmap,
	SYS_mremap,
	SYS_mprotect,
	SYS_madvise,
	SYS_futex,
	SYS_rt_sigreturn,
	SYS_rt_sigprocmask,
	SYS_rt_sigaction,
	SYS_sigaltstack,
	SYS_restart_syscall,
	SYS_getpid,
	SYS_gettid,
	SYS_tgkill,
	SYS_clock_gettime,
	SYS_getrandom,
	SYS_exit,
	SYS_exit_group,
#ifdef SYS_poll
	SYS_poll,
#endif
};

#define CALLS_MAX (ARRAY_SIZE(common_calls) + ARRAY_SIZE(file_calls) + ARRAY_SIZE(reader_calls))

static int enter_root(int root, struct hw_err *e)
{
	if (fchdir(root) < 0 || chroot(".") < 0)
		return err_set(e, -errno, "make the layer's folder the root");
	return 0;
}

/* ---- capabilities ---------------------------------------------------------- */

static uint64_t kept_mask(void)
{
	uint64_t mask = 0;

	for (size_t i = 0; i < ARRAY_SIZE(kept); i++)
		mask |= UINT64_C(1) << kept[i];
	return mask;
}

/* Those that the process does not have, it does not get. */
static int drop_capabilities(struct hw_err *e)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];
	uint64_t mask = kept_mask();

	for (int cap = 0; prctl(PR_CAPBSET_READ, cap, 0, 0, 0) >= 0; cap++)
		if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0 && errno != EPERM)
			return err_set(e, -errno, "give up capability %d", cap);
	if (syscall(SYS_capget, &header, data) < 0)
		return err_set(e, -errno, "read capabilities");
	for (int i = 0; i < _LINUX_CAPABILITY_U32S_3; i++) {
		data[i].permitted &= (uint32_t)(mask >> 32 * i);
		data[i].effective = data[i].permitted;
		data[i].inheritable = 0;
	}
	if (syscall(SYS_capset, &header, data) < 0)
		return err_set(e, -errno, "give up capabilities");
	return 0;
}

/* ---- system calls ---------------------------------------------------------- */

#define LOAD(member)                                                                               \
	(struct sock_filter)                                                                       \
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, member))
#define UNLESS(value) (struct sock_filter) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 1, 0)
#define IF(value)     (struct sock_filter) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1)
#define ANSWER(value) (struct sock_filter) BPF_STMT(BPF_RET | BPF_K, value)

struct filter {
	struct sock_filter program[5 + 2 * CALLS_MAX];
	unsigned short n;
};

static void allow(struct filter *f, const int *calls, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		f->program[f->n++] = IF((uint32_t)calls[i]);
		f->program[f->n++] = ANSWER(SECCOMP_RET_ALLOW);
	}
}

/* Another architecture's calls have other numbers, and end the process. */
static int filter_calls(const int *own, size_t n, struct hw_err *e)
{
	struct filter f = { .n = 0 };
	struct sock_fprog fprog = { .filter = f.program };

	f.program[f.n++] = LOAD(arch);
	f.program[f.n++] = UNLESS(ARCHITECTURE);
	f.program[f.n++] = ANSWER(SECCOMP_RET_KILL_PROCESS);
	f.program[f.n++] = LOAD(nr);
	allow(&f, common_calls, ARRAY_SIZE(common_calls));
	allow(&f, own, n);
	f.program[f.n++] = ANSWER(SECCOMP_RET_ERRNO | ENOSYS);
	fprog.len = f.n;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &fprog) < 0)
		return err_set(e, -errno, "limit the system calls");
	return 0;
}

/**
 * confine() - give up everything that unpacking does not need
 * @root: the layer's folder; becomes the root of the process
 *
 * Return: 0, or negative errno; the process may have given up a part then
 */
int confine(int root, struct hw_err *e)
{
	int r = enter_root(root, e);

	if (r == 0)
		r = drop_capabilities(e);
	return r < 0 ? r : filter_calls(file_calls, ARRAY_SIZE(file_calls), e);
}

/**
 * confine_reader() - give up everything that reading an archive does not need
 *
 * Return: 0, or negative errno
 */
int confine_reader(struct hw_err *e)
{
	return filter_calls(reader_calls, ARRAY_SIZE(reader_calls), e);
}
