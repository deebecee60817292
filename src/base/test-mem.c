/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/test-mem.c - ownership of pointers and descriptors, allocation
 */
#include "base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the headers above */
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static void closes_at_end_of_scope(void **state)
{
	int number;

	(void)state;
	{
		autoclose int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

		number = fd;
		assert_true(fcntl(number, F_GETFD) >= 0);
		errno = ENOTTY;
	}
	assert_int_equal(errno, ENOTTY);
	assert_int_equal(fcntl(number, F_GETFD), -1);
}

static void closes_once(void **state)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC), other;

	(void)state;
	mem_close_fd(&fd);
	assert_int_equal(fd, -1);
	other = open("/dev/null", O_RDONLY | O_CLOEXEC); /* gets the same number */
	mem_close_fd(&fd);
	assert_true(fcntl(other, F_GETFD) >= 0);
	close(other);
}

static void transfers_ownership(void **state)
{
	autofree char *p = mem_copy("abc", 4);
	autofree char *q = take_ptr(p);
	autoclose int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	autoclose int other = take_fd(fd);

	(void)state;
	assert_null(p);
	assert_string_equal(q, "abc");
	assert_int_equal(fd, -1);
	assert_true(fcntl(other, F_GETFD) >= 0);
}

static void new_memory_is_zeroed(void **state)
{
	static const char zero[1000];
	autofree char *p = mem_new(sizeof(zero));
	autofree char *nothing = mem_new(0);

	(void)state;
	assert_memory_equal(p, zero, sizeof(zero));
	assert_non_null(nothing);
}

static void resizes(void **state)
{
	autofree int *v = NULL;

	(void)state;
	for (int i = 0; i < 100; i++) {
		v = mem_resize(v, (size_t)i + 1, sizeof(*v));
		v[i] = i;
	}
	assert_int_equal(v[99], 99);
	v = mem_resize(v, 0, sizeof(*v));
	assert_non_null(v);
}

static void count_calls(void *p)
{
	if (p)
		*(int *)p += 1;
}
AUTO_DEFINE(count_calls, void);

static void destructor_runs_once(void **state)
{
	int called = 0;

	(void)state;
	{
		AUTO(count_calls) void *p = &called;
		AUTO(count_calls) void *none = NULL;

		(void)p;
		(void)none;
	}
	assert_int_equal(called, 1);
}

/* Runs @f in a child process, which must abort. @text receives its standard error.
 * Return: the length of the text */
static size_t stderr_of_abort(void (*f)(void), char *text, size_t size)
{
	int fds[2], status;
	ssize_t n;
	pid_t pid;

	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0) {
		struct rlimit no_core = { 0 };
		struct sigaction by_default = { .sa_handler = SIG_DFL };

		sigaction(SIGABRT, &by_default, NULL);
		setrlimit(RLIMIT_CORE, &no_core);
		dup2(fds[1], STDERR_FILENO);
		f();
		_exit(0);
	}
	close(fds[1]);
	n = read(fds[0], text, size - 1);
	text[n > 0 ? n : 0] = '\0';
	close(fds[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGABRT);
	return strlen(text);
}

static void allocate_too_much(void)
{
	volatile size_t n = SIZE_MAX / 2;

	free(mem_resize(NULL, n, 16));
}

static void overflow_aborts(void **state)
{
	char text[256];

	(void)state;
	stderr_of_abort(allocate_too_much, text, sizeof(text));
	assert_string_equal(text, "hawser: out of memory\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{ "mem: a descriptor is closed at the end of the scope; errno is preserved",
		  closes_at_end_of_scope },
		{ "mem: a descriptor is closed only once", closes_once },
		{ "mem: after a transfer of ownership, only the new owner releases the object",
		  transfers_ownership },
		{ "mem: new memory is zeroed, and never NULL", new_memory_is_zeroed },
		{ "mem: an array can grow and shrink", resizes },
		{ "mem: AUTO() calls the destructor once", destructor_runs_once },
		{ "mem: if a size overflows, one line is printed and the process aborts",
		  overflow_aborts },
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
