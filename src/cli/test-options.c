/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/test-options.c - parsing of command-line options
 */
#include "cli/options.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the headers above */
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"

static struct {
	bool quiet, all;
	const char *output;
	struct hw_strings names;
	int timeout, format, depth;
} given;

static const struct option_entry common[] = {
	{ "timeout", 0, "SECONDS", "how long", .seconds = &given.timeout },
	{ "quiet", 'q', .help = "say less", .flag = &given.quiet },
	{ 0 },
};

static const struct option_entry own[] = {
	{ "output", 'o', "FILE", "where", .text = &given.output },
	{ "name", 0, "NAME", "what", .texts = &given.names },
	{ "names-only", 'a', .help = "names", .flag = &given.all },
	{ "format", 0, "oci|docker|tar", "which", .choice = &given.format },
	{ "depth", 0, "N", "how far", .number = &given.depth },
	{ 0 },
};

static const struct option_entry *const tables[] = { common, own, NULL };
static struct hw_err e;

static int forget(void **state)
{
	(void)state;
	hw_strings_free(&given.names);
	memset(&given, 0, sizeof(given));
	return 0;
}

#define WORDS(...) ((char *[]){ __VA_ARGS__, NULL })

/* The line is split at spaces; *ret_words is the words that are not options, joined again. */
static int read_line(const char *line, const struct option_entry **ret_pending, char **ret_words)
{
	static char words[200];
	AUTO(hw_strings_free) struct hw_strings list = { 0 };
	char *argv[20] = { NULL };
	int n;

	forget(NULL);
	strings_split(line, ' ', &list);
	for (size_t i = 0; i < list.n; i++)
		argv[i] = list.v[i];
	n = options_read(tables, argv, 0, SIZE_MAX, ret_pending, &e);
	words[0] = '\0';
	for (int i = 0; i < n; i++)
		snprintf(words + strlen(words), sizeof(words) - strlen(words), "%s%s", i ? " " : "",
			 argv[i]);
	if (ret_words)
		*ret_words = words;
	if (given.output)
		given.output = "(freed)";
	return n;
}

static void assert_error(const char *line, const char *msg)
{
	assert_int_equal(read_line(line, NULL, NULL), -EINVAL);
	assert_string_equal(e.msg, msg);
}

static void test_all_types(void **state)
{
	char **argv = WORDS((char *)"word", (char *)"-qo", (char *)"f", (char *)"--name=a=b",
			    (char *)"--timeout", (char *)"7", (char *)"--name", (char *)"-q",
			    (char *)"--format", (char *)"docker", (char *)"more");

	(void)state;
	assert_int_equal(options_read(tables, argv, 0, SIZE_MAX, NULL, &e), 2);
	assert_string_equal(argv[0], "word");
	assert_string_equal(argv[1], "more");
	assert_null(argv[2]);
	assert_true(given.quiet);
	assert_false(given.all);
	assert_string_equal(given.output, "f");
	assert_int_equal(given.names.n, 2);
	assert_string_equal(given.names.v[0], "a=b");
	assert_string_equal(given.names.v[1], "-q");
	assert_int_equal(given.timeout, 7);
	assert_int_equal(given.format, 2);
}

static void test_words(void **state)
{
	char *words;

	(void)state;
	assert_int_equal(read_line("- -q -- -a -- x", NULL, &words), 4);
	assert_string_equal(words, "- -a -- x");
	assert_true(given.quiet);
	assert_false(given.all);
	assert_int_equal(read_line("-qaof x", NULL, &words), 1);
	assert_true(given.quiet && given.all && given.output);
	assert_string_equal(words, "x");
}

static void test_short_names(void **state)
{
	(void)state;
	assert_int_equal(read_line("--time 8 --out=f", NULL, NULL), 0);
	assert_int_equal(given.timeout, 8);
	assert_non_null(given.output);
	/* a complete name is not ambiguous */
	assert_int_equal(read_line("--name x", NULL, NULL), 0);
	assert_int_equal(given.names.n, 1);
	assert_error("--na x", "option --na is ambiguous: --name or --names-only");
}

static void test_errors(void **state)
{
	(void)state;
	assert_error("--bogus", "unknown option --bogus");
	assert_error("--bogus=1", "unknown option --bogus");
	assert_error("--timeuot=1", "unknown option --timeuot: did you mean --timeout?");
	assert_error("-z", "unknown option -z");
	assert_error("-qz", "unknown option -z");
	assert_error("-o", "option -o requires a value");
	assert_error("--output", "option --output requires a value");
	assert_error("--quiet=yes", "option --quiet takes no value");
}

static void test_invalid_values(void **state)
{
	static const char *const invalid[] = { "soon", "-1", "", "1s", "2147484" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(invalid); i++) {
		autofree char *line = str_printf("--timeout=%s", invalid[i]);
		autofree char *msg = str_printf("invalid value \"%s\" for --timeout: want a number "
						"of seconds from 0 to 2147483",
						invalid[i]);

		assert_error(line, msg);
	}
	assert_int_equal(read_line("--timeout 2147483", NULL, NULL), 0);
	assert_int_equal(read_line("--depth 2147483647", NULL, NULL), 0);
	assert_int_equal(given.depth, 2147483647);
	assert_error("--depth all",
		     "invalid value \"all\" for --depth: want a number from 0 to 2147483647");
	assert_error("--format zip", "invalid value \"zip\" for --format: want oci, docker or tar");
	assert_error("--format oci|docker",
		     "invalid value \"oci|docker\" for --format: want oci, docker or tar");
}

static void test_twice(void **state)
{
	(void)state;
	assert_error("--timeout 1 x --timeout 1", "option --timeout is given twice");
	assert_error("-o a --output=b", "option --output is given twice");
	assert_error("--format oci --format oci", "option --format is given twice");
	assert_int_equal(read_line("-qq --quiet --name a --name b", NULL, NULL), 0);
	assert_int_equal(given.names.n, 2);
}

static void test_pending(void **state)
{
	const struct option_entry *pending;

	(void)state;
	assert_int_equal(read_line("x --format", &pending, NULL), 1);
	assert_ptr_equal(pending, &own[3]);
	assert_int_equal(read_line("-qo", &pending, NULL), 0);
	assert_ptr_equal(pending, &own[0]);
	assert_int_equal(read_line("-o x", &pending, NULL), 0);
	assert_null(pending);
}

static void test_split(void **state)
{
	char **argv = WORDS((char *)"-o", (char *)"word");
	const struct option_entry *pending;

	(void)state;
	assert_int_equal(options_read(tables, argv, 1, SIZE_MAX, &pending, &e), -EINVAL);
	assert_string_equal(e.msg, "option -o requires a value");
	assert_int_equal(options_read(tables, argv, 2, SIZE_MAX, &pending, &e), 0);
	assert_string_equal(given.output, "word");
}

static void test_first_word(void **state)
{
	static const struct {
		const char *line;
		size_t expected;
	} cases[] = {
		{ "word -q", 0 },
		{ "-q word", 1 },
		{ "-o f word", 2 },
		{ "-of word", 1 },
		{ "-qo f word", 2 },
		{ "--output f word", 2 },
		{ "--out f word", 2 },
		{ "--output=f word", 1 },
		{ "--unknown word", 1 },
		{ "-z word", 1 },
		{ "-q", 1 },
		{ "--output", 1 },
		{ "- word", 0 },
		{ "-- word", 1 },
		{ "-q -- -o f word", 2 },
		{ "-o -- word", 2 },
		{ "--", 1 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		AUTO(hw_strings_free) struct hw_strings list = { 0 };

		strings_split(cases[i].line, ' ', &list);
		strings_add(&list, NULL);
		assert_int_equal(options_first_word(tables, list.v), cases[i].expected);
	}
}

static void test_help(void **state)
{
	char *text;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	(void)state;
	options_help(own, out);
	fclose(out);
	assert_string_equal(text, "  -o, --output FILE                 where\n"
				  "      --name NAME                   what\n"
				  "  -a, --names-only                  names\n"
				  "      --format oci|docker|tar       which\n"
				  "      --depth N                     how far\n");
	free(text);
}

#define TEST(name, function)                                                                       \
	{                                                                                          \
		name, function, NULL, forget, NULL                                                 \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST("options: flags, texts, lists, seconds and choices are stored in their "
		     "variables",
		     test_all_types),
		TEST("options: words before, between and after options keep their order",
		     test_words),
		TEST("options: a long option may be shortened if it is unambiguous",
		     test_short_names),
		TEST("options: an error names the option that is unknown or incomplete",
		     test_errors),
		TEST("options: an invalid value is rejected with the values that are valid",
		     test_invalid_values),
		TEST("options: an option with one value cannot be given twice", test_twice),
		TEST("options: an option whose value is still missing is found", test_pending),
		TEST("options: an option does not take a word behind the split as its value",
		     test_split),
		TEST("options: the first word is found behind options and their values",
		     test_first_word),
		TEST("options: help has an aligned line for each option", test_help),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
