/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/mem.c - owned pointers and descriptors; allocation that cannot fail
 *
 * Rules: no memory is one line on standard error and abort(). Sizes that come
 *        from outside are bounded before they get here.
 */
#include "base/mem.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/**
 * mem_exhausted() - say that there is no memory, and abort
 *
 * Nothing is allocated on the way, so neither stdio nor the log is used.
 */
void mem_exhausted(void)
{
	static const char line[] = "hawser: out of memory\n";
	ssize_t n = write(STDERR_FILENO, line, sizeof(line) - 1);

	(void)n; /* there is nobody else to tell */
	abort();
}

/** mem_free_ptr() - free what a pointer variable points to; for autofree */
void mem_free_ptr(void *p)
{
	free(*(void **)p);
}

/** mem_close_fd() - close a descriptor variable's descriptor; for autoclose */
void mem_close_fd(int *fd)
{
	int saved = errno;

	if (*fd >= 0)
		close(*fd);
	errno = saved;
}

/**
 * mem_new() - zeroed memory
 *
 * Return: never NULL, also for a size of 0
 */
void *mem_new(size_t size)
{
	void *p = calloc(1, size ? size : 1);

	if (!p)
		mem_exhausted();
	return p;
}

/**
 * mem_resize() - an array of another length
 * @p:    what it was, or NULL
 * @n:    elements
 * @size: of one element
 *
 * Return: never NULL; new elements are not initialised
 */
void *mem_resize(void *p, size_t n, size_t size)
{
	size_t total;

	if (__builtin_mul_overflow(n, size, &total))
		mem_exhausted();
	p = realloc(p, total ? total : 1);
	if (!p)
		mem_exhausted();
	return p;
}

/** mem_copy() - allocated copy of @size bytes */
void *mem_copy(const void *p, size_t size)
{
	void *copy = mem_new(size);

	if (size > 0)
		memcpy(copy, p, size);
	return copy;
}
