/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/os/library.h - shared libraries that are loaded only when needed
 */
#ifndef BASE_OS_LIBRARY_H
#define BASE_OS_LIBRARY_H

#include <stddef.h>

#include <hawser/err.h>

/* A function of the library, and the place to store its address. A table ends with a NULL name. */
struct library_symbol {
	const char *name;
	size_t at; /* offset of a member of *ret_functions */
};

/* Loads a library and stores the addresses of all symbols in *ret_functions.
 * Return: 0, with a handle for dlclose() in *ret_handle; -ELIBACC with the dynamic loader's message
 * if the library or a symbol is missing */
int library_open(const char *file, const struct library_symbol *symbols, void *ret_functions,
		 void **ret_handle, struct hw_err *e);

#endif
