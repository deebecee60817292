/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/os/test-proc.h - fixtures for the tests of base/os/proc.c and child.c
 *
 * How:   every test can be run without and with an idle thread, because child.c
 *        has two modes. After a test, no descriptor and no child may be left. Every
 *        wait has a deadline that is reached only if the test fails.
 */
#ifndef BASE_OS_TEST_PROC_H
#define BASE_OS_TEST_PROC_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the headers above */
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

#define LONG 60000 /* ms; reached only if a test fails */

/* ---- a temporary directory, and a check for leaks ---------------------------------- */

struct proc_fixture {
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

static inline int fixture_setup(void **state)
{
	struct proc_fixture *f = mem_new(sizeof(*f));

	f->n_fds = count_fds();
	f->thread_end = -1;
	snprintf(f->path, sizeof(f->path), "%.40s/proc.XXXXXX", str_or(getenv("TMPDIR"), "/tmp"));
	if (!mkdtemp(f->path))
		return -1;
	f->dir = open(f->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	*state = f;
	return f->dir < 0 ? -1 : 0;
}

static inline int remove_entry(void *ctx, const struct file_entry *entry, struct hw_err *e)
{
	(void)ctx;
	return file_remove(entry->dir, entry->name, e) < 0 ? e->code : 0;
}

static inline int fixture_teardown(void **state)
{
	struct proc_fixture *f = *state;
	struct hw_err e;
	int n_fds = f->n_fds, r = file_walk(f->dir, ".", remove_entry, NULL, &e);

	close(f->dir);
	if (rmdir(f->path) < 0)
		r = -1;
	free(f);
	if (count_fds() != n_fds) {
		print_error("a descriptor was leaked\n");
		r = -1;
	}
	if (waitpid(-1, NULL, WNOHANG | __WALL) != -1 || errno != ECHILD) {
		print_error("a child process was leaked\n");
		r = -1;
	}
	return r;
}

static inline void *idle(void *arg)
{
	struct proc_fixture *f = arg;
	eventfd_t n;

	eventfd_read(f->thread_end, &n);
	return NULL;
}

static inline int fixture_setup_with_thread(void **state)
{
	struct proc_fixture *f;

	if (fixture_setup(state) < 0)
		return -1;
	f = *state;
	f->thread_end = eventfd(0, EFD_CLOEXEC);
	return pthread_create(&f->thread, NULL, idle, f) == 0 ? 0 : -1;
}

static inline int fixture_teardown_with_thread(void **state)
{
	struct proc_fixture *f = *state;

	eventfd_write(f->thread_end, 1);
	pthread_join(f->thread, NULL);
	close(f->thread_end);
	return fixture_teardown(state);
}

/* ---- running a shell script --------------------------------------------------------- */

struct script {
	const char *text;
	const char *input;
	const char *const *env;
	size_t output_max;
	int cancel_fd; /* 0: none */
	int timeout_ms;
	bool drop_excess, stderr_through, stay;
	void (*stop)(void *ctx, const struct child *program);
	void *stop_ctx;
};

/* The script runs in the temporary directory. */
static inline int run_script(void **state, const struct script *script, struct proc_result *ret,
			     struct hw_err *e)
{
	struct proc_fixture *f = *state;
	autofree char *text = str_printf("cd %s && %s", f->path, script->text);
	const char *const argv[] = { "sh", "-c", text, NULL };
	struct proc p = {
		.path = "/bin/sh",
		.argv = argv,
		.env = script->env,
		.input = script->input,
		.input_len = script->input ? strlen(script->input) : 0,
		.output_max = script->output_max,
		.drop_excess = script->drop_excess,
		.stderr_through = script->stderr_through,
		.stay = script->stay,
		.stop = script->stop,
		.stop_ctx = script->stop_ctx,
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

/* Whether a process of the script still runs. A script that locks the file "lock" shares the lock
 * with all its processes, so the lock is held until the last one has ended. */
static inline bool is_lock_held(void **state, int wait_ms)
{
	struct proc_fixture *f = *state;
	autoclose int fd = -1;
	struct hw_err e;

	return file_lock(f->dir, "lock", true, time_deadline(wait_ms), &fd, &e) < 0;
}

/* ---- entries of the table of tests ------------------------------------------------------- */

#define WITHOUT_THREAD(sentence, function)                                                         \
	{                                                                                          \
		"proc: " sentence, function, fixture_setup, fixture_teardown, NULL                 \
	}
#define WITH_THREAD(sentence, function)                                                            \
	{                                                                                          \
		"proc: " sentence, function, fixture_setup_with_thread,                            \
			fixture_teardown_with_thread, NULL                                         \
	}

#endif
