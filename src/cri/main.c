/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cri/main.c - the program hawser-cri
 *
 * What:  serves CRI v1 on a unix socket. Here: arguments, the log, and what a
 *        process must settle before it has threads.
 * Rules: exit status 0 after a signal, 1 after an error, which is told once.
 */
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/os/file.h"
#include "base/str.h"
#include "cri/config/flags.h"
#include "cri/daemon.h"

/* Each layer of a pull has one open in the daemon. More would be slow for children that close all
 * that they might have. */
#define DESCRIPTORS 65536

/* An arena for each thread would keep what the thread has used, for good. */
#define ARENAS 2

static enum log_format choose_format(const char *name)
{
	if (str_equal(name, "json"))
		return LOG_JSON;
	if (str_equal(name, "journal") || (str_equal(name, "auto") && getenv("JOURNAL_STREAM")))
		return LOG_JOURNAL;
	return LOG_TEXT;
}

static void start_log(const struct config *c)
{
	enum log_level level = LOG_INFO;

	log_level_parse(c->log_level, &level);
	log_setup("hawser-cri", level, choose_format(c->log_format));
}

static void raise_limit(void)
{
	struct rlimit l;

	if (getrlimit(RLIMIT_NOFILE, &l) < 0 || l.rlim_cur >= DESCRIPTORS)
		return;
	l.rlim_cur = l.rlim_max < DESCRIPTORS ? l.rlim_max : DESCRIPTORS;
	setrlimit(RLIMIT_NOFILE, &l);
}

static int serve(const struct config_source *source, struct config *config, struct hw_err *e)
{
	const struct sigaction ignore = { .sa_handler = SIG_IGN };

	start_log(config);
	mallopt(M_ARENA_MAX, ARENAS);
	raise_limit();
	sigaction(SIGPIPE, &ignore, NULL);
	umask(022);
	return daemon_run(source, config, e);
}

static int print(const char *text)
{
	return fputs(text, stdout) < 0 || fflush(stdout) != 0 ? -EIO : 0;
}

static int print_config(const struct config *c)
{
	autofree char *text = config_format(c);

	return print(text);
}

static int print_help(void)
{
	autofree char *text = flags_help();

	return print(text);
}

static int with_config(const struct flags *flags, struct hw_err *e)
{
	const struct config_source source = { flags->file, flags->file_given, flags->values };
	AUTO(config_unref) struct config *config = NULL;
	int r = config_load(&source, &config, e);

	if (r < 0 || flags->what == FLAGS_CHECK)
		return r;
	if (flags->what == FLAGS_SERVE)
		return serve(&source, take_ptr(config), e);
	r = print_config(config);
	return r < 0 ? err_set(e, r, "print") : 0;
}

static int run(const struct flags *flags, struct hw_err *e)
{
	int r;

	switch (flags->what) {
	case FLAGS_HELP:
		r = print_help();
		return r < 0 ? err_set(e, r, "print") : 0;
	case FLAGS_VERSION:
		r = print("hawser-cri " HAWSER_VERSION "\n");
		return r < 0 ? err_set(e, r, "print") : 0;
	default:
		return with_config(flags, e);
	}
}

int main(int argc, char **argv)
{
	AUTO(flags_done) struct flags flags = { 0 };
	struct hw_err e;

	file_fill_standard(O_RDWR);
	value_seed();
	if (flags_parse(argc, argv, &flags, &e) == 0 && run(&flags, &e) == 0)
		return EXIT_SUCCESS;
	log_error("%s", e.msg);
	return EXIT_FAILURE;
}
