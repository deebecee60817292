/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/options.h - command-line options, described by const tables
 *
 * What:  a table maps options to members of a struct. It is used to parse the command
 *        line and to print the help.
 * Rules: strings are borrowed from the command line; options_done() frees the lists.
 *
 *	static const struct option_entry entries[] = {
 *		{ "quiet", 'q', OPTION_FLAG, offsetof(struct x, quiet), .help = "print only IDs" },
 *		{ 0 },
 *	};
 */
#ifndef CLI_OPTIONS_H
#define CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/err.h"

enum option_kind {
	OPTION_FLAG,	/* bool */
	OPTION_TEXT,	/* const char * */
	OPTION_TEXTS,	/* struct hw_strings: may be repeated */
	OPTION_SECONDS, /* int, 0 or more */
};

struct option_entry {
	const char *name; /* NULL ends the table */
	char letter;	  /* or 0 */
	enum option_kind kind;
	size_t at;
	const char *value; /* name of the value in the help; NULL for a flag */
	const char *help;
};

/*
 * Parse options. @tables is a list of tables that ends with NULL. argv[0] is skipped. If
 * @stop_at_word is true, parsing stops at the first argument that is not an option; otherwise argv
 * is reordered so that the arguments that are not options come last. *ret_next is the index of the
 * first argument that is not an option.
 * Return: 0 or -EINVAL
 */
int options_read(const struct option_entry *const *tables, int argc, char **argv, bool stop_at_word,
		 void *out, int *ret_next, struct hw_err *e);
/* Print a line for each option. */
void options_help(const struct option_entry *table, FILE *out);
void options_done(const struct option_entry *const *tables, void *out);

#endif
