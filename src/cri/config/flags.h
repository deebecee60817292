/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cri/config/flags.h - the command line of hawser-cri
 *
 * What:  a flag for each key of the configuration, from the same table, and a few
 *        that say what to do. A flag of a list may be given several times; all of
 *        them take the place of the file's list.
 */
#ifndef CRI_CONFIG_FLAGS_H
#define CRI_CONFIG_FLAGS_H

#include <stdbool.h>

#include "cri/config/config.h"

enum flags_do { FLAGS_SERVE, FLAGS_CHECK, FLAGS_PRINT, FLAGS_HELP, FLAGS_VERSION };

struct flags {
	enum flags_do what;
	const char *file; /* of the arguments */
	bool file_given;
	struct value *values; /* by key */
};

int flags_parse(int argc, char **argv, struct flags *ret_flags, struct hw_err *e);
void flags_done(struct flags *flags);
char *flags_help(void);

AUTO_VALUE_DEFINE(flags_done, struct flags);

#endif
