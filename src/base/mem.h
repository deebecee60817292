/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/mem.h - owned pointers and descriptors; allocation that cannot fail
 *
 * What:  cleanup attributes for locals, take_ptr() and take_fd() to hand over,
 *        allocators that abort with one line when there is no memory (sizes
 *        from outside are bounded before they get here).
 *
 *	autofree char *path = str_printf("%s/x", dir);
 *	autoclose int fd = -1;
 *	AUTO(hw_result_free) struct hw_result *r = NULL;
 */
#ifndef BASE_MEM_H
#define BASE_MEM_H

#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

_Noreturn void mem_exhausted(void);
void mem_free_ptr(void *p); /* of a pointer variable */
void mem_close_fd(int *fd); /* of a descriptor variable; keeps errno */

#define autofree  __attribute__((cleanup(mem_free_ptr)))
#define autoclose __attribute__((cleanup(mem_close_fd)))

/* AUTO(f): calls f(x) at the end of scope, for any destructor that takes NULL.
 * Each destructor is announced once, after its declaration: AUTO_DEFINE(f, type); */
#define AUTO(f) __attribute__((cleanup(auto_##f)))
#define AUTO_DEFINE(f, type)                                                                       \
	static inline __attribute__((unused)) void auto_##f(type **p)                              \
	{                                                                                          \
		f(*p);                                                                             \
	}                                                                                          \
	struct auto_needs_semicolon

/* AUTO_VALUE_DEFINE(f, type): the same for an embedded object, f(&x). */
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

void *mem_new(size_t size);			  /* zeroed */
void *mem_resize(void *p, size_t n, size_t size); /* n elements of size; overflow aborts */
void *mem_copy(const void *p, size_t size);

#endif
