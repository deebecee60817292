/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/options.h - options of a command line, described by const tables
 *
 * What:  a table says which option goes to which member of a struct; it reads the
 *        command line and prints the help.
 * Rules: what the command line holds is borrowed; options_done() frees the lists.
 *
 *	static const struct option_entry entries[] = {
 *		{ "quiet", 'q', OPTION_FLAG, offsetof(struct x, quiet), .help = "ids only" },
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
	OPTION_TEXTS,	/* struct hw_strings: may be given more than once */
	OPTION_SECONDS, /* int, 0 and more */
};

struct option_entry {
	const char *name; /* NULL: end of the table */
	char letter;	  /* 0: none */
	enum option_kind kind;
	size_t at;
	const char *value; /* what it is called in the help; NULL for a flag */
	const char *help;
};

/* The tables are read as one; a NULL ends them, and a table may be given as NULL with others
 * before it only. Stops at the first word that is no option if @first_word, else at the end, the
 * words then being last. *ret_next: the first word. */
int options_read(const struct option_entry *const *tables, int argc, char **argv, bool first_word,
		 void *out, int *ret_next, struct hw_err *e);
void options_help(const struct option_entry *table, FILE *out);
void options_done(const struct option_entry *const *tables, void *out);

#endif
