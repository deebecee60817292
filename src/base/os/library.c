/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/os/library.c - shared libraries that are loaded only when needed
 */
#include "base/os/library.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>

#include "base/err.h"

int library_open(const char *file, const struct library_symbol *symbols, void *ret_functions,
		 void **ret_handle, struct hw_err *e)
{
	void *handle = dlopen(file, RTLD_LAZY | RTLD_LOCAL);

	for (; handle && symbols->name; symbols++) {
		void *symbol;

		symbol = dlsym(handle, symbols->name);
		if (!symbol) {
			err_text(e, -ELIBACC, "%s", dlerror());
			dlclose(handle);
			return -ELIBACC;
		}
		memcpy((char *)ret_functions + symbols->at, &symbol, sizeof(symbol));
	}
	*ret_handle = handle;
	return handle ? 0 : err_text(e, -ELIBACC, "%s", dlerror());
}
