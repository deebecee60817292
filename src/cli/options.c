/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/options.c - command-line options, described by const tables
 *
 * How:   the rules of getopt_long(3), in one pass that moves the other words to the
 *        front of the list.
 * Not:   getopt_long() itself, which does not say why an option is wrong.
 */
#include "cli/options.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/text.h"

#define HELP_COLUMN 36
#define SECONDS_MAX (INT_MAX / 1000)
#define ENTRIES_MAX 64

/* @i: the position in all tables together, 0 at first. Return: NULL at the end */
static const struct option_entry *next_entry(const struct option_entry *const *tables, size_t *i)
{
	size_t at = (*i)++;

	for (; *tables; tables++)
		for (const struct option_entry *entry = *tables; entry->name; entry++)
			if (at-- == 0)
				return entry;
	return NULL;
}

/* ---- find an option -------------------------------------------------------------- */

static const struct option_entry *find_letter(const struct option_entry *const *tables, char letter)
{
	const struct option_entry *entry;
	size_t i = 0;

	while ((entry = next_entry(tables, &i)) && entry->letter != letter)
		;
	return entry;
}

/* Finds the option with the name @word, or the only one whose name starts with it. A value after "=" is
 * ignored. Return: 1; 0: not found; -EINVAL: ambiguous */
static int find_long(const struct option_entry *const *tables, const char *word,
		     const struct option_entry **ret, struct hw_err *e)
{
	const struct option_entry *entry, *found = NULL, *other = NULL;
	size_t len = strcspn(word, "="), i = 0;

	while ((entry = next_entry(tables, &i))) {
		if (strncmp(entry->name, word, len) != 0)
			continue;
		other = found;
		found = entry;
		if (!entry->name[len]) {
			other = NULL;
			break;
		}
	}
	if (other)
		return err_text(e, -EINVAL, "option --%.*s is ambiguous: --%s or --%s", (int)len,
				word, other->name, found->name);
	*ret = found;
	return found ? 1 : 0;
}

static int fail_unknown(const struct option_entry *const *tables, const char *word,
			struct hw_err *e)
{
	autofree char *name = str_ncopy(word, strcspn(word, "="));
	const struct option_entry *entry;
	size_t i = 0;

	while ((entry = next_entry(tables, &i)))
		if (text_is_typo(name, entry->name))
			return err_text(e, -EINVAL, "unknown option --%s: did you mean --%s?", name,
					entry->name);
	return err_text(e, -EINVAL, "unknown option --%s", name);
}

/* ---- store a value --------------------------------------------------------------- */

/* Return: 1 for the first word of "oci|docker", 2 for the second; 0 if there is no such word */
static int find_choice(const char *words, const char *text)
{
	AUTO(hw_strings_free) struct hw_strings list = { 0 };

	strings_split(words, '|', &list);
	for (size_t i = 0; i < list.n; i++)
		if (str_equal(list.v[i], text))
			return (int)i + 1;
	return 0;
}

static int fail_choice(const struct option_entry *entry, const char *text, struct hw_err *e)
{
	const char *last = strrchr(entry->value, '|');
	AUTO(buf_done) struct buf b = { 0 };

	for (const char *p = entry->value; *p; p++)
		if (*p != '|')
			buf_putc(&b, *p);
		else
			buf_puts(&b, p == last ? " or " : ", ");
	return err_text(e, -EINVAL, "invalid value \"%s\" for --%s: want %s", text, entry->name,
			b.data);
}

static int set_variable(const struct option_entry *entry, const char *text, struct hw_err *e)
{
	long long n;
	int choice;

	if (entry->flag) {
		*entry->flag = true;
	} else if (entry->text) {
		*entry->text = text;
	} else if (entry->texts) {
		strings_add(entry->texts, text);
	} else if (entry->seconds) {
		if (!str_to_int64(text, 0, SECONDS_MAX, &n))
			return err_text(e, -EINVAL,
					"invalid value \"%s\" for --%s: want a number of seconds "
					"from 0 to %d",
					text, entry->name, SECONDS_MAX);
		*entry->seconds = (int)n;
	} else if (entry->number) {
		if (!str_to_int64(text, 0, INT_MAX, &n))
			return err_text(e, -EINVAL,
					"invalid value \"%s\" for --%s: want a number from 0 to %d",
					text, entry->name, INT_MAX);
		*entry->number = (int)n;
	} else {
		assert(entry->choice && entry->value);
		choice = find_choice(entry->value, text);
		if (!choice)
			return fail_choice(entry, text, e);
		*entry->choice = choice;
	}
	return 0;
}

/* ---- parse ----------------------------------------------------------------------- */

struct reader {
	const struct option_entry *const *tables;
	char **next;	/* words that have not been read yet */
	char **split;	/* the word that an option before it does not take as its value */
	uint64_t given; /* bit i: the entry at position i has been given */
	const struct option_entry **ret_pending;
};

/* Repeating a flag is harmless, but of two values one would be ignored. */
static int check_repeated(struct reader *in, const struct option_entry *entry, struct hw_err *e)
{
	size_t i = 0;
	uint64_t bit;

	while (next_entry(in->tables, &i) != entry)
		;
	assert(i <= ENTRIES_MAX);
	bit = UINT64_C(1) << (i - 1);
	if (in->given & bit && !entry->flag && !entry->texts)
		return err_text(e, -EINVAL, "option --%s is given twice", entry->name);
	in->given |= bit;
	return 0;
}

/* @name: the option as the user wrote it. @value: the value in the same word, or NULL */
static int read_option(struct reader *in, const struct option_entry *entry, const char *name,
		       const char *value, struct hw_err *e)
{
	int r;

	r = check_repeated(in, entry, e);
	if (r < 0)
		return r;
	if (entry->value && !value) {
		if (!*in->next && in->ret_pending) {
			*in->ret_pending = entry;
			return 0;
		}
		if (!*in->next || in->next == in->split)
			return err_text(e, -EINVAL, "option %s requires a value", name);
		value = *in->next++;
	}
	return set_variable(entry, value, e);
}

/* @word: "--name" or "--name=value" */
static int read_long(struct reader *in, const char *word, struct hw_err *e)
{
	const char *equals = strchr(word, '=');
	const struct option_entry *entry;
	int r;

	r = find_long(in->tables, word + 2, &entry, e);
	if (r < 0)
		return r;
	if (r == 0)
		return fail_unknown(in->tables, word + 2, e);
	if (equals && !entry->value)
		return err_text(e, -EINVAL, "option --%s takes no value", entry->name);
	return read_option(in, entry, word, equals ? equals + 1 : NULL, e);
}

/* @word: "-q", "-qo" or "-ofile": the rest of the word is the value of the first option that has one */
static int read_letters(struct reader *in, const char *word, struct hw_err *e)
{
	for (word++; *word; word++) {
		const struct option_entry *entry;
		char name[] = { '-', *word, '\0' };
		int r;

		entry = find_letter(in->tables, *word);
		if (!entry)
			return err_text(e, -EINVAL, "unknown option %s", name);
		r = read_option(in, entry, name, entry->value && word[1] ? word + 1 : NULL, e);
		if (r < 0)
			return r;
		if (entry->value)
			break;
	}
	return 0;
}

static bool is_option(const char *word)
{
	return word[0] == '-' && word[1];
}

int options_read(const struct option_entry *const *tables, char **argv, size_t split,
		 size_t max_words, const struct option_entry **ret_pending, struct hw_err *e)
{
	struct reader in = { tables, argv, argv + split, .ret_pending = ret_pending };
	bool only_words = false, ended = false; /* by "--" */
	int n = 0, r;

	if (ret_pending)
		*ret_pending = NULL;
	while (*in.next) {
		char *word = *in.next++;

		/* "exec NAME -- ls -l" means the same as "exec NAME ls -l" */
		if (only_words && !ended && (size_t)n == max_words && str_equal(word, "--")) {
			ended = true;
		} else if (only_words || !is_option(word)) {
			argv[n++] = word;
			only_words |= (size_t)n >= max_words;
		} else if (str_equal(word, "--")) {
			only_words = ended = true;
		} else {
			r = word[1] == '-' ? read_long(&in, word, e) : read_letters(&in, word, e);
			if (r < 0)
				return r;
		}
	}
	argv[n] = NULL;
	return n;
}

/* Return: true if the value of the option @word, or of the last of its letters, is the next word */
static bool takes_next_word(const struct option_entry *const *tables, const char *word)
{
	const struct option_entry *entry = NULL;
	struct hw_err ignored;

	if (str_starts(word, "--"))
		return !strchr(word, '=') && find_long(tables, word + 2, &entry, &ignored) == 1 &&
		       entry->value;
	for (word++; *word; word++) {
		entry = find_letter(tables, *word);
		if (!entry || entry->value)
			return entry && !word[1];
	}
	return false;
}

size_t options_first_word(const struct option_entry *const *tables, char *const *argv)
{
	size_t i = 0;

	while (argv[i] && is_option(argv[i])) {
		if (str_equal(argv[i], "--"))
			return i + 1;
		if (takes_next_word(tables, argv[i]) && argv[i + 1])
			i++;
		i++;
	}
	return i;
}

/* ---- help ------------------------------------------------------------------------ */

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
