/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cni/test-lock.c - tests of the locks between GC, ADD and DEL
 */
#include "cni/lock.h"

#include "cni/test.h"

#include <errno.h>
#include <sys/wait.h>

#include "base/hash.h"
#include "base/time.h"

#define SOON time_deadline(50)

static void adds_share(void **state)
{
	const struct place *p = *state;
	autoclose int a = -1, b = -1;
	struct hw_err e;

	assert_ok(lock_acquire(p->state, "n", "libhawser", false, SOON, &a, &e), e);
	assert_ok(lock_acquire(p->state, "n", "libhawser", false, SOON, &b, &e), e);
}

static void gc_excludes(void **state)
{
	const struct place *p = *state;
	autoclose int add = -1, gc = -1;
	struct hw_err e;

	assert_ok(lock_acquire(p->state, "n", "libhawser", false, SOON, &add, &e), e);
	assert_true(lock_acquire(p->state, "n", "libhawser", true, SOON, &gc, &e) < 0);
	assert_int_equal(hw_err_wire(&e), HW_CNI_TRY_AGAIN);
	assert_string_equal(e.msg, "network \"n\" is busy: timed out waiting for running ADDs "
				   "and DELs");
	assert_int_equal(gc, -1);
	close(take_fd(add));
	assert_ok(lock_acquire(p->state, "n", "libhawser", true, SOON, &gc, &e), e);
	assert_true(lock_acquire(p->state, "n", "libhawser", false, SOON, &add, &e) < 0);
	assert_string_equal(e.msg, "network \"n\" is busy: timed out waiting for a running GC");
}

static void other_locks(void **state)
{
	const struct place *p = *state;
	autoclose int a = -1, b = -1, c = -1;
	struct hw_err e;

	assert_ok(lock_acquire(p->state, "n", "libhawser", true, SOON, &a, &e), e);
	assert_ok(lock_acquire(p->state, "n", "bridge", true, SOON, &b, &e), e);
	assert_ok(lock_acquire(p->state, "m", "libhawser", true, SOON, &c, &e), e);
}

static void attachments_exclude(void **state)
{
	const struct place *p = *state;
	autoclose int a = -1, b = -1;
	struct hw_err e;

	assert_ok(lock_acquire(p->state, "n", "libhawser", false, SOON, &a, &e), e);
	assert_ok(lock_acquire(p->state, "n", "libhawser", false, SOON, &b, &e), e);
	assert_ok(lock_attachment(a, "c1", "eth0", SOON, &e), e);
	assert_true(lock_attachment(b, "c1", "eth0", SOON, &e) < 0);
	assert_int_equal(hw_err_wire(&e), HW_CNI_TRY_AGAIN);
	assert_string_equal(e.msg, "container c1 interface eth0 is busy: timed out waiting for a "
				   "running ADD or DEL");
	assert_ok(lock_attachment(b, "c1", "eth1", SOON, &e), e);
	assert_ok(lock_attachment(b, "c2", "eth0", SOON, &e), e);
	close(take_fd(a));
	assert_ok(lock_attachment(b, "c1", "eth0", SOON, &e), e);
}

static void any_network_name(void **state)
{
	const struct place *p = *state;
	autoclose int a = -1, b = -1;
	struct hw_err e;

	assert_ok(lock_acquire(p->state, "../../x", "libhawser", true, SOON, &a, &e), e);
	assert_ok(lock_acquire(p->state, "", "libhawser", true, SOON, &b, &e), e);
	assert_false(place_has(p, "x"));
}

static void dead_holder(void **state)
{
	const struct place *p = *state;
	autoclose int lock = -1;
	struct hw_err e;
	pid_t child = fork();
	int status;

	if (child == 0)
		_exit(lock_acquire(p->state, "n", "libhawser", true, SOON, &lock, &e) < 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_ok(lock_acquire(p->state, "n", "libhawser", true, SOON, &lock, &e), e);
}

static void no_state_dir(void **state)
{
	const struct place *p = *state;
	autofree char *dir = str_printf("%s/file/deep", p->dir);
	int fd = -1;
	struct hw_err e;

	place_write(p, "file", "", 0600);
	assert_int_equal(lock_acquire(dir, "n", "libhawser", false, SOON, &fd, &e), -ENOTDIR);
	assert_starts(e.msg, "lock network \"n\": ");
	assert_contains(e.msg, dir);
	assert_int_equal(fd, -1);
}

/* Return: the value of check() in a process that is not root */
static bool holds_without_root(const struct place *p, bool (*check)(const struct place *p))
{
	pid_t child = fork();
	int status;

	if (child == 0)
		_exit((geteuid() == 0 && setresuid(65534, 65534, 65534) < 0) || !check(p));
	assert_int_equal(waitpid(child, &status, 0), child);
	return status == 0;
}

static bool gets_hint(const struct place *p)
{
	int fd = -1;
	struct hw_err e;

	return lock_acquire(p->state, "n", "libhawser", false, SOON, &fd, &e) == -EACCES &&
	       strstr(e.details, "HAWSER_STATE");
}

static void forbidden_state(void **state)
{
	const struct place *p = *state;

	/* A test that does not run as root owns the directory: remove the owner's access too. */
	assert_int_equal(chmod(p->dir, 0), 0);
	assert_true(holds_without_root(p, gets_hint));
	assert_int_equal(chmod(p->dir, 0700), 0);
}

static bool uses_own_runtime_dir(const struct place *p)
{
	autofree char *dir = state_dir_default();

	(void)p;
	return str_equal(dir, "/run/user/7/hawser");
}

static void state_dir_choice(void **state)
{
	autofree char *set = NULL, *unset = NULL;

	setenv("HAWSER_STATE", "/somewhere", 1);
	set = state_dir_default();
	assert_string_equal(set, "/somewhere");
	unsetenv("HAWSER_STATE");
	setenv("XDG_RUNTIME_DIR", "/run/user/7", 1);
	assert_true(holds_without_root(*state, uses_own_runtime_dir));
	unset = state_dir_default();
	assert_string_equal(unset, geteuid() == 0 ? "/run/hawser" : "/run/user/7/hawser");
}

static mode_t mode_of(const char *path)
{
	struct stat st;

	assert_int_equal(lstat(path, &st), 0);
	return st.st_mode & 07777;
}

static void directory_modes(void **state)
{
	const struct place *p = *state;
	autofree char *locks = str_printf("%s/locks", p->state);
	mode_t before = umask(0);
	autoclose int a = -1;
	struct hw_err e;
	int r;

	r = lock_acquire(p->state, "n", "libhawser", true, SOON, &a, &e);
	umask(before);
	assert_ok(r, e);
	assert_int_equal(mode_of(p->state), 0700);
	assert_int_equal(mode_of(locks), 0700);
}

static void symbolic_link(void **state)
{
	const struct place *p = *state;
	autofree char *lock = NULL;
	autoclose int fd = -1;
	char hash[32 + 1];
	struct hw_err e;

	assert_ok(lock_acquire(p->state, "n", "libhawser", true, SOON, &fd, &e), e);
	close(take_fd(fd));
	hash_hex("n", 32, hash);
	lock = str_printf("%s/locks/libhawser-%s", p->state, hash);
	assert_int_equal(unlink(lock), 0);
	assert_int_equal(symlink("../../elsewhere", lock), 0);
	assert_int_equal(lock_acquire(p->state, "n", "libhawser", true, SOON, &fd, &e), -ELOOP);
	assert_contains(e.msg, lock);
	assert_false(place_has(p, "elsewhere"));
}

static const struct CMUnitTest tests[] = {
	PLACE_TEST("lock: ADDs share the lock of a network", adds_share),
	PLACE_TEST("lock: GC excludes ADD and DEL, and fails with code 11 on timeout", gc_excludes),
	PLACE_TEST("lock: locks of different holders or different networks do not conflict",
		   other_locks),
	PLACE_TEST("lock: an attachment is locked once, and other attachments can be locked",
		   attachments_exclude),
	PLACE_TEST("lock: a network name may contain any character", any_network_name),
	PLACE_TEST("lock: the lock is released when its holder exits", dead_holder),
	PLACE_TEST("lock: an error names the state directory that cannot be created", no_state_dir),
	PLACE_TEST("lock: the details of a permission error name HAWSER_STATE", forbidden_state),
	PLACE_TEST("lock: directories are created with mode 0700, even with umask 0",
		   directory_modes),
	PLACE_TEST("lock: a symbolic link instead of a lock file is refused", symbolic_link),
	PLACE_TEST("lock: root and other users have different default state directories",
		   state_dir_choice),
};

int main(void)
{
	return cmocka_run_group_tests_name("lock", tests, NULL, NULL);
}
