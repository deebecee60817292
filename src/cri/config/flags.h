/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cri/config/flags.h - the command line of hawser-cri
 *
 * What:  a flag for each key of the configuration, from the same table, and flags that
 *        select an action. The flag of a list may be given several times; all its
 *        values together replace the list in the file.
 */
#ifndef CRI_CONFIG_FLAGS_H
#define CRI_CONFIG_FLAGS_H

#include <stdbool.h>

#include "cri/config/config.h"

enum flags_action { FLAGS_SERVE, FLAGS_CHECK, FLAGS_PRINT, FLAGS_HELP, FLAGS_VERSION };

struct flags {
	enum flags_action action;
	const char *file; /* points into the arguments, or CONFIG_FILE */
	bool file_given;
	struct value *values; /* object that maps keys to values */
};

/* Parses the arguments of main(). *ret_flags is freed with flags_done(). */
int flags_parse(int argc, char **argv, struct flags *ret_flags, struct hw_err *e);
void flags_done(struct flags *flags);
char *flags_help(void); /* the output of --help; allocated */

AUTO_VALUE_DEFINE(flags_done, struct flags);

#endif
