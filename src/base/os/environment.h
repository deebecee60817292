/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/os/environment.h - the environment of a program that must not get all variables of this one
 */
#ifndef BASE_OS_ENVIRONMENT_H
#define BASE_OS_ENVIRONMENT_H

/* Elements of @wanted for programs that call servers: proxies and the resolver of the C library. */
#define ENVIRONMENT_SERVERS                                                                        \
	"http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY",        \
		"no_proxy", "NO_PROXY", "RES_OPTIONS", "LOCALDOMAIN"

/* Selects variables. The elements of @wanted are NAME for a variable of @all, PREFIX* for all whose
 * names begin so, or NAME=VALUE for one that is added. In a build with sanitizers, their options are
 * selected, too. @all, @wanted: NULL at the end; NULL: empty. Return: the list, to be freed; its
 * strings are those of the arguments */
const char **environment_select(const char *const *all, const char *const *wanted);

#endif
