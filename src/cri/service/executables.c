/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cri/service/executables.c - paths of the programs that the daemon starts
 */
#include "cri/service/executables.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"

#define DEFAULT_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

static const char *const external[] = {
	"crun",	  /* runs containers */
	"conmon", /* monitors containers */
};

char *executable_helper(const char *name)
{
	char self[4096];
	ssize_t n;
	autofree char *beside = NULL;
	char *slash;

	n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	self[n > 0 ? n : 0] = '\0';
	slash = strrchr(self, '/');
	if (slash)
		*slash = '\0';
	beside = str_printf("%s/%s", self, name);
	if (access(beside, X_OK) == 0)
		return take_ptr(beside);
	return str_printf("%s/../libexec/hawser/%s", self, name);
}

char *executable_find(const char *name)
{
	AUTO(hw_strings_free) struct hw_strings dirs = { 0 };

	strings_split(str_or(getenv("PATH"), DEFAULT_PATH), ':', &dirs);
	for (size_t i = 0; i < dirs.n; i++) {
		autofree char *path = str_printf("%s/%s", dirs.v[i], name);

		if (*dirs.v[i] == '/' && access(path, X_OK) == 0)
			return take_ptr(path);
	}
	return NULL;
}

char *executables_missing(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(external); i++) {
		autofree char *path = NULL;

		path = executable_find(external[i]);
		if (!path)
			return str_printf("%s not found in %s", external[i],
					  str_or(getenv("PATH"), DEFAULT_PATH));
	}
	return NULL;
}
