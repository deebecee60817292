/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench/spawn.c - measure several series of commands alternately
 *
 * What:  spawn [--rss] [--cold] SAMPLES SERIES...
 *        runs every series once for each sample and prints a line with a number
 *        for each series: its nanoseconds; with --rss the largest resident memory
 *        of its timed commands, in KiB.
 * How:   a series is a file of lines, words separated by single blanks:
 *
 *		netns PATH		network namespace of all commands
 *		env NAME=VALUE		set a variable for later commands, which have no
 *					variables except those set like this
 *		input FILE		standard input of later commands (default:
 *					/dev/null)
 *		run PROGRAM [ARG...]	run a program, given by path, and wait for it
 *		start PROGRAM [ARG...]	run a program in parallel; the next line that is
 *					not "start" waits for all of them
 *		selftimed PROGRAM [ARG...]
 *					run a program that prints its time in
 *					nanoseconds, and count that time
 *		reap			wait for background processes of the commands
 *		clock off|on		stop or continue counting time
 *
 *        {n} in a line is replaced by the number of the sample, counted from 0. The
 *        cost of posix_spawn() is small and the same for all series. Each sample
 *        starts with a different series. A tenth of the samples is run first as
 *        warm-up and not printed, except with --cold.
 * Rules: if a command fails, its output is printed and the run ends with an error. A
 *        background process that is still running at the end is an error, too.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SERIES_MAX 8
#define STEPS_MAX  1024
#define WORDS_MAX  16
#define LINE_ROOM  4096
#define REAP_NS	   (10 * 1000000000LL)
#define REAP_US	   100

enum verb { RUN, START, SELFTIMED, REAP, CLOCK };

struct step {
	enum verb verb;
	bool on; /* for CLOCK: switch the clock on or off */
	char *words[WORDS_MAX + 1];
	char *env[WORDS_MAX + 1];
	char *input;
};

struct series {
	struct step steps[STEPS_MAX];
	size_t n;
	int netns;
	char *text; /* contents of the file; the steps point into it */
};

/* The current sample of one series. */
struct tally {
	int64_t ns;
	long rss;
	bool on; /* the clock is on */
	struct {
		pid_t pid;
		const struct step *step;
	} running[STEPS_MAX];
	size_t n_running;
};

static int home_fd, errors_fd, output_fd;

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

/* ---- reading a series ------------------------------------------------------------- */

/* The words point into @line. */
static void split_words(char *line, char **words)
{
	size_t n = 0;

	for (char *word; (word = strsep(&line, " ")) != NULL;) {
		if (n == WORDS_MAX)
			die("more than %d words: %s", WORDS_MAX, words[0]);
		words[n++] = word;
	}
	words[n] = NULL;
}

/* Replaces the value of an existing variable. */
static void set_env(char **env, char *value)
{
	size_t name = strcspn(value, "=") + 1, i = 0;

	while (env[i] && strncmp(env[i], value, name) != 0)
		if (++i == WORDS_MAX)
			die("more than %d variables: %s", WORDS_MAX, value);
	env[i] = value;
}

static int open_netns(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		die("%s: %s", path, strerror(errno));
	return fd;
}

static int find_verb(const char *word)
{
	static const char *const verbs[] = { "run", "start", "selftimed", "reap", "clock" };

	for (size_t i = 0; i < sizeof(verbs) / sizeof(*verbs); i++)
		if (strcmp(word, verbs[i]) == 0)
			return (int)i;
	return -1;
}

static void add_step(struct series *s, int verb, char *rest, const struct step *next)
{
	struct step *step = &s->steps[s->n++];

	*step = *next;
	step->verb = (enum verb)verb;
	step->on = verb == CLOCK && strcmp(rest, "on") == 0;
	split_words(rest, step->words);
}

/* @next has the environment and input of later commands; each command gets a copy of it. */
static void parse_line(struct series *s, char *line, struct step *next)
{
	char *rest = line + strcspn(line, " ");
	int verb;

	if (*rest)
		*rest++ = '\0';
	verb = find_verb(line);
	if (verb >= 0 && s->n < STEPS_MAX)
		add_step(s, verb, rest, next);
	else if (strcmp(line, "netns") == 0)
		s->netns = open_netns(rest);
	else if (strcmp(line, "env") == 0)
		set_env(next->env, rest);
	else if (strcmp(line, "input") == 0)
		next->input = rest;
	else
		die("malformed line: %s %s", line, rest);
}

static void read_series(struct series *s, const char *path)
{
	static char empty[] = "/dev/null";
	FILE *f = fopen(path, "re");
	struct step next = { .input = empty };
	char *rest;
	size_t room = 0;

	if (!f || getdelim(&s->text, &room, '\0', f) < 0)
		die("%s: %s", path, strerror(errno));
	fclose(f);
	s->netns = home_fd;
	rest = s->text;
	for (char *line; (line = strsep(&rest, "\n")) != NULL && rest;)
		parse_line(s, line, &next);
}

/* ---- running a series ------------------------------------------------------------- */

static void __attribute__((noreturn)) die_of_status(const struct step *step, int status)
{
	char text[4096];
	off_t size = lseek(errors_fd, 0, SEEK_END);
	off_t from = size > (off_t)sizeof(text) ? size - (off_t)sizeof(text) : 0;
	ssize_t n = pread(errors_fd, text, sizeof(text), from);

	fwrite(text, 1, n > 0 ? (size_t)n : 0, stderr);
	die("%s %s ended with status %#x", step->words[0], step->words[1] ? step->words[1] : "",
	    (unsigned)status);
}

/* Copies words with {n} replaced by the sample's number; the copies are stored in @room. */
static void expand_words(char *const *from, char **to, char *room, size_t size, long number)
{
	size_t i, used = 0;

	for (i = 0; from[i]; i++) {
		const char *mark = strstr(from[i], "{n}");
		int n = !mark ? snprintf(room + used, size - used, "%s", from[i])
			      : snprintf(room + used, size - used, "%.*s%ld%s",
					 (int)(mark - from[i]), from[i], number, mark + 3);

		if (n < 0 || (size_t)n >= size - used)
			die("line too long: %s", from[i]);
		to[i] = room + used;
		used += (size_t)n + 1;
	}
	to[i] = NULL;
}

/* Standard output goes to the same file as standard error, because CNI plugins print errors on it. */
static pid_t spawn_step(const struct step *step, long number)
{
	char room[3][LINE_ROOM], *argv[WORDS_MAX + 1], *env[WORDS_MAX + 1];
	char *inputs[] = { step->input, NULL }, *input[2];
	posix_spawn_file_actions_t actions;
	pid_t pid;
	int error, out = step->verb == SELFTIMED ? output_fd : errors_fd;

	expand_words(step->words, argv, room[0], LINE_ROOM, number);
	expand_words(step->env, env, room[1], LINE_ROOM, number);
	expand_words(inputs, input, room[2], LINE_ROOM, number);
	if (!argv[0] || !input[0])
		die("missing program or input");
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, input[0], O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
	posix_spawn_file_actions_adddup2(&actions, errors_fd, STDERR_FILENO);
	error = posix_spawn(&pid, argv[0], &actions, NULL, argv, env);
	posix_spawn_file_actions_destroy(&actions);
	if (error)
		die("%s: %s", argv[0], strerror(error));
	return pid;
}

static void wait_for(pid_t pid, const struct step *step, struct tally *t)
{
	struct rusage usage;
	int status;

	while (wait4(pid, &status, 0, &usage) < 0)
		if (errno != EINTR)
			die("wait: %s", strerror(errno));
	if (status != 0)
		die_of_status(step, status);
	if (t->on && usage.ru_maxrss > t->rss)
		t->rss = usage.ru_maxrss;
}

/* Return: the nanoseconds that a selftimed command printed */
static int64_t read_output(void)
{
	char text[32] = "";

	if (pread(output_fd, text, sizeof(text) - 1, 0) <= 0)
		die("a selftimed command printed no time");
	if (ftruncate(output_fd, 0) < 0 || lseek(output_fd, 0, SEEK_SET) < 0)
		die("output: %s", strerror(errno));
	return strtoll(text, NULL, 10);
}

/* Processes whose parent has exited become our children, because we are a subreaper. */
static void reap(void)
{
	int64_t deadline = now_ns() + REAP_NS;

	for (pid_t pid; (pid = waitpid(-1, NULL, WNOHANG)) >= 0;) {
		if (now_ns() > deadline)
			die("timed out waiting for a background process");
		if (pid == 0)
			usleep(REAP_US);
	}
}

static void wait_for_started(struct tally *t)
{
	int64_t start = now_ns();

	if (!t->n_running)
		return;
	for (size_t i = 0; i < t->n_running; i++)
		wait_for(t->running[i].pid, t->running[i].step, t);
	t->n_running = 0;
	t->ns += t->on ? now_ns() - start : 0;
}

static void run_command(const struct step *step, long number, struct tally *t)
{
	pid_t pid = spawn_step(step, number);

	if (step->verb == START) {
		t->running[t->n_running].pid = pid;
		t->running[t->n_running++].step = step;
	} else {
		wait_for(pid, step, t);
	}
}

static void run_step(const struct step *step, long number, struct tally *t)
{
	int64_t start, ns;

	if (step->verb != START)
		wait_for_started(t);
	if (step->verb == CLOCK) {
		t->on = step->on;
		return;
	}
	start = now_ns();
	if (step->verb == REAP)
		reap();
	else
		run_command(step, number, t);
	ns = step->verb == SELFTIMED ? read_output() : now_ns() - start;
	t->ns += t->on ? ns : 0;
}

static void run_series(const struct series *s, long number, struct tally *t)
{
	t->ns = t->rss = 0;
	t->on = true;
	if (setns(s->netns, CLONE_NEWNET) < 0)
		die("setns: %s", strerror(errno));
	for (size_t i = 0; i < s->n; i++)
		run_step(&s->steps[i], number, t);
	wait_for_started(t);
	if (ftruncate(errors_fd, 0) < 0 || lseek(errors_fd, 0, SEEK_SET) < 0)
		die("errors: %s", strerror(errno));
}

static void run_samples(const struct series *series, int n, long samples, long warm_up, bool rss)
{
	static struct tally tally[SERIES_MAX];

	for (long i = 0; i < warm_up + samples; i++) {
		for (int at = 0; at < n; at++) {
			int turn = (at + (int)(i % n)) % n;

			run_series(&series[turn], i, &tally[turn]);
		}
		for (int at = 0; i >= warm_up && at < n; at++)
			printf("%lld%c", rss ? (long long)tally[at].rss : (long long)tally[at].ns,
			       at + 1 < n ? ' ' : '\n');
	}
}

static bool take_option(int *argc, char ***argv, const char *name)
{
	if (*argc < 2 || strcmp((*argv)[1], name) != 0)
		return false;
	--*argc;
	++*argv;
	return true;
}

int main(int argc, char **argv)
{
	static struct series series[SERIES_MAX];
	bool rss = take_option(&argc, &argv, "--rss"), cold = take_option(&argc, &argv, "--cold");
	long samples = argc > 1 ? strtol(argv[1], NULL, 10) : 0;
	int n = argc - 2;

	if (samples <= 0 || n < 1 || n > SERIES_MAX)
		die("usage: spawn [--rss] [--cold] SAMPLES SERIES...");
	if (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0)
		die("prctl: %s", strerror(errno));
	errors_fd = memfd_create("errors", MFD_CLOEXEC);
	output_fd = memfd_create("output", MFD_CLOEXEC);
	home_fd = open_netns("/proc/self/ns/net");
	for (int i = 0; i < n; i++)
		read_series(&series[i], argv[2 + i]);
	run_samples(series, n, samples, cold ? 0 : samples / 10, rss);
	reap();
	return 0;
}
