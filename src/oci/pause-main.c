/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci/pause-main.c - the program hawser-pause: process 1 of a PID namespace that a pod's containers share
 *
 * What:  reaps orphans, and ends on SIGTERM and SIGINT. It ignores every other signal.
 *        usage: hawser-pause [WORD...]; as many words as there are cgroups to enter.
 * How:   without the C library, so that a pod costs a few pages of memory: system calls, no variables
 *        outside the stack. pause.c starts it with all signals blocked, and never unblocks them.
 *        Descriptor 0 is a socket of the daemon, which writes one byte as soon as the pod is
 *        recorded; EOF means that the daemon died before. The following descriptors are cgroup.procs
 *        files. The move into cgroups comes after that byte, because on v1 it takes
 *        milliseconds, and the daemon does not wait for it. The mount namespace is empty.
 * Rules: containers see this process, and those with CAP_SYS_PTRACE can change it. It keeps no
 *        descriptor, no capability and no file system of the host, and its seccomp filter allows only
 *        the three system calls that it needs.
 */
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/prctl.h>
#include <linux/seccomp.h>
#include <linux/signal.h>
#include <linux/wait.h>
#include <stddef.h>
#include <stdint.h>

#include "base/os/raw-call.h"

#define GO_FD	 0
#define FILES_FD 1

/* ---- architecture ---------------------------------------------------------------------------- */

#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64

__asm__(".globl _start\n"
	"_start:\n"
	"	xor %ebp, %ebp\n"
	"	mov %rsp, %rdi\n"
	"	and $-16, %rsp\n"
	"	call pause_main\n");
#elif defined(__aarch64__)
#define ARCH AUDIT_ARCH_AARCH64

__asm__(".globl _start\n"
	"_start:\n"
	"	mov x29, #0\n"
	"	mov x30, #0\n"
	"	mov x0, sp\n"
	"	bl pause_main\n");
#endif

static _Noreturn void finish(int status)
{
	for (;;)
		raw_call1(__NR_exit_group, status);
}

/* ---- start ----------------------------------------------------------------------------------- */

/* Ends the process if the daemon died. All signals are blocked: the call is not interrupted. */
static void wait_for_go(void)
{
	char byte;

	if (raw_call3(__NR_read, GO_FD, &byte, 1) != 1)
		finish(0);
}

/* If it fails, the cgroup has been removed, together with the pod; or its memory, a few pages, counts
 * for the daemon's cgroup. */
static void enter_cgroup(long fd)
{
	raw_call3(__NR_write, fd, "0", 1);
	raw_call1(__NR_close, fd);
}

static void confine(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = { { 0 } };
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCH, 0, 4),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_rt_sigtimedwait, 3, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_wait4, 2, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_exit_group, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(filter) / sizeof(filter[0]), filter };

	raw_call1(__NR_close, GO_FD);
	if (raw_call2(__NR_prctl, PR_SET_DUMPABLE, 0) < 0 ||
	    raw_call2(__NR_capset, &head, none) < 0 ||
	    raw_call(__NR_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0, 0) < 0 ||
	    raw_call3(__NR_prctl, PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0)
		finish(1);
}

/* ---- work ------------------------------------------------------------------------------------ */

static _Noreturn void reap_and_wait(void)
{
	const uint64_t all = ~(uint64_t)0;

	for (;;) {
		long number = raw_call4(__NR_rt_sigtimedwait, &all, NULL, NULL, sizeof(all));

		if (number == SIGTERM || number == SIGINT)
			finish(0);
		if (number == SIGCHLD)
			while (raw_call4(__NR_wait4, -1, NULL, WNOHANG | __WALL, NULL) > 0)
				;
	}
}

/* @stack: argc, argv[0], argv[1] ... as the kernel has stored them */
_Noreturn void pause_main(const long *stack);
_Noreturn void pause_main(const long *stack)
{
	wait_for_go();
	for (long i = 0; i + 1 < stack[0]; i++)
		enter_cgroup(FILES_FD + i);
	confine();
	reap_and_wait();
}
