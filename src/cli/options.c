/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/options.c - options of a command line, described by const tables
 *
 * How:   getopt_long(3) with tables made of ours; an option's number in them is
 *        its place, counted from FIRST, so that letters stay apart.
 */
#include "cli/options.h"

#include <assert.h>
#include <errno.h>
#include <getopt.h>
#include <limits.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/str.h"

#define FIRST	    256
#define ENTRIES_MAX 32
#define HELP_COLUMN 36

struct reader {
	const struct option_entry *entries[ENTRIES_MAX];
	struct option options[ENTRIES_MAX + 1];
	struct buf letters;
	size_t n;
};

static void add_entry(struct reader *r, const struct option_entry *entry)
{
	assert(r->n < ENTRIES_MAX);
	r->options[r->n] = (struct option){
		.name = entry->name,
		.has_arg = entry->value ? required_argument : no_argument,
		.val = FIRST + (int)r->n,
	};
	r->entries[r->n++] = entry;
	if (entry->letter)
		buf_printf(&r->letters, "%c%s", entry->letter, entry->value ? ":" : "");
}

static const struct option_entry *find_entry(const struct reader *r, int option)
{
	for (size_t i = 0; i < r->n; i++)
		if (option == FIRST + (int)i || option == r->entries[i]->letter)
			return r->entries[i];
	return NULL;
}

static int take_seconds(const struct option_entry *entry, const char *text, int *ret,
			struct hw_err *e)
{
	long long seconds;

	if (!str_to_int64(text, 0, INT_MAX / 1000, &seconds))
		return err_text(e, -EINVAL, "--%s wants seconds, not \"%s\"", entry->name, text);
	*ret = (int)seconds;
	return 0;
}

static int take(const struct option_entry *entry, const char *text, void *out, struct hw_err *e)
{
	void *at = (char *)out + entry->at;

	switch (entry->kind) {
	case OPTION_FLAG:
		*(bool *)at = true;
		return 0;
	case OPTION_TEXT:
		*(const char **)at = text;
		return 0;
	case OPTION_TEXTS:
		strings_add(at, text);
		return 0;
	default:
		return take_seconds(entry, text, at, e);
	}
}

/* getopt() keeps the letter of an option that it knows or that is one letter alone; of a long one
 * that it does not know only the word itself tells. */
static int refuse(int option, char **argv, struct hw_err *e)
{
	const char *why = option == ':' ? "wants a value" : "is no option here";

	if (optopt > 0 && optopt < FIRST && !str_starts(argv[optind - 1], "--"))
		return err_text(e, -EINVAL, "-%c %s", optopt, why);
	return err_text(e, -EINVAL, "%s %s", argv[optind - 1], why);
}

static int read_all(const struct reader *r, int argc, char **argv, void *out, struct hw_err *e)
{
	const struct option_entry *entry;
	int option, result;

	optind = 0; /* GNU: begin anew */
	opterr = 0;
	while ((option = getopt_long(argc, argv, r->letters.data, r->options, NULL)) >= 0) {
		entry = find_entry(r, option);
		result = entry ? take(entry, optarg, out, e) : refuse(option, argv, e);
		if (result < 0)
			return result;
	}
	return 0;
}

/**
 * options_read() - options of a command line into a struct
 * @tables:     a NULL ends them
 * @argc:       with the program's name, or another word that is skipped
 * @argv:       words may change places
 * @first_word: stop at the first word that is no option
 * @out:        the struct
 * @ret_next:   index of the first word that is no option
 * @e:          the error
 */
int options_read(const struct option_entry *const *tables, int argc, char **argv, bool first_word,
		 void *out, int *ret_next, struct hw_err *e)
{
	struct reader r = { .n = 0 };
	int result;

	buf_puts(&r.letters, first_word ? "+:" : ":");
	for (; *tables; tables++)
		for (const struct option_entry *entry = *tables; entry->name; entry++)
			add_entry(&r, entry);
	result = read_all(&r, argc, argv, out, e);
	buf_done(&r.letters);
	*ret_next = optind;
	return result;
}

/**
 * options_help() - a line for each option of a table
 */
void options_help(const struct option_entry *table, FILE *out)
{
	for (; table->name; table++) {
		int width = table->letter ? fprintf(out, "  -%c, ", table->letter)
					  : fprintf(out, "      ");

		width += fprintf(out, "--%s%s%s", table->name, table->value ? " " : "",
				 str_or(table->value, ""));
		fprintf(out, "%*s%s\n", width < HELP_COLUMN ? HELP_COLUMN - width : 1, "",
			table->help);
	}
}

/**
 * options_done() - free what reading allocated
 */
void options_done(const struct option_entry *const *tables, void *out)
{
	for (; *tables; tables++)
		for (const struct option_entry *entry = *tables; entry->name; entry++)
			if (entry->kind == OPTION_TEXTS)
				hw_strings_free((void *)((char *)out + entry->at));
}
