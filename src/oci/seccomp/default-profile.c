/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci/seccomp/default-profile.c - the profile RuntimeDefault
 *
 * How:   a table of groups, each with the reason why its calls are allowed. All other calls fail with
 *        EPERM, and those that are newer than the newest one named here with ENOSYS (oci/compiler), so that
 *        the C library falls back to an older one.
 *
 * Deliberately absent, with any capability:
 *	add_key keyctl request_key	keyrings are not separated by namespaces
 *	io_uring_setup, _enter, _register	operations of io_uring pass by every seccomp filter
 *	kexec_load kexec_file_load	replace the kernel of the node
 *	move_pages migrate_pages	pages of other processes
 *	nfsservctl uselib sysfs ustat vm86	obsolete
 *	pivot_root swapon swapoff	change the node
 *	userfaultfd	pauses the kernel at a chosen access to memory, which makes races exploitable
 */
#include "oci/seccomp/default-profile.h"

#include <errno.h>
#include <linux/capability.h>
#include <sched.h>
#include <sys/socket.h>

#include "base/str.h"

/* All flags of clone() and unshare() that create a namespace. */
#define NEW_NAMESPACES                                                                             \
	(CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER |             \
	 CLONE_NEWPID | CLONE_NEWNET)

/* The kernel ignores the upper half of the argument, so the comparison must, too: one of the lower bits
 * differs from AF_VSOCK. No family has a higher bit. */
#define SOCKET_UNLIKE_VSOCK(bit)                                                                   \
	{                                                                                          \
		"socket", .op = "SCMP_CMP_MASKED_EQ", .value = (bit),                              \
			  .value_two = ~AF_VSOCK & (bit)                                           \
	}

struct group {
	const char *names;	    /* separated by spaces */
	const char *with, *without; /* a capability that the container must have, or must not */
	const char *machine;	    /* only on this one: see profile_machine() */
	/* Only if the comparison @op holds for this argument. NULL: any arguments. */
	const char *op;
	uint32_t argument;
	int64_t value, value_two;
	uint32_t error; /* the calls fail with it, instead of being allowed */
};

static const struct group groups[] = {
	/* Files by name, and their attributes: permissions are checked as for every process, and the
	 * root directory of the container is all that can be named. mknod is limited by the device
	 * cgroup. name_to_handle_at tells nothing that stat does not; the way back is below. */
	{ "access chmod chown chown32 creat faccessat faccessat2 fchmodat fchmodat2 fchownat "
	  "fstatat64 futimesat getxattr getxattrat lchown lchown32 lgetxattr link linkat listxattr "
	  "listxattrat llistxattr lremovexattr lsetxattr lstat lstat64 mkdir mkdirat mknod mknodat "
	  "name_to_handle_at newfstatat open openat openat2 readlink readlinkat removexattr "
	  "removexattrat rename renameat renameat2 rmdir setxattr setxattrat stat stat64 statfs "
	  "statfs64 statx symlink symlinkat truncate truncate64 unlink unlinkat utime utimensat "
	  "utimensat_time64 utimes" },
	/* Open descriptors: the permission was checked when they were opened. */
	{ "_llseek close close_range copy_file_range dup dup2 dup3 fadvise64 fadvise64_64 "
	  "fallocate "
	  "fchdir fchmod fchown fchown32 fcntl fcntl64 fdatasync fgetxattr flistxattr flock "
	  "fremovexattr fsetxattr fstat fstat64 fstatfs fstatfs64 fsync ftruncate ftruncate64 "
	  "getdents getdents64 ioctl lseek pread64 preadv preadv2 pwrite64 pwritev pwritev2 read "
	  "readahead readv sendfile sendfile64 splice sync sync_file_range syncfs tee vmsplice "
	  "write writev" },
	/* The working directory and the file mode creation mask of the process itself. */
	{ "chdir getcwd umask" },
	/* Waiting for descriptors. fanotify_mark needs a descriptor of fanotify_init, see below. */
	{ "_newselect epoll_create epoll_create1 epoll_ctl epoll_ctl_old epoll_pwait epoll_pwait2 "
	  "epoll_wait epoll_wait_old eventfd eventfd2 fanotify_mark inotify_add_watch inotify_init "
	  "inotify_init1 inotify_rm_watch pipe pipe2 poll ppoll ppoll_time64 pselect6 "
	  "pselect6_time64 select signalfd signalfd4" },
	/* Asynchronous input and output of the older kind: the calls are those of read and write. */
	{ "io_cancel io_destroy io_getevents io_pgetevents io_pgetevents_time64 io_setup "
	  "io_submit" },
	/* Memory of the process itself; locks are limited by RLIMIT_MEMLOCK. */
	{ "brk cachestat madvise map_shadow_stack membarrier memfd_create memfd_secret mincore "
	  "mlock mlock2 mlockall mmap mmap2 mprotect mremap mseal msync munlock munlockall munmap "
	  "pkey_alloc pkey_free pkey_mprotect remap_file_pages" },
	/* Processes and threads: they stay in the container's namespaces and cgroup. clone is below. */
	{ "execve execveat exit exit_group fork get_robust_list get_thread_area getcpu getpgid "
	  "getpgrp getpid getppid getpriority getrlimit getrusage getsid gettid ioprio_get "
	  "ioprio_set pidfd_open prctl prlimit64 process_mrelease restart_syscall rseq "
	  "set_robust_list set_thread_area set_tid_address setpgid setpriority setrlimit setsid "
	  "times ugetrlimit vfork wait4 waitid waitpid" },
	/* Tracing: since Linux 4.8 a tracer cannot escape from its own filter with it, and the kernel
	 * lets a process trace only those of the same user. */
	{ "process_vm_readv process_vm_writev ptrace" },
	/* Signals: the kernel checks the user. */
	{ "kill pause pidfd_send_signal rt_sigaction rt_sigpending rt_sigprocmask rt_sigqueueinfo "
	  "rt_sigreturn rt_sigsuspend rt_sigtimedwait rt_sigtimedwait_time64 rt_tgsigqueueinfo "
	  "sigaltstack sigprocmask sigreturn tgkill tkill" },
	/* Scheduling: limited by the cgroup and by RLIMIT_NICE and RLIMIT_RTPRIO. */
	{ "sched_get_priority_max sched_get_priority_min sched_getaffinity sched_getattr "
	  "sched_getparam sched_getscheduler sched_rr_get_interval sched_rr_get_interval_time64 "
	  "sched_setaffinity sched_setattr sched_setparam sched_setscheduler sched_yield" },
	/* Locks in memory. */
	{ "futex futex_requeue futex_time64 futex_wait futex_waitv futex_wake" },
	/* Time and timers: to set a clock with adjtimex or clock_adjtime needs CAP_SYS_TIME, which the
	 * kernel checks; to read it with them is common. */
	{ "adjtimex alarm clock_adjtime clock_adjtime64 clock_getres clock_getres_time64 "
	  "clock_gettime clock_gettime64 clock_nanosleep clock_nanosleep_time64 getitimer "
	  "gettimeofday nanosleep setitimer time timer_create timer_delete timer_getoverrun "
	  "timer_gettime timer_gettime64 timer_settime timer_settime64 timerfd_create "
	  "timerfd_gettime timerfd_gettime64 timerfd_settime timerfd_settime64" },
	/* Users, groups and capabilities: the kernel checks each change. */
	{ "capget capset getegid getegid32 geteuid geteuid32 getgid getgid32 getgroups getgroups32 "
	  "getresgid getresgid32 getresuid getresuid32 getuid getuid32 setfsgid setfsgid32 "
	  "setfsuid "
	  "setfsuid32 setgid setgid32 setgroups setgroups32 setregid setregid32 setresgid "
	  "setresgid32 setresuid setresuid32 setreuid setreuid32 setuid setuid32" },
	/* Sockets: in the network namespace of the pod. socket is below. socketcall of 32-bit programs
	 * has its arguments in memory, which a filter cannot read. */
	{ "accept accept4 bind connect getpeername getsockname getsockopt listen recv recvfrom "
	  "recvmmsg recvmmsg_time64 recvmsg send sendmmsg sendmsg sendto setsockopt shutdown "
	  "socketcall socketpair" },
	/* AF_VSOCK is not separated by namespaces: it leads to the hypervisor. */
	SOCKET_UNLIKE_VSOCK(0x01),
	SOCKET_UNLIKE_VSOCK(0x02),
	SOCKET_UNLIKE_VSOCK(0x04),
	SOCKET_UNLIKE_VSOCK(0x08),
	SOCKET_UNLIKE_VSOCK(0x10),
	SOCKET_UNLIKE_VSOCK(0x20),
	/* Message queues, semaphores and shared memory: in the IPC namespace of the pod. */
	{ "ipc mq_getsetattr mq_notify mq_open mq_timedreceive mq_timedreceive_time64 mq_timedsend "
	  "mq_timedsend_time64 mq_unlink msgctl msgget msgrcv msgsnd semctl semget semop "
	  "semtimedop "
	  "semtimedop_time64 shmat shmctl shmdt shmget" },
	/* A process that restricts itself further. */
	{ "landlock_add_rule landlock_create_ruleset landlock_restrict_self seccomp" },
	/* Facts about the system that every process may know. */
	{ "getrandom sysinfo uname" },
	/* Only the values that do not weaken the process: PER_LINUX, PER_LINUX32, both with
	 * UNAME26, and to read the current one. Others turn off the randomization of addresses. */
	{ "personality", .op = "SCMP_CMP_EQ", .value = 0 },
	{ "personality", .op = "SCMP_CMP_EQ", .value = 0x8 },
	{ "personality", .op = "SCMP_CMP_EQ", .value = 0x20000 },
	{ "personality", .op = "SCMP_CMP_EQ", .value = 0x20008 },
	{ "personality", .op = "SCMP_CMP_EQ", .value = 0xffffffff },

	/* Calls that the C library of the machine needs. */
	{ "arch_prctl modify_ldt uretprobe", .machine = "amd64" },
	{ "arm_fadvise64_64 arm_sync_file_range breakpoint cacheflush set_tls sync_file_range2",
	  .machine = "arm64" },

	/* Processes and threads without a new namespace: in a namespace of its own, a process of a
	 * user would reach code of the kernel that is otherwise reserved to root. The flags of clone3
	 * are in memory, which a filter cannot read; with ENOSYS the C library uses clone. */
	{ "clone", .without = "CAP_SYS_ADMIN", .op = "SCMP_CMP_MASKED_EQ",
	  .value = NEW_NAMESPACES },
	{ "clone3", .without = "CAP_SYS_ADMIN", .error = ENOSYS },

	/* With the capability that the kernel asks for, the client has allowed them. */
	{ "bpf clone clone3 fanotify_init fsconfig fsmount fsopen fspick lookup_dcookie mount "
	  "mount_setattr move_mount open_tree perf_event_open quotactl quotactl_fd setdomainname "
	  "sethostname setns syslog umount umount2 unshare",
	  .with = "CAP_SYS_ADMIN" },
	{ "open_by_handle_at", .with = "CAP_DAC_READ_SEARCH" },
	{ "reboot", .with = "CAP_SYS_BOOT" },
	{ "chroot", .with = "CAP_SYS_CHROOT" },
	{ "delete_module finit_module init_module", .with = "CAP_SYS_MODULE" },
	{ "acct", .with = "CAP_SYS_PACCT" },
	{ "kcmp pidfd_getfd process_madvise", .with = "CAP_SYS_PTRACE" },
	{ "ioperm iopl", .with = "CAP_SYS_RAWIO" },
	{ "clock_settime clock_settime64 settimeofday stime", .with = "CAP_SYS_TIME" },
	{ "vhangup", .with = "CAP_SYS_TTY_CONFIG" },
	{ "get_mempolicy mbind set_mempolicy set_mempolicy_home_node", .with = "CAP_SYS_NICE" },
	{ "syslog", .with = "CAP_SYSLOG" },
	{ "bpf", .with = "CAP_BPF" },
	{ "perf_event_open", .with = "CAP_PERFMON" },
};

static void add_group(struct profile *p, const struct group *g)
{
	struct profile_rule *rule = profile_add_rule(p);

	strings_split(g->names, ' ', &rule->names);
	rule->action = str_copy(g->error ? PROFILE_ERRNO : PROFILE_ALLOW);
	rule->has_errno = g->error != 0;
	rule->error = g->error;
	if (g->op) {
		struct profile_argument *argument = mem_new(sizeof(*argument));

		argument->index = g->argument;
		argument->value = g->value;
		argument->value_two = g->value_two;
		argument->op = str_copy(g->op);
		rule->arguments = (struct hw_list){ argument, 1 };
	}
}

static bool has(const struct profile_target *target, const char *capability)
{
	return strings_has(target->capabilities, capability);
}

void default_profile(const struct profile_target *target, struct profile *ret)
{
	*ret = (struct profile){ .default_action = str_copy(PROFILE_ERRNO),
				 .has_default_errno = true,
				 .default_errno = EPERM };
	for (size_t i = 0; target->machine->arch[i]; i++)
		strings_add(&ret->architectures, target->machine->arch[i]);
	for (size_t i = 0; i < ARRAY_SIZE(groups); i++) {
		const struct group *g = &groups[i];

		if ((g->with && !has(target, g->with)) || (g->without && has(target, g->without)) ||
		    (g->machine && !str_equal(g->machine, target->machine->name)))
			continue;
		add_group(ret, g);
	}
}
