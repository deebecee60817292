/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cri/helper-program.c - programs of ours that the daemon starts, by name
 */
#include "cri/helper-program.h"

#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"

/**
 * helper_find() - beside us where we were built, below libexec where we are installed
 */
char *helper_find(const char *name)
{
	char self[4096];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	autofree char *beside = NULL;
	char *slash;

	self[n > 0 ? n : 0] = '\0';
	slash = strrchr(self, '/');
	if (slash)
		*slash = '\0';
	beside = str_printf("%s/%s", self, name);
	if (access(beside, X_OK) == 0)
		return take_ptr(beside);
	return str_printf("%s/../libexec/hawser/%s", self, name);
}
