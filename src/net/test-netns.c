/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/test-netns.c - open, enter and leave network namespaces
 */
#include "net/netns.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "net/test.h"

/* Undoes cmocka's signal handler, which would report a failed test. */
static void reset_signal(int number)
{
	const struct sigaction by_default = { .sa_handler = SIG_DFL };

	sigaction(number, &by_default, NULL);
}

static ino_t own_inode(void)
{
	struct stat st;

	assert_int_equal(stat("/proc/self/ns/net", &st), 0);
	return st.st_ino;
}

static void own_namespace(void **state)
{
	autoclose int fd = -1;
	struct stat st;
	struct hw_err e;

	(void)state;
	assert_int_equal(netns_open("/proc/self/ns/net", &fd, &e), 0);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_ino, own_inode());
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
}

static void missing_path(void **state)
{
	struct hw_err e;
	int fd = -7;

	(void)state;
	assert_int_equal(netns_open("/proc/self/ns/nosuch", &fd, &e), -ENOENT);
	assert_string_equal(e.msg,
			    "failed to Statfs \"/proc/self/ns/nosuch\": No such file or directory");
	assert_int_equal(fd, -7);
}

static void not_a_namespace(void **state)
{
	struct hw_err e;
	int fd = -7;

	(void)state;
	assert_int_equal(netns_open("/sys", &fd, &e), -EINVAL);
	assert_string_equal(e.msg, "unknown FS magic on \"/sys\": 62656572");
	assert_int_equal(fd, -7);
}

static void find_missing_namespace(void **state)
{
	autoclose int fd = -1;
	struct hw_err e;

	(void)state;
	assert_int_equal(netns_find("", &fd, &e), 0);
	assert_int_equal(netns_find("/proc/self/ns/nosuch", &fd, &e), 0);
	assert_int_equal(netns_find("/proc/self/status/nosuch", &fd, &e), 0);
	assert_int_equal(netns_find("/sys", &fd, &e), 0);
	assert_int_equal(fd, -1);
	assert_int_equal(netns_find("/proc/self/ns/net", &fd, &e), 1);
	assert_true(fd >= 0);
}

static void leave_fails(void **state)
{
	struct netns_home home = { .fd = open("/dev/null", O_RDONLY | O_CLOEXEC) };
	int status;
	pid_t pid;

	(void)state;
	assert_true(home.fd >= 0);
	pid = fork();
	if (pid == 0) {
		struct rlimit no_core = { 0 };

		setrlimit(RLIMIT_CORE, &no_core);
		reset_signal(SIGABRT);
		netns_leave(&home);
		_exit(0);
	}
	close(home.fd);
	waitpid(pid, &status, 0);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

static void enter_and_leave(void **state)
{
	autoclose int fd = -1;
	ino_t home_inode = own_inode();
	struct hw_err e;

	(void)state;
	test_require_netns();
	fd = test_new_netns();
	{
		AUTO(netns_leave) struct netns_home home = NETNS_HOME;

		assert_int_equal(netns_enter(fd, &home, &e), 0);
		assert_int_not_equal(own_inode(), home_inode);
	}
	assert_int_equal(own_inode(), home_inode);
}

static void enter_other_namespace_type(void **state)
{
	AUTO(netns_leave) struct netns_home home = NETNS_HOME;
	autoclose int fd = -1;
	struct hw_err e;

	(void)state;
	test_require_netns();
	assert_int_equal(netns_open("/proc/self/ns/mnt", &fd, &e), 0);
	assert_int_equal(netns_enter(fd, &home, &e), -EINVAL);
	assert_int_equal(home.fd, -1);
}

static void socket_in_another_namespace(void **state)
{
	AUTO(rtnl_close) struct rtnl *here = test_rtnl(), *there = NULL;
	autoclose int fd = test_new_netns();
	struct link lo;
	struct hw_err e;

	(void)state;
	assert_int_equal(rtnl_open(fd, &there, &e), 0);
	assert_int_equal(link_get(here, "lo", &lo, &e), 0);
	link_set_up(here, &lo);
	assert_int_equal(rtnl_commit(here, &e), 0);
	assert_int_equal(link_get(there, "lo", &lo, &e), 0);
	assert_false(lo.flags & IFF_UP);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{ "netns: the program's own namespace can be opened", own_namespace },
		{ "netns: opening a missing path fails with ENOENT", missing_path },
		{ "netns: a file that is not a namespace is refused", not_a_namespace },
		{ "netns: find returns 0 for a namespace that does not exist",
		  find_missing_namespace },
		{ "netns: the process aborts if it cannot leave a namespace", leave_fails },
		{ "netns: netns_leave() returns to the namespace in which netns_enter() was called",
		  enter_and_leave },
		{ "netns: a namespace of another type cannot be entered",
		  enter_other_namespace_type },
		{ "netns: a socket opened in another namespace keeps that namespace",
		  socket_in_another_namespace },
	};

	return cmocka_run_group_tests_name("netns", tests, test_enter, NULL);
}
