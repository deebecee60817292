/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/mem.h - ownership of pointers and descriptors; allocation that aborts on failure
 *
 * What:  cleanup attributes for locals, take_ptr() and take_fd() to transfer
 *        ownership, and allocators.
 * Rules: if memory is exhausted, one line is written to standard error and the
 *        process aborts. The caller must check sizes from untrusted input
 *        against a limit before it allocates.
 *
 *	autofree char *path = str_printf("%s/x", dir);
 *	autoclose int fd = -1;
 *	AUTO(hw_result_free) struct hw_result *r = NULL;
 */
#ifndef BASE_MEM_H
#define BASE_MEM_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

/* true in a build with a sanitizer, which reserves terabytes of memory */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define MEM_SANITIZED true
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define MEM_SANITIZED true
#endif
#endif
#ifndef MEM_SANITIZED
#define MEM_SANITIZED false
#endif

_Noreturn void mem_exhausted(void); /* prints "hawser: out of memory" and aborts */
void mem_free_ptr(void *p);	    /* for autofree; p points to a pointer variable */
void mem_close_fd(int *fd);	    /* for autoclose; sets *fd to -1, preserves errno */

#define autofree  __attribute__((cleanup(mem_free_ptr)))
#define autoclose __attribute__((cleanup(mem_close_fd)))

/* AUTO(f) on a pointer variable x calls f(x) at the end of the scope. f must accept NULL. Declare
 * each destructor f once, after its prototype: AUTO_DEFINE(f, type); */
#define AUTO(f) __attribute__((cleanup(auto_##f)))
#define AUTO_DEFINE(f, type)                                                                       \
	static inline __attribute__((unused)) void auto_##f(type **p)                              \
	{                                                                                          \
		f(*p);                                                                             \
	}                                                                                          \
	struct auto_needs_semicolon

/* AUTO_VALUE_DEFINE(f, type): AUTO(f) on a variable x that is the object itself calls f(&x). */
#define AUTO_VALUE_DEFINE(f, type)                                                                 \
	static inline __attribute__((unused)) void auto_##f(type *p)                               \
	{                                                                                          \
		f(p);                                                                              \
	}                                                                                          \
	struct auto_needs_semicolon

#define take_ptr(p)                                                                                \
	({                                                                                         \
		__typeof__(p) take_ = (p);                                                         \
		(p) = NULL;                                                                        \
		take_;                                                                             \
	})
#define take_fd(fd)                                                                                \
	({                                                                                         \
		int take_ = (fd);                                                                  \
		(fd) = -1;                                                                         \
		take_;                                                                             \
	})

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

/* The following functions never return NULL, not even for a size of 0. */
void *mem_new(size_t size); /* returns zeroed memory */
/* Changes the size of the array p, which may be NULL, to n elements of the given size. New elements
 * are not initialised. If n * size overflows, the process aborts. */
void *mem_resize(void *p, size_t n, size_t size);
void *mem_copy(const void *p, size_t size);

#endif
