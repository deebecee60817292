/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/os/library.h - a shared library that is opened only when it is needed
 */
#ifndef BASE_OS_LIBRARY_H
#define BASE_OS_LIBRARY_H

#include <stddef.h>

#include <hawser/err.h>

/* One of its functions, and the member of a struct that shall point to it; the last has no name */
struct library_symbol {
	const char *name;
	size_t at;
};

/* Return: 0, with what dlclose() wants in *ret_handle; -ELIBACC with the loader's words */
int library_open(const char *file, const struct library_symbol *symbols, void *ret_functions,
		 void **ret_handle, struct hw_err *e);

#endif
