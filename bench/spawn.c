/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench/spawn.c - time two series of commands, in turns
 *
 * What:  spawn SAMPLES OURS PEER
 *        runs both series once per sample and prints their times, one line
 *        "OURS PEER" in nanoseconds for each.
 * How:   a series is a file of lines, words separated by single blanks:
 *
 *		env NAME=VALUE		for the following commands, which get no other
 *		input FILE		their standard input; else /dev/null
 *		run PROGRAM [ARG...]	by path
 *
 *        posix_spawn() costs little and the same for both; which of the two goes
 *        first changes with every sample. A tenth more is run before, unprinted.
 * Rules: a command that fails ends the run, with what it said: there is nothing
 *        to compare then.
 */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define RUNS_MAX  32
#define WORDS_MAX 64

struct run {
	char *argv[WORDS_MAX + 1];
	char *env[WORDS_MAX + 1];
	const char *input;
};

struct series {
	struct run runs[RUNS_MAX];
	size_t n;
};

static void __attribute__((noreturn, format(printf, 1, 2))) die(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fputs("spawn: ", stderr);
	vfprintf(stderr, fmt, ap);
	fputc('\n', stderr);
	va_end(ap);
	exit(1);
}

static int64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000LL + ts.tv_nsec;
}

/* The words stay in @line, which is never freed: a series lives as long as the program. */
static void split(char *line, char **words)
{
	size_t n = 0;

	for (char *word; (word = strsep(&line, " ")) != NULL;) {
		if (n == WORDS_MAX)
			die("more than %d words: %s", WORDS_MAX, words[0]);
		words[n++] = word;
	}
	words[n] = NULL;
}

/* @next collects what env and input say; each run gets a copy of it. */
static void series_line(struct series *s, char *line, struct run *next, size_t *n_env)
{
	char *rest = strchr(line, ' ');

	if (!rest)
		die("bad line: %s", line);
	*rest++ = '\0';
	if (strcmp(line, "env") == 0 && *n_env < WORDS_MAX) {
		next->env[(*n_env)++] = rest;
	} else if (strcmp(line, "input") == 0) {
		next->input = rest;
	} else if (strcmp(line, "run") == 0 && s->n < RUNS_MAX) {
		s->runs[s->n] = *next;
		split(rest, s->runs[s->n++].argv);
	} else {
		die("bad line: %s %s", line, rest);
	}
}

static void series_read(struct series *s, const char *path)
{
	FILE *f = fopen(path, "re");
	struct run next = { .input = "/dev/null" };
	char *line = NULL;
	size_t room = 0, n_env = 0;
	ssize_t len;

	if (!f)
		die("%s: %s", path, strerror(errno));
	while ((len = getline(&line, &room, f)) > 0) {
		line[len - 1] = '\0'; /* the line's end */
		series_line(s, line, &next, &n_env);
		line = NULL;
		room = 0;
	}
	free(line);
	fclose(f);
}

static int errors_fd; /* the commands' standard error, for when one fails */

static void __attribute__((noreturn)) failed(const struct run *run, int status)
{
	char text[4096];
	off_t size = lseek(errors_fd, 0, SEEK_END);
	off_t from = size > (off_t)sizeof(text) ? size - (off_t)sizeof(text) : 0;
	ssize_t n = pread(errors_fd, text, sizeof(text), from);

	fwrite(text, 1, n > 0 ? (size_t)n : 0, stderr);
	die("%s %s ended with status %#x", run->argv[0], run->argv[1] ? run->argv[1] : "",
	    (unsigned)status);
}

static void run_one(const struct run *run)
{
	posix_spawn_file_actions_t actions;
	int status, error;
	pid_t pid;

	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, run->input, O_RDONLY, 0);
	posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
	posix_spawn_file_actions_adddup2(&actions, errors_fd, STDERR_FILENO);
	error = posix_spawn(&pid, run->argv[0], &actions, NULL, run->argv, run->env);
	posix_spawn_file_actions_destroy(&actions);
	if (error)
		die("%s: %s", run->argv[0], strerror(error));
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			die("waitpid: %s", strerror(errno));
	if (status != 0)
		failed(run, status);
}

static int64_t series_run(const struct series *s)
{
	int64_t start = now_ns();

	for (size_t i = 0; i < s->n; i++)
		run_one(&s->runs[i]);
	return now_ns() - start;
}

int main(int argc, char **argv)
{
	static struct series series[2];
	long samples = argc == 4 ? strtol(argv[1], NULL, 10) : 0;

	if (samples <= 0)
		die("usage: spawn SAMPLES OURS PEER");
	errors_fd = memfd_create("errors", MFD_CLOEXEC);
	series_read(&series[0], argv[2]);
	series_read(&series[1], argv[3]);
	for (long i = -(samples / 10); i < samples; i++) {
		int first = i & 1;
		int64_t ns[2];

		ns[first] = series_run(&series[first]);
		ns[!first] = series_run(&series[!first]);
		if (i >= 0)
			printf("%lld %lld\n", (long long)ns[0], (long long)ns[1]);
	}
	return 0;
}
