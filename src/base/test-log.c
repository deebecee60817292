/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/test-log.c - log lines on standard error
 */
#include "base/log.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the headers above */
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <regex.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json/value.h"
#include "base/os/file.h"

#define STAMP "[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{6}Z"

/* Redirects standard error into a pipe between capture_begin() and capture_end(). */
struct capture {
	int read_fd;
	int stderr_fd;
};

static struct capture capture_begin(void)
{
	struct capture c;
	int fds[2];

	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	c.read_fd = fds[0];
	c.stderr_fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
	dup2(fds[1], STDERR_FILENO);
	close(fds[1]);
	return c;
}

static char *capture_end(struct capture *c)
{
	struct buf b = { 0 };
	struct hw_err e;

	dup2(c->stderr_fd, STDERR_FILENO);
	close(c->stderr_fd);
	assert_int_equal(file_read_fd(c->read_fd, 1 << 20, &b, &e), 0);
	close(c->read_fd);
	return buf_take(&b);
}

static void assert_matches(const char *text, const char *pattern)
{
	regex_t regex;
	int r;

	assert_int_equal(regcomp(&regex, pattern, REG_EXTENDED | REG_NOSUB), 0);
	r = regexec(&regex, text, 0, NULL, 0);
	regfree(&regex);
	if (r != 0)
		fail_msg("%s does not match %s", text, pattern);
}

static void writes_text(void **state)
{
	autofree char *text = NULL;
	struct capture c = capture_begin();

	(void)state;
	log_setup("prog", LOG_INFO, LOG_TEXT);
	log_event(LOG_WARN, "pod failed", "pod", "a1", "why", "no \"space\"", "none", NULL, NULL);
	text = capture_end(&c);
	assert_matches(text, "^" STAMP " warn prog: pod failed pod=a1 why=\"no \\\\\"space\\\\\"\" "
			     "none=\"\"\n$");
}

static void writes_for_the_journal(void **state)
{
	autofree char *text = NULL;
	struct capture c = capture_begin();

	(void)state;
	log_setup("prog", LOG_DEBUG, LOG_JOURNAL);
	log_error("bad %d", 1);
	log_warn("odd");
	log_info("told");
	log_debug("detail");
	log_event(LOG_ERROR, "bad", "k", "v", NULL);
	text = capture_end(&c);
	assert_string_equal(text, "<3>bad 1\n<4>odd\n<6>told\n<7>detail\n<3>bad k=v\n");
}

static void writes_json(void **state)
{
	AUTO(value_free) struct value *v = NULL;
	autofree char *text = NULL;
	struct capture c = capture_begin();
	struct hw_err e;

	(void)state;
	log_setup("prog", LOG_INFO, LOG_JSON);
	log_event(LOG_ERROR, "quote \" back \\ line\n", "k\x01", "\xc3\xa9\x7f", NULL);
	text = capture_end(&c);
	assert_matches(text, "^\\{\"time\":\"" STAMP "\",\"level\":\"error\",\"program\":\"prog\"");
	assert_int_equal(value_parse(text, strlen(text), &v, &e), 0);
	assert_string_equal(value_string(value_get(v, "msg")), "quote \" back \\ line\n");
	assert_string_equal(value_string(value_get(v, "k\x01")), "\xc3\xa9\x7f");
}

static void replaces_invalid_utf8(void **state)
{
	static const char *const bad[] = { "\xff",	   "\xc3",	   "\xc0\xaf",
					   "\xe0\x80\xaf", "\xed\xa0\x80", "\xf4\x90\x80",
					   "\xf8\x88" };

	(void)state;
	log_setup("prog", LOG_INFO, LOG_JSON);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		AUTO(value_free) struct value *v = NULL;
		autofree char *text = NULL;
		struct capture c = capture_begin();
		struct hw_err e;

		log_event(LOG_ERROR, bad[i], NULL);
		text = capture_end(&c);
		assert_int_equal(value_parse(text, strlen(text), &v, &e), 0);
		assert_non_null(strstr(value_string(value_get(v, "msg")), "\xef\xbf\xbd"));
	}
}

static void a_text_cannot_forge_a_line(void **state)
{
	autofree char *text = NULL;
	struct capture c = capture_begin();

	(void)state;
	log_setup("prog", LOG_INFO, LOG_JOURNAL);
	log_error("a\n<0>b\r\x1b[2J\t");
	log_event(LOG_ERROR, "m", "k\n", "v\nw", NULL);
	text = capture_end(&c);
	assert_string_equal(text, "<3>a\\n<0>b\\x0d\\x1b[2J\\t\n<3>m k\\n=v\\nw\n");
}

static void drops_lines_below_the_level(void **state)
{
	autofree char *text = NULL;
	struct capture c = capture_begin();

	(void)state;
	log_setup("prog", LOG_WARN, LOG_TEXT);
	log_info("no");
	log_debug("no");
	log_event(LOG_INFO, "no", NULL);
	text = capture_end(&c);
	assert_string_equal(text, "");
	assert_true(log_wants(LOG_WARN) && !log_wants(LOG_INFO));
}

static void *log_often(void *arg)
{
	for (int i = 0; i < 100; i++)
		log_event(LOG_INFO, arg, "key", "value", NULL);
	return NULL;
}

static void lines_of_threads_do_not_mix(void **state)
{
	static char names[2][3] = { "aa", "bb" };
	autofree char *text = NULL;
	struct capture c = capture_begin();
	pthread_t threads[2];
	char *line, *next;
	int n = 0;

	(void)state;
	log_setup("prog", LOG_INFO, LOG_JOURNAL);
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, log_often, names[i]), 0);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	text = capture_end(&c);
	for (line = text; (next = strchr(line, '\n')); line = next + 1, n++)
		assert_true(strncmp(line, "<6>aa key=value\n", 16) == 0 ||
			    strncmp(line, "<6>bb key=value\n", 16) == 0);
	assert_int_equal(n, 200);
}

static void keeps_errno(void **state)
{
	int saved = dup(STDERR_FILENO);

	(void)state;
	log_setup("prog", LOG_INFO, LOG_TEXT);
	close(STDERR_FILENO);
	errno = ENOTTY;
	log_error("not written");
	assert_int_equal(errno, ENOTTY);
	dup2(saved, STDERR_FILENO);
	close(saved);
}

static void context_is_on_each_line(void **state)
{
	autofree char *text = NULL;
	struct capture c = capture_begin();

	(void)state;
	log_setup("prog", LOG_INFO, LOG_JOURNAL);
	log_context("call", "17");
	log_info("one");
	log_event(LOG_INFO, "two", "k", "v", NULL);
	log_context(NULL, NULL);
	log_info("three");
	text = capture_end(&c);
	assert_string_equal(text, "<6>one call=17\n<6>two k=v call=17\n<6>three\n");
}

static void changes_the_level(void **state)
{
	autofree char *text = NULL;
	struct capture c = capture_begin();

	(void)state;
	log_setup("prog", LOG_WARN, LOG_JOURNAL);
	log_info("before");
	log_set_level(LOG_INFO);
	log_info("after");
	text = capture_end(&c);
	assert_string_equal(text, "<6>after\n");
}

static void parses_levels(void **state)
{
	enum log_level level = LOG_DEBUG;

	(void)state;
	assert_true(log_level_parse("error", &level) && level == LOG_ERROR);
	assert_true(log_level_parse("debug", &level) && level == LOG_DEBUG);
	assert_false(log_level_parse("loud", &level));
	assert_false(log_level_parse("", &level));
	assert_int_equal(level, LOG_DEBUG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{ "log: a text line has time, level, program, message and key-value pairs",
		  writes_text },
		{ "log: lines for the journal start with a priority", writes_for_the_journal },
		{ "log: JSON lines can be parsed and keep every character", writes_json },
		{ "log: invalid UTF-8 is replaced in JSON", replaces_invalid_utf8 },
		{ "log: control characters in a text are escaped and cannot forge a line",
		  a_text_cannot_forge_a_line },
		{ "log: lines below the level are dropped", drops_lines_below_the_level },
		{ "log: lines of threads do not mix", lines_of_threads_do_not_mix },
		{ "log: errno is preserved", keeps_errno },
		{ "log: the names of the levels are parsed", parses_levels },
		{ "log: a thread's context is added to each of its lines",
		  context_is_on_each_line },
		{ "log: the level can be changed at any time", changes_the_level },
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
