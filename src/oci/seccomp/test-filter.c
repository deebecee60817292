/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci/seccomp/test-filter.c - compiled profiles: what they allow, how they are kept, failures
 *
 * How:   the program of the build tree ($HAWSER_BUILD), or a script in its place. A filter is tried by a
 *        forked process.
 */
#include "oci/seccomp/filter.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/os/file.h"
#include "oci/seccomp/default-profile.h"
#include "oci/seccomp/test.h"

#define DIR_	"/tmp/test-filter"
#define FILES	DIR_ "/seccomp"
#define SCRIPT	DIR_ "/script"
#define THREADS 16

static char *program(void)
{
	return str_printf("%s/bin/hawser-seccomp", str_or(getenv("HAWSER_BUILD"), "build"));
}

static struct filters *filters_with(const char *path, int timeout_ms)
{
	const struct filters_options options = { path, FILES, timeout_ms };
	struct filters *f = NULL;
	struct hw_err e;

	assert_ok(filters_new(&options, &f, &e), &e);
	return f;
}

/* A script in place of hawser-seccomp. */
static struct filters *filters_script(const char *commands, int timeout_ms)
{
	autofree char *text = str_printf("#!/bin/sh\n%s\n", commands);
	struct hw_err e;

	assert_ok(file_replace(AT_FDCWD, SCRIPT, text, strlen(text), 0755, 0, &e), &e);
	return filters_with(SCRIPT, timeout_ms);
}

static size_t count_files(void)
{
	DIR *dir = opendir(FILES);
	size_t n = 0;

	assert_non_null(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n - 2;
}

static int setup(void **state)
{
	struct hw_err e;

	(void)state;
	run_shell("rm -rf " DIR_);
	return file_mkdirs(AT_FDCWD, DIR_, 0700, &e);
}

static struct profile profile_of(const char *json)
{
	struct profile p;
	struct hw_err e;

	assert_ok(decode(json, &p, &e), &e);
	return p;
}

/* ---- what a filter does ------------------------------------------------------------------------ */

static void get(struct filters *f, const struct profile *p, struct buf *ret)
{
	struct hw_err e;

	assert_ok(filters_get(f, p, ret, &e), &e);
}

static void get_default(const struct hw_strings *capabilities, struct buf *ret)
{
	AUTO(filters_free) struct filters *f = NULL;
	AUTO(profile_done) struct profile p = { 0 };
	struct profile_target target = target_with(capabilities);
	autofree char *path = program();

	target.machine = profile_machine(NULL);
	f = filters_with(path, 0);
	default_profile(&target, &p);
	get(f, &p, ret);
}

/* Return: what @body returns in a process with the filter */
static int run_with(const struct buf *filter, int (*body)(void))
{
	struct sock_fprog program_ = { (unsigned short)(filter->len / sizeof(struct sock_filter)),
				       (void *)filter->data };
	int status = -1;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
		    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program_) < 0)
			_exit(100);
		_exit(body());
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static bool fails(long r, int error)
{
	return r == -1 && errno == error;
}

static int try_refused(void)
{
	if (!fails(syscall(SYS_keyctl, 0, 0, 0, 0, 0), EPERM))
		return 1;
	if (!fails(unshare(CLONE_NEWUSER), EPERM) || !fails(unshare(CLONE_NEWNS), EPERM))
		return 2;
	if (!fails(syscall(SYS_mount, "", "", "", 0, ""), EPERM))
		return 3;
	if (!fails(syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0), EPERM))
		return 4;
	if (!fails(syscall(SYS_clone3, NULL, 0), ENOSYS))
		return 5;
	/* the kernel ignores the upper half of the argument */
	if (!fails(socket(AF_VSOCK, SOCK_STREAM, 0), EPERM) ||
	    !fails(syscall(SYS_socket, 1L << 32 | AF_VSOCK, SOCK_STREAM, 0), EPERM))
		return 6;
	if (!fails(personality(ADDR_NO_RANDOMIZE), EPERM))
		return 7;
	if (!fails(syscall(SYS_io_uring_setup, 0, NULL), EPERM))
		return 8;
	/* newer than every call that the profile names */
	return fails(syscall(1000, 0), ENOSYS) ? 0 : 9;
}

static int try_allowed(void)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), status = -1;
	pid_t pid;

	for (int family = 0; family < 64; family++)
		if (family != AF_VSOCK && fails(socket(family, -1, 0), EPERM))
			return 4;
	if (fd < 0 || getpid() < 2 || personality(0xffffffff) < 0)
		return 1;
	pid = fork();
	if (pid == 0)
		_exit(0);
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
		return 2;
	return open("/dev/null", O_RDONLY | O_CLOEXEC) < 0 ? 3 : 0;
}

static void the_default_filter_refuses_what_containers_do_not_need(void **state)
{
	AUTO(buf_done) struct buf filter = { 0 };

	(void)state;
	get_default(NO_CAPABILITIES, &filter);
	assert_int_equal(run_with(&filter, try_refused), 0);
	assert_int_equal(run_with(&filter, try_allowed), 0);
}

static int try_admin(void)
{
	if (!fails(syscall(SYS_unshare, -1), EINVAL) || !fails(syscall(SYS_setns, -1, 0), EBADF))
		return 1;
	return fails(syscall(SYS_keyctl, 0, 0, 0, 0, 0), EPERM) ? 0 : 2;
}

static void a_capability_adds_the_calls_that_need_it(void **state)
{
	AUTO(buf_done) struct buf filter = { 0 }, plain = { 0 };

	(void)state;
	get_default(&STRINGS("CAP_SYS_ADMIN"), &filter);
	get_default(NO_CAPABILITIES, &plain);
	assert_int_equal(run_with(&filter, try_admin), 0);
	assert_int_equal(run_with(&plain, try_admin), 1);
	assert_int_equal(count_files(), 2);
}

static int try_denied(void)
{
	if (!fails(syscall(SYS_getppid), 17) || !fails(syscall(SYS_kill, 0, 0), 18))
		return 1;
	if (syscall(SYS_kill, getpid(), 0) != 0)
		return 2;
	/* the default action allows calls that the profile does not know, too */
	return fails(syscall(1000, 0), ENOSYS) && unshare(0) == 0 ? 0 : 3;
}

static void a_profile_may_also_list_what_is_refused(void **state)
{
	AUTO(filters_free) struct filters *f = NULL;
	AUTO(buf_done) struct buf filter = { 0 };
	autofree char *path = program();
	AUTO(profile_done)
	struct profile p = profile_of(
		"{'defaultAction':'SCMP_ACT_ALLOW','architectures':[],'syscalls':["
		"{'names':['getppid','no_such_call'],'action':'SCMP_ACT_ERRNO','errnoRet':17},"
		"{'names':['kill'],'action':'SCMP_ACT_ERRNO','errnoRet':18,"
		"'args':[{'index':0,'value':0,'op':'SCMP_CMP_EQ'}]}]}");

	(void)state;
	f = filters_with(path, 0);
	get(f, &p, &filter);
	assert_int_equal(run_with(&filter, try_denied), 0);
}

static int try_newer(void)
{
	return fails(syscall(1000, 0), EPERM) || fails(syscall(1000, 0), ENOSYS) ? errno : 0;
}

/* The highest call is exit_group; a sanitizer needs the others. */
#define OLD_CALLS                                                                                  \
	"'exit_group','futex','getpid','gettid','madvise','mmap','munmap','sigaltstack','write'"

static void a_call_newer_than_the_profile_fails_with_enosys(void **state)
{
	AUTO(profile_done)
	struct profile p =
		profile_of("{'defaultAction':'SCMP_ACT_ERRNO','syscalls':[{'names':[" OLD_CALLS "],"
			   "'action':'SCMP_ACT_ALLOW'}]}");
	AUTO(filters_free) struct filters *f = NULL;
	AUTO(buf_done) struct buf filter = { 0 };
	autofree char *path = program();

	(void)state;
	f = filters_with(path, 0);
	get(f, &p, &filter);
	assert_int_equal(run_with(&filter, try_newer), ENOSYS);
}

/* ---- how filters are kept ---------------------------------------------------------------------- */

#define SIMPLE "{'defaultAction':'SCMP_ACT_ALLOW'}"

/* Each compilation writes a line. */
#define LOG DIR_ "/log"

static struct filters *filters_log(void)
{
	autofree char *path = program();
	autofree char *commands = str_printf("echo x >>" LOG "; exec %s", path);

	return filters_script(commands, 0);
}

static void assert_compilations(size_t n)
{
	AUTO(buf_done) struct buf log = { 0 };
	struct hw_err e;

	assert_ok(file_read(AT_FDCWD, LOG, 4096, &log, &e), &e);
	assert_int_equal(log.len, n * strlen("x\n"));
}

static void a_filter_is_compiled_once(void **state)
{
	AUTO(filters_free) struct filters *f = NULL, *other = NULL;
	AUTO(profile_done) struct profile p = profile_of(SIMPLE);
	AUTO(buf_done) struct buf first = { 0 }, second = { 0 };

	(void)state;
	f = filters_log();
	get(f, &p, &first);
	other = filters_with(SCRIPT, 0);
	get(other, &p, &second);
	assert_int_equal(first.len, second.len);
	assert_memory_equal(first.data, second.data, first.len);
	assert_int_equal(count_files(), 1);
	assert_compilations(1);
}

static void another_version_of_the_program_compiles_again(void **state)
{
	AUTO(filters_free) struct filters *f = NULL, *newer = NULL;
	AUTO(profile_done) struct profile p = profile_of(SIMPLE);
	AUTO(buf_done) struct buf first = { 0 }, second = { 0 }, third = { 0 };

	(void)state;
	f = filters_log();
	get(f, &p, &first);
	newer = filters_log(); /* replaces the file */
	get(f, &p, &second);   /* also for a daemon that runs */
	assert_compilations(2);
	get(newer, &p, &third);
	assert_compilations(2);
}

static void *get_in_thread(void *arg)
{
	AUTO(profile_done) struct profile p = profile_of(SIMPLE);
	AUTO(buf_done) struct buf filter = { 0 };

	get(arg, &p, &filter);
	return NULL;
}

static void requests_at_the_same_time_share_a_compilation(void **state)
{
	AUTO(filters_free) struct filters *f = filters_log();
	pthread_t threads[THREADS];

	(void)state;
	for (size_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, get_in_thread, f), 0);
	for (size_t i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	assert_compilations(1);
}

static void a_damaged_file_is_replaced(void **state)
{
	static const char *const damages[] = {
		": >\"$f\"",
		"head -c 12 /dev/zero >\"$f\"",
		"head -c 80 /dev/zero >\"$f\"",
		"head -c 100000 /dev/zero >\"$f\"",
	};
	AUTO(filters_free) struct filters *f = NULL;
	AUTO(profile_done) struct profile p = profile_of(SIMPLE);
	AUTO(buf_done) struct buf first = { 0 };
	autofree char *path = program();

	(void)state;
	f = filters_with(path, 0);
	get(f, &p, &first);
	for (size_t i = 0; i < ARRAY_SIZE(damages); i++) {
		AUTO(buf_done) struct buf again = { 0 };
		autofree char *command = str_printf("f=$(echo " FILES "/*); %s", damages[i]);

		run_shell(command);
		get(f, &p, &again);
		assert_int_equal(again.len, first.len);
		assert_memory_equal(again.data, first.data, first.len);
	}
	assert_int_equal(count_files(), 1);
}

static void the_number_of_files_is_limited(void **state)
{
	AUTO(filters_free) struct filters *f = NULL;
	AUTO(profile_done) struct profile p = profile_of(SIMPLE);
	AUTO(buf_done) struct buf filter = { 0 };
	autofree char *path = program();

	(void)state;
	f = filters_with(path, 0);
	/* the one with the number 100 is the oldest */
	run_shell("cd " FILES " && for i in $(seq 300); do touch "
		  "$(printf %064d $i); done && touch -d 2000-01-01 "
		  "$(printf %064d 100)");
	get(f, &p, &filter);
	assert_int_equal(count_files(), FILTERS_MAX);
	assert_int_equal(access(FILES "/" /* 64 digits */
				      "00000000000000000000000000000000"
				      "00000000000000000000000000000100",
				F_OK),
			 -1);
}

/* ---- failures ---------------------------------------------------------------------------------- */

static void an_invalid_profile_is_refused_and_nothing_is_kept(void **state)
{
	static const struct {
		const char *json, *error;
	} cases[] = {
		{ "{'defaultAction':'SCMP_ACT_X'}", "defaultAction: unknown value \"SCMP_ACT_X\"" },
		{ "{'defaultAction':'SCMP_ACT_NOTIFY'}",
		  "defaultAction: unknown value \"SCMP_ACT_NOTIFY\"" },
		{ "{'defaultAction':'SCMP_ACT_ALLOW','defaultErrnoRet':1}",
		  "defaultAction: SCMP_ACT_ALLOW takes no errno" },
		{ "{'defaultAction':'SCMP_ACT_ALLOW','architectures':['SCMP_ARCH_VAX']}",
		  "architectures: unknown value \"SCMP_ARCH_VAX\"" },
		{ "{'defaultAction':'SCMP_ACT_ALLOW','architectures':['SCMP_ARCH_S390X']}",
		  "architectures: SCMP_ARCH_S390X cannot be combined with this machine's" },
		{ "{'defaultAction':'SCMP_ACT_ALLOW','syscalls':[{'names':['read'],'action':'X'}]}",
		  "syscalls[0]: action: unknown value \"X\"" },
		{ "{'defaultAction':'SCMP_ACT_ALLOW','syscalls':[{'names':['read'],"
		  "'action':'SCMP_ACT_KILL','args':[{'index':0,'value':0,'op':'EQ'}]}]}",
		  "syscalls[0]: op: unknown value \"EQ\"" },
	};
	AUTO(filters_free) struct filters *f = NULL;
	autofree char *path = program();

	(void)state;
	f = filters_with(path, 0);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		AUTO(profile_done) struct profile p = profile_of(cases[i].json);
		AUTO(buf_done) struct buf filter = { 0 };
		struct hw_err e;

		assert_int_equal(filters_get(f, &p, &filter, &e), -EINVAL);
		assert_string_equal(e.msg, cases[i].error);
	}
	assert_int_equal(count_files(), 0);
}

/* More than the 4096 instructions that the kernel accepts. */
static void a_profile_whose_filter_is_too_large_is_refused(void **state)
{
	AUTO(filters_free) struct filters *f = NULL;
	AUTO(profile_done) struct profile p = profile_of("{'defaultAction':'SCMP_ACT_ALLOW'}");
	AUTO(buf_done) struct buf filter = { 0 };
	autofree char *path = program();
	struct hw_err e;

	(void)state;
	for (int64_t i = 0; i < 2000; i++) {
		struct profile_rule *rule = profile_add_rule(&p);
		struct profile_argument *argument = mem_new(sizeof(*argument));

		strings_add(&rule->names, "kill");
		rule->action = str_copy("SCMP_ACT_ERRNO");
		*argument = (struct profile_argument){ 0, i << 32 | i, 0, str_copy("SCMP_CMP_EQ") };
		rule->arguments = (struct hw_list){ argument, 1 };
	}
	f = filters_with(path, 0);
	assert_int_equal(filters_get(f, &p, &filter, &e), -EINVAL);
	assert_string_equal(e.msg, "the compiled filter has more than 4096 instructions");
	assert_int_equal(count_files(), 0);
}

static void a_failure_of_the_program_is_an_error_and_nothing_is_kept(void **state)
{
	static const struct {
		const char *commands, *error;
	} cases[] = {
		{ "kill -9 $$", "hawser-seccomp: signal: killed" },
		{ "kill -SEGV $$", "hawser-seccomp: signal: segmentation fault" },
		{ "exit 3", "hawser-seccomp: exit status 3" },
		{ "exit 1", "hawser-seccomp: exit status 1" },
		{ "exit 0", "hawser-seccomp: malformed filter of 0 bytes" },
		{ "echo nonsense", "hawser-seccomp: malformed filter of 9 bytes" },
		{ "head -c 64 /dev/zero", "hawser-seccomp: malformed filter of 64 bytes" },
		/* RET after a jump that leads out */
		{ "printf '\\025\\0\\0\\001\\0\\0\\0\\0\\006\\0\\0\\0\\0\\0\\0\\0'",
		  "hawser-seccomp: malformed filter of 16 bytes" },
	};
	AUTO(profile_done) struct profile p = profile_of(SIMPLE);
	struct hw_err e;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		autofree char *commands = str_printf("PATH=/usr/bin:/bin\n%s", cases[i].commands);
		AUTO(filters_free) struct filters *f = filters_script(commands, 0);
		AUTO(buf_done) struct buf filter = { 0 };

		assert_int_equal(filters_get(f, &p, &filter, &e), -EIO);
		assert_string_equal(e.msg, cases[i].error);
	}
	assert_int_equal(count_files(), 0);
}

static void a_program_that_hangs_is_killed(void **state)
{
	AUTO(filters_free) struct filters *f = filters_script("exec /bin/sleep 100000", 100);
	AUTO(profile_done) struct profile p = profile_of(SIMPLE);
	AUTO(buf_done) struct buf filter = { 0 };
	struct hw_err e;

	(void)state;
	assert_int_equal(filters_get(f, &p, &filter, &e), -EIO);
	assert_string_equal(e.msg, SCRIPT ": timed out, killed");
	assert_int_equal(count_files(), 0);
}

static void a_missing_program_is_an_error(void **state)
{
	AUTO(filters_free) struct filters *f = filters_with("/does/not/exist", 0);
	AUTO(profile_done) struct profile p = profile_of(SIMPLE);
	AUTO(buf_done) struct buf filter = { 0 };
	struct hw_err e;

	(void)state;
	assert_int_equal(filters_get(f, &p, &filter, &e), -ENOENT);
}

/* The filter is larger than the file system. */
static void a_full_disk_is_an_error_and_nothing_is_left(void **state)
{
	AUTO(profile_done) struct profile p = { 0 };
	AUTO(buf_done) struct buf filter = { 0 };
	struct profile_target target = target_with(NO_CAPABILITIES);
	autofree char *path = program();
	struct filters *f;
	struct hw_err e;

	(void)state;
	target.machine = profile_machine(NULL);
	default_profile(&target, &p);
	run_shell("mkdir " FILES " && mount -t tmpfs -o size=4k none " FILES);
	f = filters_with(path, 0);
	assert_int_equal(filters_get(f, &p, &filter, &e), -ENOSPC);
	assert_int_equal(count_files(), 0);
	filters_free(f);
	run_shell("umount " FILES);
}

#define TEST(sentence, f)                                                                          \
	{                                                                                          \
		"filter: " sentence, f, setup, NULL, NULL                                          \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST("the default one refuses what containers do not need",
		     the_default_filter_refuses_what_containers_do_not_need),
		TEST("a capability adds the calls that need it",
		     a_capability_adds_the_calls_that_need_it),
		TEST("a profile may also list what is refused",
		     a_profile_may_also_list_what_is_refused),
		TEST("a call newer than the profile fails with ENOSYS",
		     a_call_newer_than_the_profile_fails_with_enosys),
		TEST("it is compiled once", a_filter_is_compiled_once),
		TEST("another version of the program compiles again",
		     another_version_of_the_program_compiles_again),
		TEST("requests at the same time share a compilation",
		     requests_at_the_same_time_share_a_compilation),
		TEST("a damaged file is replaced", a_damaged_file_is_replaced),
		TEST("the number of files is limited", the_number_of_files_is_limited),
		TEST("an invalid profile is refused, and nothing is kept",
		     an_invalid_profile_is_refused_and_nothing_is_kept),
		TEST("a profile whose filter is too large is refused",
		     a_profile_whose_filter_is_too_large_is_refused),
		TEST("a failure of the program is an error, and nothing is kept",
		     a_failure_of_the_program_is_an_error_and_nothing_is_kept),
		TEST("a program that hangs is killed", a_program_that_hangs_is_killed),
		TEST("a missing program is an error", a_missing_program_is_an_error),
		TEST("a full disk is an error, and nothing is left",
		     a_full_disk_is_an_error_and_nothing_is_left),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
