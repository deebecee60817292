/* SPDX-License-Identifier: Apache-2.0 */
/*
 * faults/syscalls.c - names and typical errors of system calls
 *
 * What:  one row for each system call that our programs, libc or a shell use.
 * How:   the errno is the most likely one in production: no descriptors, no
 *        memory, no space. A call that is not in the table fails with EIO.
 * Rules: SYSCALL_CANNOT_FAIL marks calls that cannot fail according to their
 *        manual page (getpid), that never return (exit_group), or after whose
 *        failure libc aborts (futex). Programs are killed at these calls, but
 *        the calls are not made to fail.
 */
#include "faults/syscalls.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define ERRNO_MAX     134
#define ROW(name, error)                                                                           \
	{                                                                                          \
		SYS_##name, #name, error                                                           \
	}
#define NEVER(name) ROW(name, SYSCALL_CANNOT_FAIL)

static const struct {
	uint64_t nr;
	const char *name;
	int error;
} table[] = {
	/* files */
	ROW(openat, EMFILE), /* ENOSPC if it creates the file, see syscall_errno() */
	ROW(openat2, EMFILE),
	ROW(close, EIO),
	ROW(read, EIO),
	ROW(pread64, EIO),
	ROW(readv, EIO),
	ROW(write, ENOSPC),
	ROW(pwrite64, ENOSPC),
	ROW(writev, ENOSPC),
	ROW(sendfile, ENOSPC),
	ROW(copy_file_range, ENOSPC),
	ROW(lseek, EIO),
	ROW(fstat, EIO),
	ROW(newfstatat, EACCES),
	ROW(statx, EACCES),
	ROW(statfs, EIO),
	ROW(fstatfs, EIO),
	ROW(faccessat, EACCES),
	ROW(faccessat2, EACCES),
	ROW(readlinkat, EACCES),
	ROW(getdents64, EIO),
	ROW(getcwd, ENOENT),
	ROW(chdir, EACCES),
	ROW(fchdir, EACCES),
	ROW(mkdirat, ENOSPC),
	ROW(mknodat, ENOSPC),
	ROW(symlinkat, ENOSPC),
	ROW(linkat, ENOSPC),
	ROW(unlinkat, EIO),
	ROW(renameat, ENOSPC),
	ROW(renameat2, ENOSPC),
	ROW(fchmod, EPERM),
	ROW(fchmodat, EPERM),
	ROW(fchown, EPERM),
	ROW(fchownat, EPERM),
	ROW(ftruncate, ENOSPC),
	ROW(fallocate, ENOSPC),
	ROW(fsync, EIO),
	ROW(fdatasync, EIO),
	ROW(syncfs, EIO),
	ROW(flock, ENOLCK),
	ROW(fcntl, EMFILE),
	ROW(dup, EMFILE),
	ROW(dup3, EMFILE),
	ROW(pipe2, EMFILE),
	ROW(ioctl, EIO),
	ROW(utimensat, EPERM),
	ROW(memfd_create, EMFILE),
	/* memory */
	ROW(mmap, ENOMEM),
	ROW(mremap, ENOMEM),
	ROW(mprotect, ENOMEM),
	ROW(brk, ENOMEM),
	NEVER(munmap),
	NEVER(madvise),
	/* processes */
	ROW(clone, EAGAIN),
	ROW(clone3, EAGAIN),
	ROW(execve, ENOMEM),
	ROW(execveat, ENOMEM),
	ROW(wait4, ECHILD),
	ROW(waitid, ECHILD),
	ROW(pidfd_open, EMFILE),
	ROW(pidfd_send_signal, EPERM),
	ROW(pidfd_getfd, EMFILE),
	ROW(kill, EPERM),
	ROW(setpgid, EPERM),
	ROW(setsid, EPERM),
	ROW(prctl, EINVAL),
	ROW(prlimit64, EPERM),
	ROW(unshare, EPERM),
	ROW(setns, EPERM),
	ROW(mount, EPERM),
	ROW(umount2, EBUSY),
	ROW(close_range, ENOSYS),
	ROW(getrandom, ENOSYS),
	ROW(uname, EFAULT),
	ROW(sysinfo, EFAULT),
	NEVER(exit),
	NEVER(exit_group),
	NEVER(getpid),
	NEVER(gettid),
	NEVER(getppid),
	NEVER(getpgid),
	NEVER(getuid),
	NEVER(geteuid),
	NEVER(getgid),
	NEVER(getegid),
	NEVER(umask),
	NEVER(sched_yield),
	NEVER(sched_getaffinity),
	NEVER(futex),
	NEVER(set_tid_address),
	NEVER(set_robust_list),
	NEVER(rseq),
	NEVER(restart_syscall),
	/* signals and time */
	NEVER(rt_sigreturn),
	NEVER(rt_sigaction),
	NEVER(rt_sigprocmask),
	NEVER(sigaltstack),
	NEVER(tgkill),
	NEVER(clock_gettime),
	NEVER(gettimeofday),
	ROW(clock_nanosleep, EINTR),
	ROW(nanosleep, EINTR),
	ROW(timerfd_create, EMFILE),
	ROW(timerfd_settime, EINVAL),
	ROW(signalfd4, EMFILE),
	/* sockets and waiting */
	ROW(socket, EMFILE),
	ROW(socketpair, EMFILE),
	ROW(bind, EADDRINUSE),
	ROW(listen, EADDRINUSE),
	ROW(accept4, EMFILE),
	ROW(connect, ECONNREFUSED),
	ROW(shutdown, ENOTCONN),
	ROW(getsockname, ENOBUFS),
	ROW(getsockopt, ENOBUFS),
	ROW(setsockopt, ENOBUFS),
	ROW(sendto, ENOBUFS),
	ROW(sendmsg, ENOBUFS),
	ROW(sendmmsg, ENOBUFS),
	ROW(recvfrom, ENOBUFS),
	ROW(recvmsg, ENOBUFS),
	ROW(recvmmsg, ENOBUFS),
	ROW(ppoll, ENOMEM),
	ROW(pselect6, ENOMEM),
	ROW(epoll_create1, EMFILE),
	ROW(epoll_ctl, ENOSPC),
	ROW(epoll_pwait, EIO),
	ROW(eventfd2, EMFILE),
	ROW(inotify_init1, EMFILE),
	ROW(inotify_add_watch, ENOSPC),
#ifdef __x86_64__ /* old calls that arm64 does not have */
	ROW(open, EMFILE),
	ROW(stat, EACCES),
	ROW(lstat, EACCES),
	ROW(access, EACCES),
	ROW(readlink, EACCES),
	ROW(mkdir, ENOSPC),
	ROW(rmdir, EIO),
	ROW(symlink, ENOSPC),
	ROW(link, ENOSPC),
	ROW(unlink, EIO),
	ROW(rename, ENOSPC),
	ROW(chmod, EPERM),
	ROW(chown, EPERM),
	ROW(dup2, EMFILE),
	ROW(pipe, EMFILE),
	ROW(fork, EAGAIN),
	ROW(vfork, EAGAIN),
	ROW(poll, ENOMEM),
	ROW(select, ENOMEM),
	ROW(epoll_wait, EIO),
	NEVER(getpgrp),
	NEVER(arch_prctl),
#endif
};

const char *syscall_name(uint64_t nr)
{
	for (size_t i = 0; i < ARRAY_SIZE(table); i++)
		if (table[i].nr == nr)
			return table[i].name;
	return "?";
}

int syscall_errno(uint64_t nr, const uint64_t args[6])
{
	if (nr == SYS_openat && (args[2] & (O_CREAT | __O_TMPFILE)))
		return ENOSPC;
	/* The arguments do not show whether a lock is acquired or released. A release never fails in
	 * reality; if it did here, SQLite would wait for its own lock. */
	if (nr == SYS_fcntl && (args[1] == F_SETLK || args[1] == F_OFD_SETLK))
		return SYSCALL_CANNOT_FAIL;
	for (size_t i = 0; i < ARRAY_SIZE(table); i++)
		if (table[i].nr == nr)
			return table[i].error;
	return EIO;
}

int syscall_errno_parse(const char *name)
{
	for (int i = 1; i < ERRNO_MAX; i++) {
		const char *known = strerrorname_np(i);

		if (known && strcmp(known, name) == 0)
			return i;
	}
	return 0;
}
