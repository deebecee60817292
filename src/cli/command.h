/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/command.h - programs with commands, described by const tables
 *
 * What:  a command is one const struct in its own file; a program is a const struct
 *        with a list of commands. Parsing, help, hints for wrong words and
 *        completion in the shell come from these tables.
 * Rules: struct cli is what the commands of one program share. Each program defines
 *        it, and nothing here looks into it.
 */
#ifndef CLI_COMMAND_H
#define CLI_COMMAND_H

#include <stdbool.h>

#include <hawser/field.h>

#include "base/err.h"
#include "cli/options.h"

struct cli;

struct command {
	const char *name;	/* one or two words: "pull", "image verify" */
	const char *alias;	/* another name, or NULL */
	const char *group;	/* heading in the list of commands; NULL: "commands" */
	const char *args;	/* names of the arguments: "IMAGE [FILE]", "NAME..." or "" */
	int min_args, max_args; /* max_args -1: no limit */
	bool is_long;		/* has a longer default timeout, in programs with such a default */
	bool runs_words;	/* runs its arguments: the options end at the first of them */
	const char *summary;	/* one line for the list of commands: "remove images" */
	const char *help;	/* details and examples, printed after the summary */
	const struct option_entry *options; /* or NULL */
	/* @args: the arguments after the command, and then NULL; their number is checked. Return: 0 or
	 * more: what it means is up to the program; a negative errno */
	int (*run)(struct cli *cli, char **args, struct hw_err *e);
};

/* How to complete an argument or the value of an option. */
struct completion {
	const char *name;  /* its name in the tables: "IMAGE" */
	const char *words; /* separated by spaces. ":file" and ":dir": the shell lists files */
	/* A function that adds to @words; if it adds none, .words are used. @word: what has been
	 * typed so far */
	int (*find)(struct cli *cli, const char *word, struct hw_strings *words, struct hw_err *e);
};

struct program {
	const char *name;
	const char *version;		       /* printed by --version */
	const char *summary;		       /* a sentence for the help */
	const char *environment;	       /* more lines for the help, or NULL */
	const struct command *const *commands; /* NULL at the end; a group is contiguous */
	const struct option_entry *options;    /* of all commands, except --help and --version */
	const struct completion *completions; /* .name NULL at the end; FILE and DIR are built in */
	bool ignores_extra_args;	      /* prints a message about each, and continues */
	int usage_status;		      /* exit status after an error in the command line */
	/* Print an error in the command line. */
	void (*report_usage_error)(const struct cli *cli, const char *msg, const char *hint);
	/* Run the command and report its error. Return: the exit status */
	int (*run)(struct cli *cli, const struct command *command, char **args);
};

/*
 * Run the program: main() is this call, after it has set the defaults of the options. "help" prints help.
 * "__complete WORD..." is for completions/hawser: it prints the completions of the last word.
 * Return: the exit status; a failure to write to standard output is reported here
 */
int command_main(const struct program *p, struct cli *cli, char **argv);

#endif
