/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/test-command.c - a program with commands: parsing, help, errors, completion
 */
#include "cli/command.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the headers above */
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/str.h"

struct cli {
	const char *ran;
	struct buf seen; /* arguments of the command, or error and hint */
};

static struct {
	const char *socket;
	bool json, force;
	int format;
} given;

static struct cli cli;

static const struct option_entry program_options[] = {
	{ "socket", 's', "DIR", "where", .text = &given.socket },
	{ "json", .help = "as JSON", .flag = &given.json },
	{ 0 },
};

static const struct option_entry rm_options[] = {
	{ "force", 'f', .help = "really", .flag = &given.force },
	{ "format", 0, "oci|docker", "how", .choice = &given.format },
	{ 0 },
};

static int run_any(struct cli *c, char **args, struct hw_err *e)
{
	(void)e;
	for (; *args; args++)
		buf_printf(&c->seen, "<%s>", *args);
	return 0;
}

static const struct command pull = {
	.name = "pull",
	.alias = "image get",
	.args = "IMAGE",
	.min_args = 1,
	.max_args = 1,
	.summary = "pull an image",
	.help = "Details.\n",
	.run = run_any,
};

static const struct command rm = {
	.name = "image rm",
	.group = "images",
	.args = "IMAGE...",
	.min_args = 1,
	.max_args = -1,
	.summary = "remove images",
	.help = "More details.\n",
	.options = rm_options,
	.run = run_any,
};

static const struct command check = {
	.name = "image check",
	.group = "images",
	.args = "[CRATE]",
	.max_args = 1,
	.summary = "check a file",
	.help = "No details.\n",
	.run = run_any,
};

static const struct command run_words = {
	.name = "run",
	.args = "IMAGE [WORD...]",
	.min_args = 1,
	.max_args = -1,
	.runs_words = true,
	.summary = "run a program",
	.help = "Few details.\n",
	.options = rm_options,
	.run = run_any,
};

static const struct command *const commands[] = { &pull, &run_words, &rm, &check, NULL };

static int find_images(struct cli *c, const char *word, struct hw_strings *words, struct hw_err *e)
{
	(void)c;
	(void)word;
	(void)e;
	strings_add(words, "busybox:1");
	strings_add(words, "zoo@2");
	strings_add(words, "zoo$(reboot)");
	strings_add(words, ":$(reboot)");
	strings_add(words, ":file");
	return 0;
}

static int find_crates(struct cli *c, const char *word, struct hw_strings *words, struct hw_err *e)
{
	(void)c;
	(void)e;
	if (!*word)
		strings_add(words, "crate");
	return 0;
}

static const struct completion completions[] = {
	{ "IMAGE", .find = find_images },
	{ "CRATE", ":file", .find = find_crates },
	{ 0 },
};

static void report(const struct cli *c, const char *msg, const char *hint)
{
	(void)c;
	buf_printf(&cli.seen, "%s | %s", msg, hint);
}

static int run_command(struct cli *c, const struct command *command, char **args)
{
	struct hw_err e;

	c->ran = command->name;
	return command->run(c, args, &e);
}

static const struct program program = {
	.name = "ship",
	.version = "ship 1.2",
	.summary = "Does things.",
	.environment = "  SHIP  a variable\n",
	.commands = commands,
	.options = program_options,
	.completions = completions,
	.usage_status = 2,
	.report_usage_error = report,
	.run = run_command,
};

/* What the last call of run() wrote to standard output and standard error. */
static char *output, *errors;

static int forget(void **state)
{
	(void)state;
	free(output);
	free(errors);
	output = errors = NULL;
	buf_done(&cli.seen);
	cli = (struct cli){ 0 };
	memset(&given, 0, sizeof(given));
	return 0;
}

/* @line is split at spaces. Return: the exit status */
static int run(const struct program *p, const char *line)
{
	static struct hw_strings words; /* the options point into it */
	FILE *out = stdout, *err = stderr;
	size_t n_output, n_errors;
	char *argv[20] = { NULL };
	int status;

	forget(NULL);
	hw_strings_free(&words);
	strings_split(line, ' ', &words);
	memcpy(argv, words.v, words.n * sizeof(*argv));
	stdout = open_memstream(&output, &n_output);
	stderr = open_memstream(&errors, &n_errors);
	status = command_main(p, &cli, argv);
	fclose(stdout);
	fclose(stderr);
	stdout = out;
	stderr = err;
	return status;
}

static void assert_runs(const char *line, const struct command *expected, const char *args)
{
	assert_int_equal(run(&program, line), 0);
	assert_string_equal(cli.ran, expected->name);
	assert_string_equal(str_or(cli.seen.data, ""), args);
}

static void assert_usage_error(const char *line, const char *expected)
{
	assert_int_equal(run(&program, line), 2);
	assert_null(cli.ran);
	assert_string_equal(cli.seen.data, expected);
	assert_string_equal(output, "");
}

static void test_commands(void **state)
{
	(void)state;
	assert_runs("ship pull a", &pull, "<a>");
	assert_runs("ship image get a", &pull, "<a>");
	assert_runs("ship image rm a b", &rm, "<a><b>");
	assert_runs("ship image check", &check, "");
	assert_runs("ship -- image check -a", &check, "<-a>");
	assert_runs("ship -s pull image rm --json -- -f image", &rm, "<-f><image>");
	assert_string_equal(given.socket, "pull");
	assert_true(given.json);
	assert_false(given.force);
}

static void test_options_end_at_the_first_argument(void **state)
{
	(void)state;
	assert_runs("ship -f run a -f --json b", &run_words, "<a><-f><--json><b>");
	assert_true(given.force);
	assert_false(given.json);
	assert_runs("ship run --json a", &run_words, "<a>");
	assert_true(given.json);
	/* one "--" is removed */
	assert_runs("ship run a -- -f -- b", &run_words, "<a><-f><--><b>");
	assert_runs("ship run -- a -- b", &run_words, "<a><--><b>");
	assert_runs("ship run a b -- c", &run_words, "<a><b><--><c>");
}

static void test_options(void **state)
{
	(void)state;
	assert_runs("ship image rm a -f --format docker -s x", &rm, "<a>");
	assert_true(given.force);
	assert_int_equal(given.format, 2);
	assert_string_equal(given.socket, "x");
	/* options before the command, also its own */
	assert_runs("ship -f --format=oci image rm a", &rm, "<a>");
	assert_true(given.force);
	assert_int_equal(given.format, 1);
	assert_usage_error("ship -s x image rm a -s y",
			   "option --socket is given twice | usage: ship [OPTIONS] image rm "
			   "IMAGE...; run \"ship help image rm\" for help");
	assert_usage_error("ship pull a --force",
			   "unknown option --force | usage: ship [OPTIONS] pull IMAGE; run \"ship "
			   "help pull\" for help");
	assert_usage_error("ship --format image rm oci a",
			   "option --format requires a value | usage: ship [OPTIONS] image rm "
			   "IMAGE...; run \"ship help image rm\" for help");
	assert_usage_error("ship --format oci image rm a",
			   "unknown option --format | run \"ship help\" for a list of options");
}

static void test_argument_count(void **state)
{
	struct program lenient = program;

	(void)state;
	assert_usage_error("ship pull", "missing argument | usage: ship [OPTIONS] pull IMAGE; run "
					"\"ship help pull\" for help");
	assert_usage_error("ship image check a b",
			   "too many arguments | usage: ship [OPTIONS] image check [CRATE]; run "
			   "\"ship help image check\" for help");
	lenient.ignores_extra_args = true;
	assert_int_equal(run(&lenient, "ship pull a b c"), 0);
	assert_string_equal(errors, "ship: extra argument \"b\" is ignored\n"
				    "ship: extra argument \"c\" is ignored\n");
	assert_int_equal(run(&lenient, "ship image rm a b c"), 0);
	assert_string_equal(errors, "");
}

static void test_unknown_commands(void **state)
{
	static const struct {
		const char *line, *name, *hint;
	} cases[] = {
		{ "ship bogus", "bogus", "run" },
		{ "ship help bogus", "bogus", "run" },
		{ "ship bogus --bogus", "bogus", "run" },
		{ "ship pul", "pul", "did you mean \"ship pull\"? Run" },
		{ "ship check x", "check", "did you mean \"ship image check\"? Run" },
		{ "ship get x", "get", "did you mean \"ship image get\"? Run" },
		{ "ship image", "image", "commands are image rm, image check; run" },
		{ "ship image --json", "image", "commands are image rm, image check; run" },
		{ "ship image move", "image move", "commands are image rm, image check; run" },
		{ "ship image chekc", "image chekc", "did you mean \"ship image check\"? Run" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		autofree char *expected = str_printf(
			"unknown command \"%s\" | %s \"ship help\" for a list of commands",
			cases[i].name, cases[i].hint);

		assert_usage_error(cases[i].line, expected);
	}
}

static void test_help(void **state)
{
	static const char all[] =
		"usage: ship [OPTIONS] COMMAND [ARGUMENTS]\n\nDoes things.\n\n"
		"commands:\n"
		"  pull IMAGE                pull an image\n"
		"  run IMAGE [WORD...]       run a program\n\n"
		"images:\n"
		"  image rm IMAGE...         remove images\n"
		"  image check [CRATE]       check a file\n\n"
		"options:\n"
		"  -s, --socket DIR                  where\n"
		"      --json                        as JSON\n"
		"  -h, --help                        print help\n"
		"  -V, --version                     print the version\n\n"
		"environment:\n"
		"  SHIP  a variable\n\n"
		"Run \"ship help COMMAND\" for the options of a command and for examples.\n";
	static const char *const lines[] = { "ship help", "ship --help", "ship -h" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		assert_int_equal(run(&program, lines[i]), 0);
		assert_string_equal(output, all);
	}
	assert_int_equal(run(&program, "ship"), 2);
	assert_string_equal(output, "");
	assert_string_equal(errors, all);
}

static void test_command_help(void **state)
{
	static const char *const lines[] = { "ship help image rm", "ship image rm --help",
					     "ship -h image rm x" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		assert_int_equal(run(&program, lines[i]), 0);
		assert_null(cli.ran);
		assert_string_equal(output,
				    "usage: ship [OPTIONS] image rm IMAGE...\n\n"
				    "Remove images.\n\n"
				    "More details.\n\n"
				    "options:\n"
				    "  -f, --force                       really\n"
				    "      --format oci|docker           how\n"
				    "  -s, --socket DIR                  where\n"
				    "      --json                        as JSON\n"
				    "  -h, --help                        print help\n"
				    "  -V, --version                     print the version\n");
	}
	assert_int_equal(run(&program, "ship help image get"), 0);
	assert_non_null(strstr(output, "Pull an image.\n"
				       "The command is also available as \"ship image get\".\n"));
	assert_int_equal(run(&program, "ship pull --version"), 0);
	assert_string_equal(output, "ship 1.2\n");
}

static void test_completion(void **state)
{
	static const struct {
		const char *line, *expected;
	} cases[] = {
		{ "", "pull\nrun\nimage\nhelp\n" },
		{ "p", "pull\n" },
		{ "image ", "rm\ncheck\n" },
		{ "help ", "pull\nrun\nimage\n" },
		{ "help image c", "check\n" },
		{ "help pull ", "" },
		{ "-s x pull b", "busybox:1\n" },
		{ "pull ", "busybox:1\nzoo@2\n" },
		{ "pull a ", "" },
		{ "pull :", "" },
		{ "image get z", "zoo@2\n" },
		{ "image rm a b bu", "busybox:1\n" },
		{ "image check ", "crate\n" },
		{ "image check x", ":file\n" },
		{ "image check x ", "" },
		{ "-s x", ":dir\n" },
		{ "image rm --format ", "oci\ndocker\n" },
		{ "image rm --format d", "docker\n" },
		{ "image rm --fo", "--force\n--format\n" },
		{ "image rm --format=", "--format=oci\n--format=docker\n" },
		{ "image rm --format=d", "--format=docker\n" },
		{ "image rm --forma=d", "--forma=docker\n" },
		{ "image rm --format oci --format=d", "" },
		{ "--socket=x", ":dir\n" },
		{ "pull --force=", "" },
		{ "pull --bogus=", "" },
		{ "pull -- --socket=", "" },
		{ "pull -=", "" },
		{ "pull -", "--socket\n--json\n--help\n--version\n" },
		{ "pull --bogus ", "" },
		{ "run a -", "" },
		{ "run --fo", "--force\n--format\n" },
		{ "bogus x ", "" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		autofree char *line = str_printf("ship __complete %s", cases[i].line);

		run(&program, line);
		assert_string_equal(output, cases[i].expected);
	}
	run(&program, "ship __complete");
	assert_string_equal(output, "pull\nrun\nimage\nhelp\n");
}

#define TEST(name, function)                                                                       \
	{                                                                                          \
		name, function, NULL, forget, NULL                                                 \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST("command: a command is found by one word, two words or its alias",
		     test_commands),
		TEST("command: the first argument of a command that runs its arguments ends the "
		     "options",
		     test_options_end_at_the_first_argument),
		TEST("command: options are accepted before and after the command", test_options),
		TEST("command: a wrong number of arguments is refused or, if wanted, ignored",
		     test_argument_count),
		TEST("command: the hint for an unknown command names a similar one",
		     test_unknown_commands),
		TEST("command: the help of a program lists commands by group, and options",
		     test_help),
		TEST("command: the help of a command lists its options and those of all commands",
		     test_command_help),
		TEST("command: commands, options, values and arguments are completed",
		     test_completion),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
