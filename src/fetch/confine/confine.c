/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/confine/confine.c - sandbox for processes that read untrusted archives
 *
 * How:   three mechanisms. With chroot(), even an incorrectly resolved path stays inside the layer.
 *        All capabilities that unpacking does not need are dropped. A seccomp filter allows only
 *        the listed system calls: CAP_SYS_ADMIN must be kept for overlayfs attributes, and without
 *        the filter it would allow the process to undo the other two. A system call that is not
 *        listed fails with ENOSYS instead of killing the process, because a newer C library may try
 *        a newer call first and fall back.
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

/* Needed to set the owner and mode of any file, to create devices, and to set file capabilities and
 * trusted.overlay attributes. */
static const int kept_capabilities[] = {
	CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_FOWNER, CAP_FSETID, CAP_MKNOD, CAP_SETFCAP, CAP_SYS_ADMIN,
};

/* For unpacking only: access to files by name, their attributes, and the result on the open
 * socket. */
static const int unpack_calls[] = {
	SYS_openat,	SYS_openat2,   SYS_mkdirat,   SYS_mknodat,    SYS_symlinkat,  SYS_linkat,
	SYS_unlinkat,	SYS_renameat2, SYS_renameat,  SYS_getdents64, SYS_readlinkat, SYS_syncfs,
	SYS_newfstatat, SYS_statx,     SYS_fchown,    SYS_fchownat,   SYS_fchmod,     SYS_fchmodat,
	SYS_utimensat,	SYS_fsetxattr, SYS_fgetxattr, SYS_flistxattr, SYS_sendmsg,
};

/* For reading an archive only: threads, and messages on the open socket. */
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
	/* open descriptors */
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

#define CALLS_MAX (ARRAY_SIZE(common_calls) + ARRAY_SIZE(unpack_calls) + ARRAY_SIZE(reader_calls))

/* ---- capabilities ---------------------------------------------------------- */

/* Drops all capabilities that are not in kept_capabilities. Does not add any. */
static int drop_capabilities(struct hw_err *e)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];
	uint64_t mask = 0;

	for (size_t i = 0; i < ARRAY_SIZE(kept_capabilities); i++)
		mask |= UINT64_C(1) << kept_capabilities[i];
	for (int cap = 0; prctl(PR_CAPBSET_READ, cap, 0, 0, 0) >= 0; cap++)
		if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0 && errno != EPERM)
			return err_set(e, -errno, "drop capability %d from the bounding set", cap);
	if (syscall(SYS_capget, &header, data) < 0)
		return err_set(e, -errno, "read capabilities");
	for (int i = 0; i < _LINUX_CAPABILITY_U32S_3; i++) {
		data[i].permitted &= (uint32_t)(mask >> 32 * i);
		data[i].effective = data[i].permitted;
		data[i].inheritable = 0;
	}
	if (syscall(SYS_capset, &header, data) < 0)
		return err_set(e, -errno, "drop capabilities");
	return 0;
}

/* ---- system calls ---------------------------------------------------------- */

#define LOAD(member)                                                                               \
	(struct sock_filter)                                                                       \
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, member))
#define SKIP_IF(value) (struct sock_filter) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 1, 0)
#define NEXT_IF(value) (struct sock_filter) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1)
#define RETURN(value)  (struct sock_filter) BPF_STMT(BPF_RET | BPF_K, value)

struct filter {
	struct sock_filter program[5 + 2 * CALLS_MAX];
	unsigned short n;
};

static void allow_calls(struct filter *f, const int *calls, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		f->program[f->n++] = NEXT_IF((uint32_t)calls[i]);
		f->program[f->n++] = RETURN(SECCOMP_RET_ALLOW);
	}
}

/* Allows common_calls and @more. A system call made for another architecture kills the process,
 * because its number means a different call. */
static int set_seccomp_filter(const int *more, size_t n, struct hw_err *e)
{
	struct filter f = { .n = 0 };
	struct sock_fprog fprog = { .filter = f.program };

	f.program[f.n++] = LOAD(arch);
	f.program[f.n++] = SKIP_IF(ARCHITECTURE);
	f.program[f.n++] = RETURN(SECCOMP_RET_KILL_PROCESS);
	f.program[f.n++] = LOAD(nr);
	allow_calls(&f, common_calls, ARRAY_SIZE(common_calls));
	allow_calls(&f, more, n);
	f.program[f.n++] = RETURN(SECCOMP_RET_ERRNO | ENOSYS);
	fprog.len = f.n;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &fprog) < 0)
		return err_set(e, -errno, "set the seccomp filter");
	return 0;
}

int confine(int root, struct hw_err *e)
{
	int r;

	if (fchdir(root) < 0 || chroot(".") < 0)
		return err_set(e, -errno, "chroot to the layer's root");
	r = drop_capabilities(e);
	return r < 0 ? r : set_seccomp_filter(unpack_calls, ARRAY_SIZE(unpack_calls), e);
}

int confine_reader(struct hw_err *e)
{
	return set_seccomp_filter(reader_calls, ARRAY_SIZE(reader_calls), e);
}
