/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/confine/confine.c - sandbox for processes that read untrusted input
 *
 * How:   the table roles[] says what each process keeps, in four mechanisms.
 *        The root of an unpacker is a mount of its own, with "nodev" among others: seccomp cannot
 *        distinguish a device from a file when it is opened, the mount can. The mount is detached:
 *        no other process sees it, and it ends with the process. A new mount namespace would do the
 *        same, but creating it takes a millisecond for every 70 mounts of the node, and 20 us are
 *        enough this way.
 *        All capabilities that the process does not need are dropped. CAP_SYS_ADMIN must be kept
 *        for overlayfs attributes; only the seccomp filter prevents that the process undoes the
 *        other restrictions with it.
 *        The seccomp filter allows the listed system calls. A call that is not listed fails with
 *        ENOSYS instead of killing the process, because a newer C library may try a newer call
 *        first and fall back.
 *        Landlock (landlock.c) limits which files a process that talks to registries can read.
 */
#include "fetch/confine/confine.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/mem.h"

#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#endif

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

/* ---- roles ------------------------------------------------------------------ */

struct calls {
	const int *v;
	size_t n;
};

#define CALLS(list)                                                                                \
	{                                                                                          \
		list, ARRAY_SIZE(list)                                                             \
	}
#define CAP(name) (UINT64_C(1) << CAP_##name)
/* Needed to set the owner and mode of any file, to create devices, and to set file capabilities and
 * trusted.overlay attributes. */
#define CAPS_UNPACK                                                                                \
	(CAP(CHOWN) | CAP(DAC_OVERRIDE) | CAP(FOWNER) | CAP(FSETID) | CAP(MKNOD) | CAP(SETFCAP) |  \
	 CAP(SYS_ADMIN))

static const struct role {
	uint64_t capabilities; /* kept */
	uint64_t mount;	       /* attributes of the mount that becomes the root; 0: no such mount */
	struct calls calls;    /* in addition to common_calls */
} roles[] = {
	[CONFINE_READER] = { .calls = CALLS(reader_calls) },
	[CONFINE_UNPACKER] = { .capabilities = CAPS_UNPACK,
			       .mount = MOUNT_ATTR_NODEV | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC,
			       .calls = CALLS(unpack_calls) },
};

#define CALLS_MAX 128 /* of a role, common_calls included */

/* ---- root ------------------------------------------------------------------ */

/* @root is replaced: an open descriptor of the original mount would still allow to open devices. The
 * descriptor of the mount itself stays open, because the mount lives as long as this descriptor. */
static int enter_mount(int root, uint64_t attributes, struct hw_err *e)
{
	struct mount_attr attr = { .attr_set = attributes, .propagation = MS_PRIVATE };
	autoclose int dir = -1;
	int mount;

	mount = open_tree(root, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH);
	if (mount < 0 || mount_setattr(mount, "", AT_EMPTY_PATH, &attr, sizeof(attr)) < 0)
		return err_set(e, -errno, "mount the layer's directory");
	if (fchdir(mount) == 0 && chroot(".") == 0)
		dir = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0 || dup3(dir, root, O_CLOEXEC) < 0)
		return err_set(e, -errno, "chroot to the layer's directory");
	return 0;
}

/* ---- capabilities ---------------------------------------------------------- */

/* Drops all capabilities that are not in @kept. Does not add any. */
static int drop_capabilities(uint64_t kept, struct hw_err *e)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

	/* EPERM: has no CAP_SETPCAP; a set that is empty otherwise needs no bound */
	for (int cap = 0; prctl(PR_CAPBSET_READ, cap, 0, 0, 0) >= 0; cap++)
		if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0 && errno != EPERM)
			return err_set(e, -errno, "drop capability %d from the bounding set", cap);
	if (syscall(SYS_capget, &header, data) < 0)
		return err_set(e, -errno, "read capabilities");
	for (int i = 0; i < _LINUX_CAPABILITY_U32S_3; i++) {
		data[i].permitted &= (uint32_t)(kept >> 32 * i);
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

static void allow_calls(struct filter *f, const struct calls *calls)
{
	for (size_t i = 0; i < calls->n; i++) {
		f->program[f->n++] = NEXT_IF((uint32_t)calls->v[i]);
		f->program[f->n++] = RETURN(SECCOMP_RET_ALLOW);
	}
}

/* Allows common_calls and @more. A system call made for another architecture kills the process,
 * because its number means a different call. */
static int set_seccomp_filter(const struct calls *more, struct hw_err *e)
{
	static const struct calls common = CALLS(common_calls);
	struct filter f = { .n = 0 };
	struct sock_fprog fprog = { .filter = f.program };

	assert(common.n + more->n <= CALLS_MAX);
	f.program[f.n++] = LOAD(arch);
	f.program[f.n++] = SKIP_IF(ARCHITECTURE);
	f.program[f.n++] = RETURN(SECCOMP_RET_KILL_PROCESS);
	f.program[f.n++] = LOAD(nr);
	allow_calls(&f, &common);
	allow_calls(&f, more);
	f.program[f.n++] = RETURN(SECCOMP_RET_ERRNO | ENOSYS);
	fprog.len = f.n;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &fprog) < 0)
		return err_set(e, -errno, "set the seccomp filter");
	return 0;
}

int confine(enum confine_role role, int root, struct hw_err *e)
{
	const struct role *to = &roles[role];
	int r = 0;

	if (to->mount)
		r = enter_mount(root, to->mount, e);
	if (r == 0)
		r = drop_capabilities(to->capabilities, e);
	return r < 0 ? r : set_seccomp_filter(&to->calls, e);
}
