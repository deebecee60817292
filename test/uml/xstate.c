/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test/uml/xstate.c - lets user-mode Linux run on processors with more registers than it knows
 *
 * What:  a library that test/uml/run preloads. user-mode Linux 6.1 sets the registers of its processes from a
 *        buffer of 2,696 bytes, which ends after AVX-512. On a processor with more state, such as AMX, the
 *        kernel of the host accepts only the whole area, and the guest panics with "ptrace set fp regs
 *        failed, errno = 14".
 * How:   replaces ptrace(): what the buffer lacks is read from the process and written back unchanged.
 */
#include <dlfcn.h>
#include <elf.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>

typedef long ptrace_function(int request, ...);

/* The area of a processor with AMX has 11,008 bytes. user-mode Linux has one thread. */
static unsigned char area[64 << 10];

static long set_state(ptrace_function *next, int pid, void *kind, const struct iovec *given)
{
	struct iovec whole = { area, sizeof(area) };

	if (next(PTRACE_GETREGSET, pid, kind, &whole) < 0 || whole.iov_len <= given->iov_len)
		return next(PTRACE_SETREGSET, pid, kind, given);
	memcpy(area, given->iov_base, given->iov_len);
	return next(PTRACE_SETREGSET, pid, kind, &whole);
}

__attribute__((visibility("default"))) long ptrace(enum __ptrace_request request, ...)
{
	static ptrace_function *next;
	void *address, *data;
	va_list ap;
	int pid;

	va_start(ap, request);
	pid = va_arg(ap, int);
	address = va_arg(ap, void *);
	data = va_arg(ap, void *);
	va_end(ap);
	if (!next)
		*(void **)&next = dlsym(RTLD_NEXT, "ptrace");
	if (request == PTRACE_SETREGSET && (uintptr_t)address == NT_X86_XSTATE)
		return set_state(next, pid, address, data);
	return next((int)request, pid, address, data);
}
