/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net/test-sysctl.c - read and write files under the kernel's /proc/sys
 */
#include "net/test.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/os/thread.h"
#include "base/str.h"
#include "net/iface/forwarding.h"
#include "net/rtnl/rtnl.h"
#include "net/sysctl.h"

#define FORWARDING "net/ipv4/conf/lo/forwarding"

static void require_writable(void)
{
	test_require_netns();
	if (access("/proc/sys/" FORWARDING, W_OK) < 0) {
		print_message("/proc/sys is read-only\n");
		skip();
	}
}

static void assert_value(int netns_fd, const char *name, const char *want)
{
	autofree char *value = NULL;
	struct hw_err e = { 0 };

	sysctl_read(netns_fd, name, &value, &e);
	assert_string_equal(e.msg, "");
	assert_string_equal(value, want);
}

static void writes_when_different(void **state)
{
	struct hw_err e;

	(void)state;
	require_writable();
	assert_int_equal(sysctl_write(-1, FORWARDING, "0", &e) < 0, 0);
	assert_int_equal(sysctl_write(-1, FORWARDING, "1", &e), 0);
	assert_value(-1, FORWARDING, "1");
	assert_int_equal(sysctl_write(-1, FORWARDING, "1", &e), 1);
	assert_int_equal(sysctl_write(-1, FORWARDING, "nonsense", &e), -EINVAL);
	assert_string_equal(e.msg, "write \"nonsense\" to sysctl "
				   "/proc/sys/" FORWARDING ": Invalid argument");
}

static void dots_and_slashes(void **state)
{
	AUTO(rtnl_close) struct rtnl *nl = test_rtnl();
	struct hw_err e;

	(void)state;
	require_writable();
	test_put_veth(nl, "dot.ted", "plain");
	test_commit(nl);
	assert_int_equal(sysctl_write(-1, "net/ipv4/conf/dot.ted/arp_notify", "1", &e), 0);
	assert_value(-1, "net.ipv4.conf.dot/ted.arp_notify", "1");
	assert_int_equal(sysctl_write(-1, "net.ipv4.conf.dot/ted.arp_notify", "0", &e), 0);
	assert_int_equal(sysctl_write_conf(-1, AF_INET, "dot.ted", "arp_notify", "0", &e), 1);
	assert_int_equal(sysctl_write_conf(-1, AF_INET, "dot.ted", "arp_notify", "1", &e), 0);
	assert_value(-1, "net/ipv4/conf/dot.ted/arp_notify", "1");
}

static void invalid_names(void **state)
{
	static const char *const names[] = { "",
					     "/",
					     "net//ipv4",
					     "net/../kernel/hostname",
					     "net/./ipv4",
					     "/net/ipv4/ip_forward",
					     "net.ipv4.//.ip_forward",
					     "net/ipv4/" };
	autofree char *value = NULL;
	struct hw_err e;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		assert_int_equal(sysctl_read(-1, names[i], &value, &e), -EINVAL);
		assert_non_null(strstr(e.msg, "invalid sysctl name"));
		assert_int_equal(sysctl_write(-1, names[i], "1", &e), -EINVAL);
	}
	assert_int_equal(sysctl_read(-1, "net/ipv4/no_such_thing", &value, &e), -ENOENT);
	assert_int_equal(sysctl_write(-1, "net/ipv4/no_such_thing", "1", &e), -ENOENT);
	assert_null(value);
}

static void in_another_namespace(void **state)
{
	autoclose int here = -1;
	struct hw_err e;

	(void)state;
	require_writable();
	here = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
	assert_true(here >= 0);
	assert_true(sysctl_write(-1, FORWARDING, "1", &e) >= 0);
	assert_int_equal(unshare(CLONE_NEWNET), 0);
	assert_true(sysctl_write(-1, FORWARDING, "0", &e) >= 0);
	assert_value(here, FORWARDING, "1");
	assert_value(-1, FORWARDING, "0");
	assert_int_equal(sysctl_write(here, FORWARDING, "0", &e), 0);
	assert_int_equal(sysctl_write(-1, FORWARDING, "1", &e), 0);
	assert_value(here, FORWARDING, "0");
}

#define TTL "net/ipv4/ip_default_ttl"

struct writer {
	int netns_fd, first;
	pthread_barrier_t *barrier;
	int mismatches;
};

/* Writes 100 values, each at the same time as the other thread, and reads them back. */
static void *write_values(void *arg)
{
	struct writer *w = arg;

	for (int i = 0; i < 100; i++) {
		autofree char *want = str_printf("%d", w->first + i), *got = NULL;
		struct hw_err e;

		pthread_barrier_wait(w->barrier);
		if (sysctl_write(w->netns_fd, TTL, want, &e) < 0)
			w->mismatches++;
		pthread_barrier_wait(w->barrier);
		if (sysctl_read(w->netns_fd, TTL, &got, &e) < 0 || !str_equal(got, want))
			w->mismatches++;
	}
	return NULL;
}

static void threads_in_two_namespaces(void **state)
{
	autoclose int a = -1, b = -1;
	pthread_barrier_t barrier;
	struct writer writers[2];
	pthread_t threads[2];
	struct hw_err e;

	(void)state;
	require_writable();
	a = test_new_netns();
	b = test_new_netns();
	assert_true(sysctl_write(-1, TTL, "77", &e) >= 0);
	pthread_barrier_init(&barrier, NULL, 2);
	writers[0] = (struct writer){ a, 1, &barrier, 0 };
	writers[1] = (struct writer){ b, 101, &barrier, 0 };
	for (size_t i = 0; i < 2; i++)
		assert_int_equal(thread_start(write_values, &writers[i], &threads[i], &e), 0);
	for (size_t i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	pthread_barrier_destroy(&barrier);
	assert_int_equal(writers[0].mismatches + writers[1].mismatches, 0);
	assert_value(a, TTL, "100");
	assert_value(b, TTL, "200");
	assert_value(-1, TTL, "77");
}

static void values_of_several_words(void **state)
{
	struct hw_err e;

	(void)state;
	assert_true(sysctl_equal("1", "1\n"));
	assert_true(sysctl_equal("4096\t131072\t6291456", "4096 131072  6291456 "));
	assert_true(sysctl_equal("", "\n"));
	assert_false(sysctl_equal("1", "10"));
	assert_false(sysctl_equal("1 2", "12"));
	assert_false(sysctl_equal("1 2", "1"));
	assert_false(sysctl_equal("", "0"));
	require_writable();
	assert_int_equal(sysctl_write(-1, "net/ipv4/ip_local_port_range", "20000 30000", &e), 0);
	assert_int_equal(sysctl_write(-1, "net/ipv4/ip_local_port_range", "20000 30000", &e), 1);
	assert_value(-1, "net/ipv4/ip_local_port_range", "20000\t30000");
}

#define HELD_MIN 16 /* sender processes inherit duplicates from this number on */

static bool holds_procfs(void)
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *entry;
	struct statfs fs;
	bool found = false;

	assert_non_null(dir);
	while ((entry = readdir(dir)) && !found) {
		long long fd;

		found = str_to_int64(entry->d_name, 0, HELD_MIN - 1, &fd) && fd != dirfd(dir) &&
			fstatfs((int)fd, &fs) == 0 && fs.f_type == PROC_SUPER_MAGIC;
	}
	closedir(dir);
	return found;
}

static void release(void **state)
{
	autoclose int netns = test_new_netns();
	struct hw_err e;

	(void)state;
	require_writable();
	sysctl_release();
	assert_false(holds_procfs());
	assert_true(sysctl_write(netns, FORWARDING, "1", &e) >= 0);
	if (!holds_procfs()) {
		print_message("not permitted to mount procfs\n");
		skip();
	}
	sysctl_release();
	assert_false(holds_procfs());
	assert_value(netns, FORWARDING, "1");
}

/* Calls forwarding_enable() for a pod with these addresses. */
static int enable(struct rtnl *nl, const char *first, const char *second, struct hw_err *e)
{
	struct hw_ipconf ips[2] = { { .address = test_prefix(first) } };
	struct hw_result result = { .ips = ips, .n_ips = second ? 2 : 1 };

	if (second)
		ips[1].address = test_prefix(second);
	return forwarding_enable(nl, &result, e);
}

static void forwarding(void **state)
{
	AUTO(rtnl_close) struct rtnl *nl = NULL;
	struct hw_err e;

	(void)state;
	require_writable();
	assert_int_equal(rtnl_open(-1, &nl, &e), 0);
	assert_true(sysctl_write(-1, "net/ipv4/ip_forward", "0", &e) >= 0);
	assert_int_equal(enable(nl, "10.1.0.2/24", "10.2.0.2/24", &e), 0);
	assert_value(-1, "net/ipv4/ip_forward", "1");
	assert_int_equal(enable(nl, "10.1.0.2/24", NULL, &e), 1);
	if (access("/proc/sys/net/ipv6", F_OK) < 0) {
		assert_int_equal(enable(nl, "10.1.0.2/24", "fd00::2/64", &e), -ENOENT);
		assert_non_null(strstr(e.msg, "enable IPv6 forwarding: "));
		return;
	}
	assert_true(sysctl_write_conf(-1, AF_INET6, "all", "forwarding", "0", &e) >= 0);
	assert_int_equal(enable(nl, "10.1.0.2/24", NULL, &e), 1);
	assert_value(-1, "net/ipv6/conf/all/forwarding", "0");
	assert_int_equal(enable(nl, "10.1.0.2/24", "fd00::2/64", &e), 0);
	assert_value(-1, "net/ipv6/conf/all/forwarding", "1");
	assert_int_equal(enable(nl, "fd00::2/64", "10.1.0.2/24", &e), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		/* first, so that both threads mount the private procfs */
		{ "sysctl: threads write to two namespaces at the same time",
		  threads_in_two_namespaces },
		{ "sysctl: a value is written only when it differs", writes_when_different },
		{ "sysctl: dots and slashes are swapped if the first separator is a dot",
		  dots_and_slashes },
		{ "sysctl: names with empty parts, . or .. are rejected", invalid_names },
		{ "sysctl: a sysctl is read and written in the given namespace",
		  in_another_namespace },
		{ "sysctl: values of several words are compared word by word",
		  values_of_several_words },
		{ "sysctl: the private procfs is closed, and mounted again when needed", release },
		{ "sysctl: forwarding is enabled only if it is off", forwarding },
	};

	return cmocka_run_group_tests_name("sysctl", tests, test_enter, NULL);
}
