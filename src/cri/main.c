/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cri/main.c - the program hawser-cri
 *
 * What:  parses arguments, starts the log, and makes the settings that must be made
 *        before the first thread starts. The daemon itself is daemon.c.
 * Rules: exit status 0 after SIGTERM or SIGINT, 1 after an error, which is logged once.
 */
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/os/child.h"
#include "base/os/file.h"
#include "base/str.h"
#include "cri/config/flags.h"
#include "cri/daemon.h"
#include "cri/host.h"

/* Limit of open file descriptors. The daemon needs one for each layer of a pull. */
#define DESCRIPTORS 65536

/* Number of malloc arenas. With one per thread, the daemon would keep the peak memory of each
 * thread forever. */
#define ARENAS 2

static void start_log(const struct config *c)
{
	bool auto_format = str_equal(c->log_format, "auto");
	enum log_format format = LOG_TEXT;
	enum log_level level = LOG_INFO;

	if (str_equal(c->log_format, "json"))
		format = LOG_JSON;
	else if (str_equal(c->log_format, "journal") || (auto_format && getenv("JOURNAL_STREAM")))
		format = LOG_JOURNAL;
	log_level_parse(c->log_level, &level);
	log_setup("hawser-cri", level, format);
}

/* Takes ownership of the reference to @config. */
static int serve(const struct config_source *source, struct config *config, struct hw_err *e)
{
	const struct sigaction ignore = { .sa_handler = SIG_IGN };
	int r;

	start_log(config);
	mallopt(M_ARENA_MAX, ARENAS);
	child_raise_files(DESCRIPTORS);
	sigaction(SIGPIPE, &ignore, NULL);
	umask(022);
	r = host_prepare(config, e);
	if (r < 0) {
		shared_unref(config);
		return r;
	}
	return daemon_run(source, config, e);
}

static int print(const char *text, struct hw_err *e)
{
	fputs(text, stdout);
	return file_flush_stdout(e);
}

static int run_action(const struct flags *flags, struct hw_err *e)
{
	const struct config_source source = { flags->file, flags->file_given, flags->values };
	AUTO(shared_unref) struct config *config = NULL;
	autofree char *text = NULL;
	int r;

	if (flags->action == FLAGS_VERSION)
		return print("hawser-cri " HAWSER_VERSION "\n", e);
	if (flags->action == FLAGS_HELP) {
		text = flags_help();
		return print(text, e);
	}
	r = config_load(&source, &config, e);
	if (r < 0 || flags->action == FLAGS_CHECK)
		return r;
	if (flags->action == FLAGS_SERVE)
		return serve(&source, take_ptr(config), e);
	text = config_format(config);
	return print(text, e);
}

int main(int argc, char **argv)
{
	AUTO(flags_done) struct flags flags = { 0 };
	struct hw_err e;

	file_open_missing_stdio(O_RDWR);
	value_seed();
	if (flags_parse(argc, argv, &flags, &e) == 0 && run_action(&flags, &e) == 0)
		return EXIT_SUCCESS;
	log_error("%s", e.msg);
	return EXIT_FAILURE;
}
