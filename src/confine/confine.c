/* SPDX-License-Identifier: Apache-2.0 */
/*
 * confine/confine.c - sandbox for processes that read untrusted input
 *
 * How:   the table roles[] says what each process keeps, in four mechanisms.
 *        The root of a process that handles a layer is a mount of its own, with "nodev" among others: seccomp cannot
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
#include "confine/confine.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <linux/sockios.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/mem.h"
#include "confine/landlock.h"

#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#endif

/* For unpacking: access to files by name, their attributes, and the result on the open socket. */
#define UNPACK_CALLS                                                                               \
	SYS_openat, SYS_openat2, SYS_mkdirat, SYS_mknodat, SYS_symlinkat, SYS_linkat,              \
		SYS_unlinkat, SYS_renameat2, SYS_renameat, SYS_getdents64, SYS_readlinkat,         \
		SYS_syncfs, SYS_newfstatat, SYS_statx, SYS_fchown, SYS_fchownat, SYS_fchmod,       \
		SYS_fchmodat, SYS_utimensat, SYS_fsetxattr, SYS_fgetxattr, SYS_flistxattr,         \
		SYS_sendmsg

static const int unpack_calls[] = { UNPACK_CALLS };

/* For hawser-layer: reading files and their attributes, and the report on the open socket. */
static const int layer_calls[] = {
	SYS_openat,    SYS_openat2,    SYS_getdents64, SYS_readlinkat, SYS_newfstatat, SYS_statx,
	SYS_fgetxattr, SYS_flistxattr, SYS_fadvise64,  SYS_sendmsg,    SYS_shutdown,
};

/* For the supervisor: messages, completing layers, and starting and ending unpackers, which inherit
 * this filter and are confined further. */
static const int supervisor_calls[] = {
	UNPACK_CALLS,  SYS_recvmsg,  SYS_clone,	    SYS_set_robust_list, SYS_rseq,
	SYS_wait4,     SYS_kill,     SYS_pipe2,	    SYS_socketpair,	 SYS_close_range,
	SYS_prctl,     SYS_getppid,  SYS_open_tree, SYS_mount_setattr,	 SYS_fchdir,
	SYS_chroot,    SYS_dup3,     SYS_capget,    SYS_capset,		 SYS_seccomp,
	SYS_prlimit64, SYS_shutdown, SYS_tgkill,    SYS_fcntl,
#ifdef SYS_dup2
	SYS_dup2,
#endif
};

/* For fetching: threads, which limit_clone() lets it create, and messages on the open socket. */
#define THREAD_CALLS                                                                               \
	SYS_set_robust_list, SYS_rseq, SYS_sendmsg, SYS_recvmsg, SYS_sched_yield,                  \
		SYS_sched_getaffinity, SYS_clock_nanosleep

static const int reader_calls[] = { THREAD_CALLS };

/* For fetching from a registry: connections, and reading the files of the resolver and of TLS.
 * libcurl, OpenSSL, the C library and its NSS modules make these calls. */
static const int client_calls[] = {
	THREAD_CALLS,	 SYS_connect,	    SYS_bind, /* a netlink socket */
	SYS_getsockname, SYS_getpeername,   SYS_getsockopt, SYS_setsockopt,  SYS_sendto,
	SYS_recvfrom,	 SYS_sendmmsg,	    SYS_shutdown,   SYS_socketpair,  SYS_pipe2,
	SYS_eventfd2,	 SYS_epoll_create1, SYS_epoll_ctl,  SYS_epoll_pwait, SYS_pselect6,
	SYS_writev,	 SYS_readv,	    SYS_openat,	    SYS_newfstatat,  SYS_statx,
	SYS_readlinkat,	 SYS_faccessat,	    SYS_faccessat2, SYS_getdents64,  SYS_fadvise64,
	SYS_uname,	 SYS_sysinfo,	    SYS_getuid,	    SYS_geteuid,     SYS_getgid,
	SYS_getegid,	 SYS_getppid,
#ifdef SYS_open /* calls that newer architectures lack */
	SYS_open,	 SYS_stat,	    SYS_lstat,	    SYS_access,	     SYS_readlink,
	SYS_select,	 SYS_pipe,	    SYS_epoll_wait,
#endif
};

#define VALUES_MAX 6

/* Calls that are allowed only if one argument has a certain value. */
struct limited_call {
	int call, argument;
	uint32_t values[VALUES_MAX];
	size_t n;
	int error; /* for other values */
};

/* The limits of this process only, not those of other pulls, which have the same user ID. */
#define LIMIT_OWN                                                                                  \
	{                                                                                          \
		SYS_prlimit64, 0, { 0 }, 1, EPERM                                                  \
	}

static const struct limited_call reader_limited[] = { LIMIT_OWN };

/* AF_UNIX and AF_NETLINK: NSS modules. Other families would be a way to other parts of the kernel,
 * and AF_VSOCK to the hypervisor. */
static const struct limited_call client_limited[] = {
	LIMIT_OWN,
	{ SYS_socket, 0, { AF_INET, AF_INET6, AF_UNIX, AF_NETLINK }, 4, EAFNOSUPPORT },
	{ SYS_ioctl, 1, { FIONREAD, FIONBIO }, 2, ENOTTY },
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
	SYS_clock_gettime, /* these are needed if the vDSO cannot read the clock */
	SYS_gettimeofday,
	SYS_getrandom,
	SYS_exit,
	SYS_exit_group,
#ifdef SYS_poll
	SYS_poll,
#endif
};

/* The files that fetching from a registry reads. All else, such as the certificates for individual
 * registries, is read before the process is confined. */
static const char *const client_files[] = {
	/* certificate authorities, where Debian, Fedora, SUSE, Arch and Alpine have them */
	"/etc/ssl/certs",
	"/etc/ssl/cert.pem",
	"/usr/lib/ssl",
	"/usr/share/ca-certificates",
	"/usr/local/share/ca-certificates",
	"/etc/pki/tls/certs",
	"/etc/pki/tls/cert.pem",
	"/etc/pki/ca-trust/extracted",
	"/etc/ca-certificates/extracted",
	"/var/lib/ca-certificates",
	/* OpenSSL: its configuration, and the policy of the system, which Fedora's and SUSE's
	 * versions read for each connection */
	"/etc/ssl/openssl.cnf",
	"/etc/pki/tls/openssl.cnf",
	"/etc/crypto-policies",
	"/usr/share/crypto-policies",
	/* the resolver; the directories contain the targets of /etc/resolv.conf, which are replaced
	 * whenever the network changes */
	"/etc/nsswitch.conf",
	"/etc/resolv.conf",
	"/etc/hosts",
	"/etc/host.conf",
	"/etc/gai.conf",
	"/run/systemd/resolve",
	"/run/resolvconf",
	"/run/NetworkManager/resolv.conf",
	"/run/NetworkManager/no-stub-resolv.conf",
	/* NSS modules and the libraries that they use */
	"/etc/ld.so.cache",
	"/lib",
	"/lib64",
	"/usr/lib",
	"/usr/lib64",
	"/usr/local/lib",
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
	const struct limited_call *limited;
	size_t n_limited;
	bool threads;		  /* can create threads, but no processes */
	const char *const *files; /* the only files that can be opened; NULL: any */
	size_t n_files;
} roles[] = {
	[CONFINE_CLIENT] = { .calls = CALLS(client_calls),
			     .limited = client_limited,
			     .n_limited = ARRAY_SIZE(client_limited),
			     .threads = true,
			     .files = client_files,
			     .n_files = ARRAY_SIZE(client_files) },
	/* SYS_CHROOT and those of CAPS_UNPACK are passed on to unpackers; KILL ends the fetcher */
	[CONFINE_SUPERVISOR] = { .capabilities = CAPS_UNPACK | CAP(SYS_CHROOT) | CAP(KILL),
				 .calls = CALLS(supervisor_calls) },
	[CONFINE_READER] = { .calls = CALLS(reader_calls),
			     .limited = reader_limited,
			     .n_limited = ARRAY_SIZE(reader_limited),
			     .threads = true },
	[CONFINE_UNPACKER] = { .capabilities = CAPS_UNPACK,
			       .mount = MOUNT_ATTR_NODEV | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC,
			       .calls = CALLS(unpack_calls) },
	/* SYS_ADMIN: reads trusted.overlay attributes */
	[CONFINE_LAYER] = { .capabilities = CAP(DAC_READ_SEARCH) | CAP(SYS_ADMIN),
			    .mount = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOSUID |
				     MOUNT_ATTR_NOEXEC,
			    .calls = CALLS(layer_calls) },
	[CONFINE_COMPILER] = { 0 },
};

#define CALLS_MAX   128 /* of a role, common_calls included */
#define LIMITED_MAX 4	/* of a role, in addition to those in limit_signals() */
#define LIMITED_LEN (2 + 2 * VALUES_MAX + 1) /* instructions for a limited call */
#define CLONE_LEN   5			     /* instructions of limit_clone() */

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
	struct sock_filter program[5 + 2 * CALLS_MAX + (LIMITED_MAX + 2) * LIMITED_LEN + CLONE_LEN];
	unsigned short n;
};

static void allow_calls(struct filter *f, const struct calls *calls)
{
	for (size_t i = 0; i < calls->n; i++) {
		f->program[f->n++] = NEXT_IF((uint32_t)calls->v[i]);
		f->program[f->n++] = RETURN(SECCOMP_RET_ALLOW);
	}
}

/* The lower half of an argument: the kernel ignores the rest of an int. */
#define LOAD_ARGUMENT(i)                                                                           \
	(struct sock_filter) BPF_STMT(BPF_LD | BPF_W | BPF_ABS,                                    \
				      offsetof(struct seccomp_data, args) + 8 * (uint32_t)(i))

static void limit_call(struct filter *f, const struct limited_call *l)
{
	uint8_t rest = (uint8_t)(2 * l->n + 2);

	f->program[f->n++] =
		(struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)l->call, 0, rest);
	f->program[f->n++] = LOAD_ARGUMENT(l->argument);
	for (size_t i = 0; i < l->n; i++) {
		f->program[f->n++] = NEXT_IF(l->values[i]);
		f->program[f->n++] = RETURN(SECCOMP_RET_ALLOW);
	}
	f->program[f->n++] = RETURN(SECCOMP_RET_ERRNO | (uint32_t)l->error);
}

/* A process of its own would outlive the pull. clone3() fails with ENOSYS, because its flags are in
 * memory; the C library then uses clone(). */
static void limit_clone(struct filter *f)
{
	f->program[f->n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0,
							  CLONE_LEN - 1);
	f->program[f->n++] = LOAD_ARGUMENT(0);
	f->program[f->n++] =
		(struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, CLONE_THREAD, 0, 1);
	f->program[f->n++] = RETURN(SECCOMP_RET_ALLOW);
	f->program[f->n++] = RETURN(SECCOMP_RET_ERRNO | EPERM);
}

/* Signals only to this process: no capability is needed to send one to a process of the same user. With
 * F_SETOWN and F_SETSIG, the kernel would send any signal to any process. */
static void limit_signals(struct filter *f)
{
	struct limited_call kill = { SYS_tgkill, 0, { (uint32_t)getpid() }, 1, EPERM };
	static const struct limited_call commands = { SYS_fcntl,
						      1,
						      { F_DUPFD, F_DUPFD_CLOEXEC, F_GETFD, F_SETFD,
							F_GETFL, F_SETFL },
						      6,
						      EPERM };

	limit_call(f, &kill);
	limit_call(f, &commands);
}

/* Allows common_calls and those of @role. A system call made for another architecture kills the process,
 * because its number means a different call. */
static int set_seccomp_filter(const struct role *role, struct hw_err *e)
{
	static const struct calls common = CALLS(common_calls);
	struct filter f = { .n = 0 };
	struct sock_fprog fprog = { .filter = f.program };

	assert(common.n + role->calls.n <= CALLS_MAX && role->n_limited <= LIMITED_MAX);
	f.program[f.n++] = LOAD(arch);
	f.program[f.n++] = SKIP_IF(ARCHITECTURE);
	f.program[f.n++] = RETURN(SECCOMP_RET_KILL_PROCESS);
	f.program[f.n++] = LOAD(nr);
	allow_calls(&f, &common);
	allow_calls(&f, &role->calls);
	for (size_t i = 0; i < role->n_limited; i++)
		limit_call(&f, &role->limited[i]);
	if (role->threads)
		limit_clone(&f);
	limit_signals(&f);
	f.program[f.n++] = RETURN(SECCOMP_RET_ERRNO | ENOSYS);
	fprog.len = f.n;
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &fprog) < 0)
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
	if (r == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		r = err_set(e, -errno, "set no_new_privs");
	if (r == 0 && to->files)
		r = landlock_allow_reading(to->files, to->n_files, e);
	return r < 0 ? r : set_seccomp_filter(to, e);
}
