/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/hawser/hawser.c - the program for people: images of a container runtime
 *
 * What:  a table of commands, each in its own file. What needs only CRI works with
 *        any runtime; what needs hawser.v1 says plainly when it is not offered.
 * How:   main() reads options before and behind the command into a struct cli, runs
 *        the command and reports its error once.
 * Rules: exit status 0 or 1.
 */
#include "cli/hawser/hawser.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/os/file.h"
#include "base/str.h"

#define RUNTIME "unix:/run/hawser/cri.sock"

static const struct command *const commands[] = {
	&pull_command,	  &images_command,  &rmi_command,  &inspect_command,
	&history_command, &verify_command,  &load_command, &save_command,
	&info_command,	  &version_command, NULL,
};

static const struct option_entry global_options[] = {
	{ "runtime", 0, OPTION_TEXT, offsetof(struct cli, runtime), "unix:PATH",
	  "the runtime's socket (" RUNTIME ")" },
	{ "json", 0, OPTION_FLAG, offsetof(struct cli, json), NULL,
	  "output and errors for programs" },
	{ "timeout", 0, OPTION_SECONDS, offsetof(struct cli, timeout), "SECONDS",
	  "for each call; 0: none (60; 3600 where it is long)" },
	{ "help", 'h', OPTION_FLAG, offsetof(struct cli, help), NULL,
	  "this, or help for a command" },
	{ "version", 'V', OPTION_FLAG, offsetof(struct cli, version), NULL, "of this program" },
	{ 0 },
};

/* ---- help ------------------------------------------------------------------------ */

static int print_help(FILE *out)
{
	fputs("usage: hawser [OPTIONS] COMMAND [ARGUMENTS]\n\n"
	      "Images of a container runtime: hawser-cri, or another that speaks CRI.\n\n"
	      "commands:\n",
	      out);
	for (const struct command *const *c = commands; *c; c++) {
		int width = fprintf(out, "  %s %s", (*c)->name, (*c)->args);

		fprintf(out, "%*s%s\n", width < 28 ? 28 - width : 1, "", (*c)->summary);
	}
	fputs("\noptions:\n", out);
	options_help(global_options, out);
	fputs("\n\"hawser help COMMAND\" says more.\n", out);
	return EXIT_SUCCESS;
}

static int print_command_help(const struct command *c)
{
	printf("usage: hawser [OPTIONS] %s %s\n\n%s: %s\n\n%s\noptions:\n", c->name, c->args,
	       c->name, c->summary, c->help);
	if (c->options)
		options_help(c->options, stdout);
	options_help(global_options, stdout);
	return EXIT_SUCCESS;
}

static int print_version(void)
{
	puts("hawser " HAWSER_VERSION);
	return EXIT_SUCCESS;
}

/* ---- commands -------------------------------------------------------------------- */

static const char *second_word(const struct command *c)
{
	const char *space = strchr(c->name, ' ');

	return space ? space + 1 : NULL;
}

/* Return: how many of @words name the command; 0: they do not */
static int matches(const struct command *c, char **words)
{
	const char *second = second_word(c);
	size_t first = strcspn(c->name, " ");

	if (!words[0] || strlen(words[0]) != first || memcmp(words[0], c->name, first) != 0)
		return 0;
	if (!second)
		return 1;
	return str_equal(words[1], second) ? 2 : 0;
}

static const struct command *find_command(char **words, int *ret_used)
{
	for (const struct command *const *c = commands; *c; c++) {
		*ret_used = matches(*c, words);
		if (*ret_used)
			return *c;
	}
	return NULL;
}

static int unknown_command(const struct cli *cli, const char *word)
{
	AUTO(buf_done) struct buf hint = { 0 };
	autofree char *msg = str_printf("unknown command \"%s\"", word);

	for (const struct command *const *c = commands; *c; c++)
		buf_printf(&hint, "%s%s", c == commands ? "commands are " : ", ", (*c)->name);
	buf_printf(&hint, "; see hawser --help");
	cli_usage(cli, msg, buf_take(&hint));
	return EXIT_FAILURE;
}

static int bad_usage(const struct cli *cli, const char *why)
{
	const struct command *c = cli->command;

	cli_usage(cli, why,
		  c ? str_printf("usage: hawser [OPTIONS] %s %s; \"hawser help %s\" says more",
				 c->name, c->args, c->name)
		    : str_copy("hawser --help lists the options"));
	return EXIT_FAILURE;
}

static int run_command(struct cli *cli, int argc, char **args)
{
	const struct command *c = cli->command;
	struct hw_err e;
	int r;

	if (argc < c->min_args)
		return bad_usage(cli, "something is missing behind the command");
	if (c->max_args >= 0 && argc > c->max_args)
		return bad_usage(cli, "there is too much behind the command");
	r = runtime_socket(cli->runtime, &cli->socket, &e);
	if (r == 0)
		r = c->run(cli, args, &e);
	if (r < 0)
		cli_report(cli, &e);
	rpc_client_close(cli->client);
	return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* @words: the command's own and all that follows */
static int read_command(struct cli *cli, int argc, char **words)
{
	const struct option_entry *tables[] = { global_options, NULL, NULL };
	struct hw_err e;
	int used, next, status;

	cli->command = find_command(words, &used);
	if (!cli->command)
		return words[0] ? unknown_command(cli, words[0]) : print_help(stdout);
	tables[1] = cli->command->options;
	/* the word before the first option is skipped, as a program's name would be */
	argc -= used - 1;
	words += used - 1;
	if (options_read(tables, argc, words, false, cli, &next, &e) < 0)
		status = bad_usage(cli, e.msg);
	else if (cli->help)
		status = print_command_help(cli->command);
	else if (cli->version)
		status = print_version();
	else
		status = run_command(cli, argc - next, words + next);
	options_done(tables, cli);
	return status;
}

static int run(int argc, char **argv)
{
	static const struct option_entry *const tables[] = { global_options, NULL };
	const char *endpoint = getenv("CONTAINER_RUNTIME_ENDPOINT"); /* as crictl has it */
	struct cli cli = { .runtime = str_empty(endpoint) ? RUNTIME : endpoint, .timeout = -1 };
	struct hw_err e;
	int next;

	if (options_read(tables, argc, argv, true, &cli, &next, &e) < 0)
		return bad_usage(&cli, e.msg);
	if (cli.version)
		return print_version();
	if (str_equal(argv[next], "help")) {
		cli.help = true;
		next++;
	}
	if (!argv[next] && !cli.help) {
		print_help(stderr);
		return EXIT_FAILURE;
	}
	return read_command(&cli, argc - next, argv + next);
}

int main(int argc, char **argv)
{
	const struct sigaction ignore = { .sa_handler = SIG_IGN };
	int status;

	file_fill_standard(O_RDWR);
	value_seed();
	sigaction(SIGPIPE, &ignore, NULL); /* that nobody reads is an error like any other */
	status = run(argc, argv);
	if (fflush(stdout) == 0)
		return status;
	fprintf(stderr, "hawser: write to standard output: %s\n", strerrordesc_np(errno));
	return EXIT_FAILURE;
}
