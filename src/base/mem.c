/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/mem.c - ownership of pointers and descriptors; allocation that aborts on failure
 */
#include "base/mem.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* Must not allocate memory, so it uses neither stdio nor the log. */
void mem_exhausted(void)
{
	static const char line[] = "hawser: out of memory\n";
	ssize_t n = write(STDERR_FILENO, line, sizeof(line) - 1);

	(void)n; /* a write error is ignored: there is no other place to report it */
	abort();
}

void mem_free_ptr(void *p)
{
	free(*(void **)p);
}

void mem_close_fd(int *fd)
{
	int saved = errno;

	if (*fd >= 0)
		close(*fd);
	*fd = -1;
	errno = saved;
}

void *mem_new(size_t size)
{
	void *p;

	p = calloc(1, size ? size : 1);
	if (!p)
		mem_exhausted();
	return p;
}

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

void *mem_copy(const void *p, size_t size)
{
	void *copy = mem_new(size);

	if (size > 0)
		memcpy(copy, p, size);
	return copy;
}
