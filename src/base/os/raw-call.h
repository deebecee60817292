/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/os/raw-call.h - system calls without the C library
 *
 * For code that must not use the C library's data: a program without it, or a process that shares
 * the memory of another one, and so the thread-local errno.
 */
#ifndef BASE_OS_RAW_CALL_H
#define BASE_OS_RAW_CALL_H

#include <asm/unistd.h>

/* Inline, so that it has the instrumentation of its caller. Return: the result, or a negative errno */
static inline __attribute__((always_inline)) long raw_call(long number, long a, long b, long c,
							   long d, long e, long f)
{
#if defined(__x86_64__)
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	long r;

	__asm__ volatile("syscall"
			 : "=a"(r)
			 : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return r;
#elif defined(__aarch64__)
	register long x8 __asm__("x8") = number;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d;
	register long x4 __asm__("x4") = e;
	register long x5 __asm__("x5") = f;

	__asm__ volatile("svc #0"
			 : "+r"(x0)
			 : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
			 : "memory");
	return x0;
#else
#error "no system calls for this architecture"
#endif
}

#define raw_call0(number)	   raw_call(number, 0, 0, 0, 0, 0, 0)
#define raw_call1(number, a)	   raw_call(number, (long)(a), 0, 0, 0, 0, 0)
#define raw_call2(number, a, b)	   raw_call(number, (long)(a), (long)(b), 0, 0, 0, 0)
#define raw_call3(number, a, b, c) raw_call(number, (long)(a), (long)(b), (long)(c), 0, 0, 0)
#define raw_call4(number, a, b, c, d)                                                              \
	raw_call(number, (long)(a), (long)(b), (long)(c), (long)(d), 0, 0)

#endif
