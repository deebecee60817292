/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/options.c - command-line options, described by const tables
 *
 * How:   getopt_long(3). The value that it returns for a long option is the option's
 *        index plus FIRST, so that it cannot be mistaken for the letter of a short
 *        option.
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

static int set_member(const struct option_entry *entry, const char *text, void *out,
		      struct hw_err *e)
{
	void *at = (char *)out + entry->at;
	long long seconds;

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
		if (!str_to_int64(text, 0, INT_MAX / 1000, &seconds))
			return err_text(e, -EINVAL,
					"invalid value \"%s\" for --%s: want a number of seconds",
					text, entry->name);
		*(int *)at = (int)seconds;
		return 0;
	}
}

/* After an error in a long option, optopt is 0 or the option's number, not a letter. The name for the
 * message is then taken from argv. */
static int error_from_getopt(int option, char **argv, struct hw_err *e)
{
	bool is_letter = optopt > 0 && optopt < FIRST && !str_starts(argv[optind - 1], "--");
	char letter[] = { '-', (char)optopt, '\0' };
	const char *name = is_letter ? letter : argv[optind - 1];

	if (option == ':')
		return err_text(e, -EINVAL, "option %s requires a value", name);
	return err_text(e, -EINVAL, "unknown option %s", name);
}

int options_read(const struct option_entry *const *tables, int argc, char **argv, bool stop_at_word,
		 void *out, int *ret_next, struct hw_err *e)
{
	const struct option_entry *entries[ENTRIES_MAX];
	struct option options[ENTRIES_MAX + 1] = { 0 };
	AUTO(buf_done) struct buf letters = { 0 };
	int option, r = 0;
	size_t n = 0;

	buf_puts(&letters, stop_at_word ? "+:" : ":");
	for (; *tables; tables++)
		for (const struct option_entry *entry = *tables; entry->name; entry++) {
			assert(n < ENTRIES_MAX);
			options[n] = (struct option){
				.name = entry->name,
				.has_arg = entry->value ? required_argument : no_argument,
				.val = FIRST + (int)n,
			};
			entries[n++] = entry;
			if (entry->letter)
				buf_printf(&letters, "%c%s", entry->letter,
					   entry->value ? ":" : "");
		}
	optind = 0; /* GNU extension: reset getopt */
	opterr = 0;
	while (r == 0 && (option = getopt_long(argc, argv, letters.data, options, NULL)) >= 0) {
		size_t i = 0;

		while (i < n && option != FIRST + (int)i && option != entries[i]->letter)
			i++;
		r = i < n ? set_member(entries[i], optarg, out, e)
			  : error_from_getopt(option, argv, e);
	}
	*ret_next = optind;
	return r;
}

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

void options_done(const struct option_entry *const *tables, void *out)
{
	for (; *tables; tables++)
		for (const struct option_entry *entry = *tables; entry->name; entry++)
			if (entry->kind == OPTION_TEXTS)
				hw_strings_free((void *)((char *)out + entry->at));
}
