/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cri/runtime-programs.c - are the programs there that containers are run with?
 *
 * How:   looked for by name at each question, a few access() each: they may come and
 *        go with an upgrade.
 */
#include "cri/runtime-programs.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"

#define USUAL_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

static const char *const needed[] = {
	"crun",	  /* runs containers */
	"conmon", /* watches them */
};

static bool is_in(const struct hw_strings *dirs, const char *name)
{
	for (size_t i = 0; i < dirs->n; i++) {
		autofree char *path = str_printf("%s/%s", dirs->v[i], name);

		if (*dirs->v[i] == '/' && access(path, X_OK) == 0)
			return true;
	}
	return false;
}

/**
 * programs_missing() - the first that is not in $PATH
 */
char *programs_missing(void)
{
	AUTO(hw_strings_free) struct hw_strings dirs = { 0 };
	const char *path = str_or(getenv("PATH"), USUAL_PATH);

	strings_split(path, ':', &dirs);
	for (size_t i = 0; i < ARRAY_SIZE(needed); i++)
		if (!is_in(&dirs, needed[i]))
			return str_printf("%s is not in %s", needed[i], path);
	return NULL;
}
