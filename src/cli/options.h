/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/options.h - command-line options, described by const tables
 *
 * What:  a table maps options to variables. It is used to parse the command line, to
 *        print the help and to complete words in the shell.
 * Rules: a process runs one command, so the variables are static in the command's
 *        file. Texts are borrowed from the command line.
 *
 *	static struct { bool quiet; const char *output; } given;
 *
 *	static const struct option_entry options[] = {
 *		{ "quiet", 'q', .flag = &given.quiet, .help = "print only IDs" },
 *		{ "output", 'o', "FILE", .text = &given.output, .help = "write to FILE" },
 *		{ 0 },
 *	};
 */
#ifndef CLI_OPTIONS_H
#define CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include <hawser/field.h>

#include "base/err.h"

struct option_entry {
	const char *name;  /* NULL ends the table */
	char letter;	   /* or 0 */
	const char *value; /* name of the value in the help; NULL for a flag */
	const char *help;
	/* The variable. Exactly one of these is set; it decides the type of the option. */
	bool *flag;
	const char **text;
	struct hw_strings *texts; /* the option may be repeated */
	int *seconds;		  /* 0 or more */
	int *number;		  /* 0 or more */
	int *choice;		  /* .value is "oci|docker": 1 for oci, 2 for docker */
};

/*
 * Parse the options in @argv, a list that ends with NULL, and remove them from the list. Options and
 * other words may be mixed; after "--" there are no options. A long option may be shortened if it is
 * unambiguous. @tables is a list of tables that ends with NULL. An option before argv[@split] does not
 * take this word as its value. If @ret_pending is not NULL, an option at the end without its value is
 * stored there, or NULL, and is not an error. After @max_words other words there are no options, and a
 * "--" that follows them is removed; SIZE_MAX: options may come after any number of words.
 * Return: the number of words that remain in @argv, or -EINVAL
 */
int options_read(const struct option_entry *const *tables, char **argv, size_t split,
		 size_t max_words, const struct option_entry **ret_pending, struct hw_err *e);
/* Return: the index of the first word in @argv that is neither an option nor the value of an option in
 * @tables. An option that is not in the tables is taken for a flag. No word after "--" is an
 * option. */
size_t options_first_word(const struct option_entry *const *tables, char *const *argv);
/* Print a line for each option. */
void options_help(const struct option_entry *table, FILE *out);

#endif
