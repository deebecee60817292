/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/hawser/hawser.c - command-line client for container images
 *
 * What:  a table of commands; the other files of this folder have the commands. Those
 *        that need only CRI work with any runtime. The others need the API hawser.v1,
 *        and fail with a clear message if the runtime does not support it.
 * How:   main() parses the options before and after the command into a struct cli,
 *        runs the command and reports its error.
 * Rules: the exit status is 0 or 1.
 */
#include "cli/hawser/hawser.h"

#include <ctype.h>
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

#define RUNTIME	       "unix:/run/hawser/cri.sock"
#define SUMMARY_COLUMN 28

static const struct cli_command *const commands[] = {
	&pull_command,	  &images_command,  &rmi_command,  &inspect_command,
	&history_command, &verify_command,  &load_command, &save_command,
	&info_command,	  &version_command, NULL,
};

static const struct option_entry global_options[] = {
	{ "runtime", 0, OPTION_TEXT, offsetof(struct cli, runtime), "unix:PATH",
	  "socket of the runtime (default: " RUNTIME ")" },
	{ "json", 0, OPTION_FLAG, offsetof(struct cli, json), NULL,
	  "print results and errors as JSON" },
	{ "timeout", 0, OPTION_SECONDS, offsetof(struct cli, timeout), "SECONDS",
	  "timeout of a call, 0: no timeout (default: 60, long calls: 3600)" },
	{ "help", 'h', OPTION_FLAG, offsetof(struct cli, help), NULL, "print help" },
	{ "version", 'V', OPTION_FLAG, offsetof(struct cli, version), NULL,
	  "print the version of hawser" },
	{ 0 },
};

/* ---- help ------------------------------------------------------------------------ */

static int print_help(FILE *out)
{
	fputs("usage: hawser [OPTIONS] COMMAND [ARGUMENTS]\n\n"
	      "Manage the images of a container runtime: hawser-cri, or another CRI runtime.\n\n"
	      "commands:\n",
	      out);
	for (const struct cli_command *const *c = commands; *c; c++) {
		int width = fprintf(out, "  %s %s", (*c)->name, (*c)->args);

		fprintf(out, "%*s%s\n", width < SUMMARY_COLUMN ? SUMMARY_COLUMN - width : 1, "",
			(*c)->summary);
	}
	fputs("\noptions:\n", out);
	options_help(global_options, out);
	fputs("\nRun \"hawser help COMMAND\" for the options of a command and for examples.\n",
	      out);
	return EXIT_SUCCESS;
}

static int print_command_help(const struct cli_command *c)
{
	printf("usage: hawser [OPTIONS] %s%s%s\n\n", c->name, *c->args ? " " : "", c->args);
	printf("%c%s.\n\n%s\noptions:\n", toupper((unsigned char)c->summary[0]), c->summary + 1,
	       c->help);
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

/* *ret_used: how many of @words belong to the name of the command, 1 or 2 */
static const struct cli_command *find_command(char **words, int *ret_used)
{
	for (const struct cli_command *const *c = commands; *c; c++) {
		const char *space = strchr((*c)->name, ' ');
		size_t first = strcspn((*c)->name, " ");

		if (!words[0] || strlen(words[0]) != first ||
		    memcmp(words[0], (*c)->name, first) != 0 ||
		    (space && !str_equal(words[1], space + 1)))
			continue;
		*ret_used = space ? 2 : 1;
		return *c;
	}
	return NULL;
}

static int fail_unknown_command(const struct cli *cli, const char *word)
{
	AUTO(buf_done) struct buf hint = { 0 };
	autofree char *msg = str_printf("unknown command \"%s\"", word);

	for (const struct cli_command *const *c = commands; *c; c++)
		buf_printf(&hint, "%s%s", c == commands ? "commands are " : ", ", (*c)->name);
	buf_printf(&hint, "; run \"hawser help\" for help");
	report_usage_error(cli, msg, buf_take(&hint));
	return EXIT_FAILURE;
}

static int fail_usage(const struct cli *cli, const char *why)
{
	const struct cli_command *c = cli->command;
	char *hint =
		c ? str_printf("usage: hawser [OPTIONS] %s%s%s; run \"hawser help %s\" for help",
			       c->name, *c->args ? " " : "", c->args, c->name)
		  : str_copy("run \"hawser help\" for a list of options");

	report_usage_error(cli, why, hint);
	return EXIT_FAILURE;
}

static int run_command(struct cli *cli, int argc, char **args)
{
	const struct cli_command *c = cli->command;
	struct hw_err e;
	int r;

	if (argc < c->min_args)
		return fail_usage(cli, "missing argument");
	if (c->max_args >= 0 && argc > c->max_args)
		return fail_usage(cli, "too many arguments");
	r = runtime_socket(cli->runtime, &cli->socket, &e);
	if (r == 0)
		r = c->run(cli, args, &e);
	if (r < 0)
		report_error(cli, &e);
	rpc_client_close(cli->client);
	return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* @words: the words of the command line from the command on */
static int parse_and_run_command(struct cli *cli, int argc, char **words)
{
	const struct option_entry *tables[] = { global_options, NULL, NULL };
	struct hw_err e;
	int used, next, status;

	cli->command = find_command(words, &used);
	if (!cli->command)
		return words[0] ? fail_unknown_command(cli, words[0]) : print_help(stdout);
	tables[1] = cli->command->options;
	/* options_read() skips words[0], so words[0] must be the last word of the command's name. */
	argc -= used - 1;
	words += used - 1;
	if (options_read(tables, argc, words, false, cli, &next, &e) < 0)
		status = fail_usage(cli, e.msg);
	else if (cli->help)
		status = print_command_help(cli->command);
	else if (cli->version)
		status = print_version();
	else
		status = run_command(cli, argc - next, words + next);
	options_done(tables, cli);
	return status;
}

static int parse_and_run(int argc, char **argv)
{
	static const struct option_entry *const tables[] = { global_options, NULL };
	const char *endpoint = getenv("CONTAINER_RUNTIME_ENDPOINT"); /* as in crictl */
	struct cli cli = { .runtime = str_empty(endpoint) ? RUNTIME : endpoint, .timeout = -1 };
	struct hw_err e;
	int next;

	if (options_read(tables, argc, argv, true, &cli, &next, &e) < 0)
		return fail_usage(&cli, e.msg);
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
	return parse_and_run_command(&cli, argc - next, argv + next);
}

int main(int argc, char **argv)
{
	const struct sigaction ignore = { .sa_handler = SIG_IGN };
	int status;

	file_open_missing_stdio(O_RDWR);
	value_seed();
	sigaction(SIGPIPE, &ignore, NULL); /* a write to a closed pipe then fails with EPIPE */
	status = parse_and_run(argc, argv);
	if (fflush(stdout) == 0)
		return status;
	fprintf(stderr, "hawser: write to standard output: %s\n", strerrordesc_np(errno));
	return EXIT_FAILURE;
}
