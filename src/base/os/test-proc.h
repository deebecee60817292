/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/os/test-proc.h - what the tests of programs that we run share
 *
 * How:   every test can be run alone and beside an idle thread, because child.c
 *        has a way for each. After each of them no descriptor and no child may be
 *        left. Waiting is bounded by deadlines that only a failure reaches.
 */
#ifndef BASE_OS_TEST_PROC_H
#define BASE_OS_TEST_PROC_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the ones above */
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/os/file.h"
#include "base/os/proc.h"
#include "base/str.h"
#include "base/time.h"

#define LONG 60000 /* ms: reached only when something is broken */

/* ---- a place for files, and what must be as before afterwards ---------------------- */

struct place {
	char path[64];
	int dir;
	int n_fds;
	pthread_t thread;
	int thread_end; /* an eventfd; -1: no thread */
};

static inline int count_entry(void *ctx, const struct file_entry *entry, struct hw_err *e)
{
	(void)entry;
	(void)e;
	++*(int *)ctx;
	return 0;
}

static inline int count_fds(void)
{
	struct hw_err e;
	int n = 0;

	return file_walk(AT_FDCWD, "/proc/self/fd", count_entry, &n, &e) < 0 ? -1 : n;
}

static inline int place_make(void **state)
{
	struct place *place = mem_new(sizeof(*place));

	place->n_fds = count_fds();
	place->thread_end = -1;
	snprintf(place->path, sizeof(place->path), "%.40s/proc.XXXXXX",
		 str_or(getenv("TMPDIR"), "/tmp"));
	if (!mkdtemp(place->path))
		return -1;
	place->dir = open(place->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	*state = place;
	return place->dir < 0 ? -1 : 0;
}

static inline int remove_entry(void *ctx, const struct file_entry *entry, struct hw_err *e)
{
	(void)ctx;
	return file_remove(entry->dir, entry->name, e) < 0 ? e->code : 0;
}

static inline int place_remove(void **state)
{
	struct place *place = *state;
	struct hw_err e;
	int n_fds = place->n_fds, r = file_walk(place->dir, ".", remove_entry, NULL, &e);

	close(place->dir);
	if (rmdir(place->path) < 0)
		r = -1;
	free(place);
	if (count_fds() != n_fds) {
		print_error("a descriptor is left\n");
		r = -1;
	}
	if (waitpid(-1, NULL, WNOHANG | __WALL) != -1 || errno != ECHILD) {
		print_error("a child is left\n");
		r = -1;
	}
	return r;
}

static inline void *idle(void *arg)
{
	struct place *place = arg;
	eventfd_t n;

	eventfd_read(place->thread_end, &n);
	return NULL;
}

static inline int place_make_with_thread(void **state)
{
	struct place *place;

	if (place_make(state) < 0)
		return -1;
	place = *state;
	place->thread_end = eventfd(0, EFD_CLOEXEC);
	return pthread_create(&place->thread, NULL, idle, place) == 0 ? 0 : -1;
}

static inline int place_remove_with_thread(void **state)
{
	struct place *place = *state;

	eventfd_write(place->thread_end, 1);
	pthread_join(place->thread, NULL);
	close(place->thread_end);
	return place_remove(state);
}

/* ---- running a shell script --------------------------------------------------------- */

struct script {
	const char *text;
	const char *input;
	const char *const *env;
	size_t output_max;
	int cancel_fd; /* 0: none */
	int timeout_ms;
	bool stderr_through, stay;
};

/* Its working directory is the test's place. */
static inline int run_script(void **state, const struct script *script, struct proc_result *ret,
			     struct hw_err *e)
{
	struct place *place = *state;
	autofree char *text = str_printf("cd %s && %s", place->path, script->text);
	const char *const argv[] = { "sh", "-c", text, NULL };
	struct proc p = {
		.path = "/bin/sh",
		.argv = argv,
		.env = script->env,
		.input = script->input,
		.input_len = script->input ? strlen(script->input) : 0,
		.output_max = script->output_max,
		.stderr_through = script->stderr_through,
		.stay = script->stay,
		.cancel_fd = script->cancel_fd ? script->cancel_fd : -1,
		.deadline = time_deadline(script->timeout_ms ? script->timeout_ms : LONG),
	};

	return proc_run(&p, ret, e);
}

static inline void assert_script(void **state, const struct script *script, const char *output,
				 const char *errors, int status)
{
	AUTO(proc_result_done) struct proc_result result = { 0 };
	struct hw_err e = { 0 };

	if (run_script(state, script, &result, &e) != 0)
		fail_msg("%s", e.msg);
	assert_string_equal(str_or(result.output.data, ""), output);
	assert_string_equal(str_or(result.errors.data, ""), errors);
	assert_int_equal(result.status, status);
}

static inline void assert_script_fails(void **state, const struct script *script, int code,
				       const char *msg)
{
	AUTO(proc_result_done) struct proc_result result = { 0 };
	struct hw_err e = { 0 };

	assert_int_equal(run_script(state, script, &result, &e), code);
	assert_string_equal(e.msg, msg);
	assert_null(result.output.data);
}

/* The script holds a lock that all its processes share; true when one of them lives. */
static inline bool is_lock_held(void **state, int wait_ms)
{
	struct place *place = *state;
	autoclose int fd = -1;
	struct hw_err e;

	return file_lock(place->dir, "lock", true, time_deadline(wait_ms), &fd, &e) < 0;
}

/* ---- a test ------------------------------------------------------------------------------ */

#define ALONE(sentence, function)                                                                  \
	{                                                                                          \
		"proc: " sentence, function, place_make, place_remove, NULL                        \
	}
#define WITH_THREAD(sentence, function)                                                            \
	{                                                                                          \
		"proc: " sentence, function, place_make_with_thread, place_remove_with_thread,     \
			NULL                                                                       \
	}

#endif
