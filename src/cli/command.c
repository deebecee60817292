/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/command.c - programs with commands, described by const tables
 *
 * How:   the first word that is neither an option nor the value of an option of the
 *        program is the command. Then all words are parsed with the options of the
 *        program and those of the command, so that both may come before or after it.
 *        Only an option of the command whose value is a separate word must come after.
 *        In a command that runs its arguments, as in "exec NAME ls -l", options end at the
 *        first argument.
 */
#include "cli/command.h"

#include <ctype.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/json/value.h"
#include "base/mem.h"
#include "base/os/file.h"
#include "base/str.h"
#include "cli/text.h"

#define SUMMARY_COLUMN 28

static struct {
	bool help, version;
} given;

static const struct option_entry standard_options[] = {
	{ "help", 'h', .help = "print help", .flag = &given.help },
	{ "version", 'V', .help = "print the version", .flag = &given.version },
	{ 0 },
};

/* ---- help ------------------------------------------------------------------------ */

static char *format_usage(const struct program *p, const struct command *c)
{
	return str_printf("usage: %s [OPTIONS] %s%s%s", p->name, c->name, *c->args ? " " : "",
			  c->args);
}

static void print_help(const struct program *p, FILE *out)
{
	const char *group = "";

	fprintf(out, "usage: %s [OPTIONS] COMMAND [ARGUMENTS]\n\n%s\n", p->name, p->summary);
	for (const struct command *const *c = p->commands; *c; c++) {
		int width;

		if (!str_equal(group, (*c)->group))
			fprintf(out, "\n%s:\n", str_or((*c)->group, "commands"));
		group = (*c)->group;
		width = fprintf(out, "  %s %s", (*c)->name, (*c)->args);
		fprintf(out, "%*s%s\n", width < SUMMARY_COLUMN ? SUMMARY_COLUMN - width : 1, "",
			(*c)->summary);
	}
	fputs("\noptions:\n", out);
	options_help(p->options, out);
	options_help(standard_options, out);
	if (p->environment)
		fprintf(out, "\nenvironment:\n%s", p->environment);
	fprintf(out, "\nRun \"%s help COMMAND\" for the options of a command and for examples.\n",
		p->name);
}

static void print_command_help(const struct program *p, const struct command *c)
{
	autofree char *usage = format_usage(p, c);

	printf("%s\n\n%c%s.\n", usage, toupper((unsigned char)c->summary[0]), c->summary + 1);
	if (c->alias)
		printf("The command is also available as \"%s %s\".\n", p->name, c->alias);
	printf("\n%s\noptions:\n", c->help);
	if (c->options)
		options_help(c->options, stdout);
	options_help(p->options, stdout);
	options_help(standard_options, stdout);
}

/* ---- find the command ------------------------------------------------------------ */

/* A command line, without the program's name. */
struct line {
	char **words;			      /* without the command, if it is known */
	const struct option_entry *tables[4]; /* NULL at the end */
	bool help;			      /* the command was "help", or "help" came before it */
	const struct command *command;	      /* NULL: missing or unknown */
	size_t first;			      /* index in .words at which the command was */
};

/* Return: how many of @words are the name, 0 if they are not */
static size_t match_name(const char *name, char *const *words)
{
	const char *space = name ? strchr(name, ' ') : NULL;
	size_t first = space ? (size_t)(space - name) : 0;

	if (!name || !words[0])
		return 0;
	if (!space)
		return str_equal(words[0], name) ? 1 : 0;
	if (strlen(words[0]) == first && str_starts(name, words[0]) &&
	    str_equal(words[1], space + 1))
		return 2;
	return 0;
}

static const struct command *find_command(const struct program *p, char *const *words,
					  size_t *ret_used)
{
	for (const struct command *const *c = p->commands; *c; c++) {
		*ret_used = match_name((*c)->name, words);
		if (!*ret_used)
			*ret_used = match_name((*c)->alias, words);
		if (*ret_used)
			return *c;
	}
	return NULL;
}

static void remove_words(char **words, size_t n)
{
	while ((words[0] = words[n]))
		words++;
}

/* Return: how many words that are no options may come before the end of the options */
static size_t max_words(const struct line *l)
{
	return l->command && l->command->runs_words ? 1 : SIZE_MAX;
}

static struct line find_parts(const struct program *p, char **words)
{
	struct line l = { .words = words, .tables = { p->options, standard_options } };
	size_t used;

	l.first = options_first_word(l.tables, words);
	if (str_equal(words[l.first], "help")) {
		l.help = true;
		remove_words(words + l.first, 1);
		l.first += options_first_word(l.tables, words + l.first);
	}
	l.command = find_command(p, words + l.first, &used);
	if (l.command) {
		remove_words(words + l.first, used);
		l.tables[2] = l.command->options;
	}
	return l;
}

/* ---- errors ---------------------------------------------------------------------- */

static int fail_usage(const struct program *p, const struct cli *cli, const struct command *c,
		      const char *why)
{
	autofree char *usage = c ? format_usage(p, c) : NULL;
	autofree char *hint =
		c ? str_printf("%s; run \"%s help %s\" for help", usage, p->name, c->name)
		  : str_printf("run \"%s help\" for a list of options", p->name);

	p->report_usage_error(cli, why, hint);
	return p->usage_status;
}

/* Finds a command whose name is similar to @word or has it as the second word. Return: its name or NULL */
static const char *find_similar(const struct program *p, const char *word)
{
	for (const struct command *const *c = p->commands; *c; c++) {
		const char *const names[] = { (*c)->name, (*c)->alias };

		for (size_t i = 0; i < ARRAY_SIZE(names) && names[i]; i++) {
			const char *space = strchr(names[i], ' ');

			if (text_is_typo(word, names[i]) || (space && str_equal(space + 1, word)))
				return names[i];
		}
	}
	return NULL;
}

/* Adds the first words of all commands or, if @first is not NULL, the words that follow it in them. */
static void add_command_words(const struct program *p, const char *first, struct hw_strings *words)
{
	for (const struct command *const *c = p->commands; *c; c++) {
		AUTO(hw_strings_free) struct hw_strings parts = { 0 };

		strings_split((*c)->name, ' ', &parts);
		if (first && parts.n > 1 && str_equal(parts.v[0], first))
			strings_add(words, parts.v[1]);
		else if (!first && !strings_has(words, parts.v[0]))
			strings_add(words, parts.v[0]);
	}
}

/* @words: the unknown command. If commands of two words start with the first word, the second word is a
 * part of the name. */
static int fail_unknown_command(const struct program *p, const struct cli *cli, char *const *words)
{
	AUTO(hw_strings_free) struct hw_strings seconds = { 0 };
	AUTO(buf_done) struct buf hint = { 0 };
	autofree char *name = str_copy(words[0]), *msg = NULL;
	const char *similar;

	add_command_words(p, words[0], &seconds);
	if (seconds.n && words[1] && words[1][0] != '-') {
		free(name);
		name = str_printf("%s %s", words[0], words[1]);
	}
	similar = seconds.n && str_equal(name, words[0]) ? NULL : find_similar(p, name);
	if (similar) {
		buf_printf(&hint, "did you mean \"%s %s\"? Run", p->name, similar);
	} else {
		for (size_t i = 0; i < seconds.n; i++)
			buf_printf(&hint, "%s%s %s", i ? ", " : "commands are ", words[0],
				   seconds.v[i]);
		buf_puts(&hint, seconds.n ? "; run" : "run");
	}
	buf_printf(&hint, " \"%s help\" for a list of commands", p->name);
	msg = str_printf("unknown command \"%s\"", name);
	p->report_usage_error(cli, msg, hint.data);
	return p->usage_status;
}

/* ---- run ------------------------------------------------------------------------- */

static int check_and_run(const struct program *p, struct cli *cli, const struct command *c, int n,
			 char **args)
{
	if (n < c->min_args)
		return fail_usage(p, cli, c, "missing argument");
	if (c->max_args >= 0 && n > c->max_args && !p->ignores_extra_args)
		return fail_usage(p, cli, c, "too many arguments");
	for (int i = c->max_args; c->max_args >= 0 && i < n; i++)
		fprintf(stderr, "%s: extra argument \"%s\" is ignored\n", p->name, args[i]);
	return p->run(cli, c, args);
}

static int parse_and_run(const struct program *p, struct cli *cli, char **words)
{
	struct line l = find_parts(p, words);
	char *unknown[] = { NULL, NULL };
	struct hw_err e;
	int n;

	/* A wrong option before an unknown command is reported first: the word may be its value. */
	if (!l.command && words[l.first]) {
		memcpy(unknown, words + l.first, sizeof(unknown));
		words[l.first] = NULL;
	}
	n = options_read(l.tables, words, l.first, max_words(&l), NULL, &e);
	if (n < 0)
		return fail_usage(p, cli, l.command, e.msg);
	if (unknown[0])
		return fail_unknown_command(p, cli, unknown);
	if (given.version) {
		puts(p->version);
	} else if (l.help || given.help) {
		if (l.command)
			print_command_help(p, l.command);
		else
			print_help(p, stdout);
	} else if (!l.command) {
		print_help(p, stderr);
		return p->usage_status;
	} else {
		return check_and_run(p, cli, l.command, n, words);
	}
	return EXIT_SUCCESS;
}

/* ---- completion ------------------------------------------------------------------ */

static const struct completion standard_completions[] = {
	{ "FILE", ":file" },
	{ "DIR", ":dir" },
	{ 0 },
};

/* Return: the name of argument number @i in "IMAGE [FILE...]", without brackets and dots; NULL if there
 * is no such argument */
static char *find_arg_name(const char *args, size_t i)
{
	AUTO(hw_strings_free) struct hw_strings names = { 0 };
	const char *name;

	strings_split(args, ' ', &names);
	if (i >= names.n) {
		i = names.n - 1;
		if (!strstr(names.v[i], "..."))
			return NULL;
	}
	name = names.v[i] + strspn(names.v[i], "[");
	return str_ncopy(name, strcspn(name, ".]"));
}

/* @name: the name of an argument or value, or several: "PLUGIN|NETWORK". What a function finds may
 * come from a runtime: only the tables may have words with a colon at the start. */
static void add_values(const struct program *p, struct cli *cli, const char *name, const char *word,
		       struct hw_strings *words)
{
	const struct completion *const tables[] = { p->completions, standard_completions };
	AUTO(hw_strings_free) struct hw_strings names = { 0 };
	struct hw_err ignored;

	strings_split(name, '|', &names);
	for (size_t i = 0; i < ARRAY_SIZE(tables); i++)
		for (const struct completion *c = tables[i]; c->name; c++) {
			AUTO(hw_strings_free) struct hw_strings found = { 0 }, fixed = { 0 };

			if (!strings_has(&names, c->name))
				continue;
			if (c->find)
				c->find(cli, word, &found, &ignored);
			for (size_t j = 0; j < found.n; j++)
				if (found.v[j][0] != ':')
					strings_add(words, found.v[j]);
			if (found.n == 0 && c->words)
				strings_split(c->words, ' ', &fixed);
			for (size_t j = 0; j < fixed.n; j++)
				strings_add(words, fixed.v[j]);
		}
}

/* @n: how many arguments there are before @word. @pending: the option whose value @word is, or NULL */
static void find_completions(const struct program *p, struct cli *cli, const struct line *l, int n,
			     const struct option_entry *pending, const char *word,
			     struct hw_strings *words)
{
	autofree char *arg = NULL;

	if (pending && pending->choice) {
		strings_split(pending->value, '|', words);
	} else if (pending) {
		add_values(p, cli, pending->value, word, words);
	} else if (word[0] == '-' && (size_t)n < max_words(l)) {
		for (const struct option_entry *const *t = l->tables; *t; t++)
			for (const struct option_entry *o = *t; o->name; o++) {
				autofree char *option = str_printf("--%s", o->name);

				strings_add(words, option);
			}
	} else if (!l->command && n <= 1) {
		add_command_words(p, n ? l->words[0] : NULL, words);
		if (n == 0 && !l->help)
			strings_add(words, "help");
	} else if (l->command && !l->help) {
		arg = find_arg_name(l->command->args, (size_t)n);
		if (arg)
			add_values(p, cli, arg, word, words);
	}
}

/* bash inserts a completion as it is: a name like "$(reboot)" must not get into the command line. */
static bool is_safe_in_shell(const char *word)
{
	return !strpbrk(word, " \t\n!\"#$&'()*;<>?[\\]^`{|}~");
}

/* Return: true if @word tells the shell to list files */
static bool is_file_list(const char *word)
{
	return str_equal(word, ":file") || str_equal(word, ":dir");
}

/* @words: the last one is incomplete. Of "--name=val" only "val" is: "--name" is then parsed like an
 * option whose value is missing. */
static int print_completions(const struct program *p, struct cli *cli, char **words)
{
	AUTO(hw_strings_free) struct hw_strings found = { 0 };
	autofree char *prefix = str_copy("");
	const struct option_entry *pending;
	const char *word = "";
	struct hw_err ignored;
	char *value = NULL;
	size_t last = 0;
	struct line l;
	int n;

	while (words[last] && words[last + 1])
		last++;
	if (words[last] && str_starts(words[last], "--"))
		value = strchr(words[last], '=');
	if (value) {
		free(prefix);
		prefix = str_ncopy(words[last], (size_t)(value - words[last]) + 1);
		word = value + 1;
		*value = '\0';
	} else if (words[last]) {
		word = words[last];
		words[last] = NULL;
	}
	l = find_parts(p, words);
	n = options_read(l.tables, words, l.first, max_words(&l), &pending, &ignored);
	if (n < 0)
		return EXIT_FAILURE;
	if (!value || pending)
		find_completions(p, cli, &l, n, pending, word, &found);
	for (size_t i = 0; i < found.n; i++)
		if (is_file_list(found.v[i]))
			puts(found.v[i]);
		else if (str_starts(found.v[i], word) && is_safe_in_shell(found.v[i]))
			printf("%s%s\n", prefix, found.v[i]);
	return EXIT_SUCCESS;
}

/* ---- main ------------------------------------------------------------------------ */

int command_main(const struct program *p, struct cli *cli, char **argv)
{
	const struct sigaction ignore = { .sa_handler = SIG_IGN };
	char **words = argv[0] ? argv + 1 : argv;
	struct hw_err e;
	int status;

	given.help = given.version = false;
	file_open_missing_stdio(O_RDWR);
	value_seed();
	sigaction(SIGPIPE, &ignore, NULL); /* a write to a closed pipe then fails with EPIPE */
	if (str_equal(words[0], "__complete"))
		status = print_completions(p, cli, words + 1);
	else
		status = parse_and_run(p, cli, words);
	if (file_flush_stdout(&e) == 0)
		return status;
	fprintf(stderr, "%s: %s\n", p->name, e.msg);
	return EXIT_FAILURE;
}
