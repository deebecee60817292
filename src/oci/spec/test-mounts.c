/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci/spec/test-mounts.c - mounts of a container
 *
 * How:   each test has an empty tmpfs at /tmp/m.
 */
#include "oci/spec/mounts.h"

#include <errno.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "oci/spec/test.h"

#define DIR "/tmp/m"

static int mount_dir(void **state)
{
	(void)state;
	mkdir(DIR, 0755);
	if (mount("none", DIR, "tmpfs", 0, NULL) < 0 ||
	    mount(NULL, DIR, NULL, MS_PRIVATE, NULL) < 0)
		return -1;
	return mkdir(DIR "/d", 0700);
}

static int umount_dir(void **state)
{
	(void)state;
	return umount2(DIR, MNT_DETACH);
}

/* A mount at /x: from a host path, or from /tmp/m/d; with further members */
#define FROM(path, ...)                                                                            \
	(&(struct spec_mount){ .container_path = "/x", .host_path = path, ##__VA_ARGS__ })
#define BIND(...) FROM(DIR "/d", ##__VA_ARGS__)

static int set_one(struct oci_spec *s, const struct spec_mount *m, struct hw_err *e)
{
	return spec_set_mounts(
		s,
		&(struct spec_mounts){
			.requested = m, .n_requested = 1, .rro = true, .idmap = OCI_IDMAP_SAME },
		e);
}

/* The last mount, as JSON. */
static char *last_mount(const struct oci_spec *s)
{
	autofree char *text = encode_spec(s);
	AUTO(value_free) struct value *all = value_literal(text);
	const struct value *mounts = value_get(all, "mounts");

	return value_format(value_at(mounts, value_count(mounts) - 1), 0);
}

static void assert_bind(const struct spec_mount *m, const char *expected)
{
	AUTO(spec_done) struct oci_spec s = { 0 };
	autofree char *text = NULL;
	struct hw_err e;

	assert_ok(set_one(&s, m, &e), &e);
	text = last_mount(&s);
	assert_string_equal(text, expected);
}

static void assert_refused(const struct spec_mount *m, int code, const char *msg)
{
	AUTO(spec_done) struct oci_spec s = { 0 };
	struct hw_err e;

	assert_int_equal(set_one(&s, m, &e), code);
	assert_string_equal(e.msg, msg);
}

/* ---- which mounts, in which order -------------------------------------------------------------- */

static void the_default_mounts_are_those_of_oci(void **state)
{
	AUTO(spec_done) struct oci_spec s = { 0 }, p = { 0 };
	struct hw_err e;

	(void)state;
	assert_ok(spec_set_mounts(&s, &(struct spec_mounts){ 0 }, &e), &e);
	assert_spec(
		&s, "mounts",
		"[{'destination':'/proc','type':'proc','source':'proc','options':['nosuid',"
		"'noexec','nodev']},"
		"{'destination':'/dev','type':'tmpfs','source':'tmpfs','options':['nosuid',"
		"'strictatime','mode=755','size=65536k']},"
		"{'destination':'/dev/pts','type':'devpts','source':'devpts','options':['nosuid',"
		"'noexec','newinstance','ptmxmode=0666','mode=0620','gid=5']},"
		"{'destination':'/dev/mqueue','type':'mqueue','source':'mqueue','options':["
		"'nosuid','noexec','nodev']},"
		"{'destination':'/sys','type':'sysfs','source':'sysfs','options':['nosuid',"
		"'noexec','nodev','ro']},"
		"{'destination':'/sys/fs/cgroup','type':'cgroup','source':'cgroup','options':["
		"'nosuid','noexec','nodev','relatime','ro']}]");
	assert_ok(spec_set_mounts(&p, &(struct spec_mounts){ .privileged = true, .bind_sys = true },
				  &e),
		  &e);
	assert_string_equal(((struct oci_mount *)p.mounts.v)[4].source, "/sys");
	assert_true(strings_has(&((struct oci_mount *)p.mounts.v)[4].options, "rbind"));
	assert_true(strings_has(&((struct oci_mount *)p.mounts.v)[4].options, "rw"));
	assert_true(strings_has(&((struct oci_mount *)p.mounts.v)[5].options, "rw"));
}

static void assert_order(const struct spec_mounts *m, const char *expected)
{
	AUTO(spec_done) struct oci_spec s = { 0 };
	AUTO(buf_done) struct buf order = { 0 };
	struct hw_err e;

	assert_ok(spec_set_mounts(&s, m, &e), &e);
	for (size_t i = 0; i < s.mounts.n; i++) {
		const struct oci_mount *mount = (struct oci_mount *)s.mounts.v + i;

		buf_printf(&order, "%s%s%s", i ? " " : "",
			   str_equal(mount->type, "bind") ? "+" : "", mount->destination);
	}
	assert_string_equal(order.data, expected);
}

static void a_requested_mount_wins_and_they_are_sorted_by_depth(void **state)
{
	const struct spec_mount injected[] = {
		{ .container_path = "/etc/hosts", .host_path = DIR },
		{ .container_path = "/dev/shm", .host_path = DIR },
	};
	const struct spec_mount requested[] = {
		{ .container_path = "/a/b/c", .host_path = DIR },
		{ .container_path = "/etc//./hosts/", .host_path = DIR },
		{ .container_path = "/a/x/../b", .host_path = DIR },
		{ .container_path = "/z", .host_path = DIR },
		{ .container_path = "/a", .host_path = DIR },
		{ .container_path = "/sys/../proc", .host_path = DIR },
	};
	const struct spec_mount dev = { .container_path = "/dev", .host_path = DIR };

	(void)state;
	assert_order(&(struct spec_mounts){ .injected = injected,
					    .n_injected = 2,
					    .requested = requested,
					    .n_requested = ARRAY_SIZE(requested) },
		     "/dev /dev/pts /dev/mqueue /sys /sys/fs/cgroup +/dev/shm +/z +/a +/proc "
		     "+/etc/hosts +/a/b +/a/b/c");
	assert_order(&(struct spec_mounts){ .injected = injected,
					    .n_injected = 2,
					    .requested = &dev,
					    .n_requested = 1 },
		     "/proc /sys /sys/fs/cgroup +/etc/hosts +/dev/shm +/dev");
}

/* ---- a mount ------------------------------------------------------------------------------------- */

static void options_of_a_mount(void **state)
{
	(void)state;
	assert_bind(BIND(), "{\"destination\":\"/x\",\"type\":\"bind\",\"source\":\"/tmp/m/d\","
			    "\"options\":[\"rbind\",\"rw\",\"rprivate\"]}");
	assert_bind(BIND(.readonly = true, .options = &STRINGS("nodev", "noexec", "nodev")),
		    "{\"destination\":\"/x\",\"type\":\"bind\",\"source\":\"/tmp/m/d\","
		    "\"options\":[\"rbind\",\"ro\",\"nodev\",\"noexec\",\"rprivate\"]}");
	assert_bind(BIND(.readonly = true, .recursive_readonly = true),
		    "{\"destination\":\"/x\",\"type\":\"bind\",\"source\":\"/tmp/m/d\","
		    "\"options\":[\"rbind\",\"rro\",\"rprivate\"]}");
	assert_refused(BIND(.options = &STRINGS("suid")), -EINVAL,
		       "mount /x: unknown mount option suid");
}

static void rro_needs_ro_and_private(void **state)
{
	AUTO(spec_done) struct oci_spec s = { 0 };
	struct hw_err e;

	(void)state;
	assert_refused(BIND(.recursive_readonly = true), -EINVAL,
		       "mount /x: recursively read-only, but not read-only");
	assert_refused(
		BIND(.recursive_readonly = true, .readonly = true, .propagation = SPEC_FROM_HOST),
		-EINVAL, "mount /x: recursively read-only, but mounts propagate");
	assert_int_equal(spec_set_mounts(&s,
					 &(struct spec_mounts){
						 .requested = BIND(.recursive_readonly = true,
								   .readonly = true),
						 .n_requested = 1,
					 },
					 &e),
			 -EOPNOTSUPP);
	assert_string_equal(e.msg, "mount /x: recursively read-only mounts are not supported");
}

static void links_are_followed_and_directories_created(void **state)
{
	struct stat st;

	(void)state;
	assert_int_equal(symlink("d", DIR "/link"), 0);
	assert_bind(FROM(DIR "/link"),
		    "{\"destination\":\"/x\",\"type\":\"bind\",\"source\":\"/tmp/m/d\","
		    "\"options\":[\"rbind\",\"rw\",\"rprivate\"]}");
	assert_bind(FROM(DIR "/new/er"),
		    "{\"destination\":\"/x\",\"type\":\"bind\",\"source\":\"/tmp/m/new/er\","
		    "\"options\":[\"rbind\",\"rw\",\"rprivate\"]}");
	assert_int_equal(stat(DIR "/new/er", &st), 0);
	assert_int_equal(st.st_mode, S_IFDIR | 0755);
	assert_refused(FROM("d"), -EINVAL, "mounts[0].host_path: \"d\" is not an absolute path");
	assert_refused(FROM(NULL), -EINVAL, "mounts[0].host_path: \"\" is not an absolute path");
	assert_refused(&(struct spec_mount){ .container_path = "x", .host_path = DIR }, -EINVAL,
		       "mounts[0].container_path: \"x\" is not an absolute path");
	/* nothing is created for a mount that is refused */
	assert_refused(FROM(DIR "/no", .options = &STRINGS("x")), -EINVAL,
		       "mount /x: unknown mount option x");
	assert_int_equal(stat(DIR "/no", &st), -1);
}

static void a_host_path_that_cannot_be_used_is_refused_by_name(void **state)
{
	autofree char *name = str_printf("%s/%0300d", DIR, 0);
	AUTO(spec_done) struct oci_spec s = { 0 };
	struct hw_err e;

	(void)state;
	assert_int_equal(mknod(DIR "/file", S_IFREG | 0600, 0), 0);
	assert_int_equal(symlink("nowhere", DIR "/dangling"), 0);
	assert_int_equal(symlink("loop", DIR "/loop"), 0);
	assert_refused(FROM(DIR "/file/x"), -EINVAL,
		       "mounts[0].host_path: resolve " DIR "/file/x: Not a directory");
	assert_refused(FROM(DIR "/dangling"), -EINVAL,
		       "mounts[0].host_path: resolve " DIR "/dangling: No such file or directory");
	assert_refused(FROM(DIR "/dangling/x"), -EINVAL,
		       "mounts[0].host_path: create directory " DIR
		       "/dangling: No such file or directory");
	assert_refused(FROM(DIR "/loop"), -EINVAL,
		       "mounts[0].host_path: resolve " DIR
		       "/loop: Too many levels of symbolic links");
	assert_int_equal(set_one(&s, FROM(name), &e), -EINVAL);
	/* the request is good, but not on this host */
	assert_int_equal(mount(NULL, DIR, NULL, MS_REMOUNT | MS_BIND | MS_RDONLY, NULL), 0);
	assert_refused(FROM(DIR "/no"), -EPERM,
		       "mounts[0].host_path: create directory " DIR "/no: Read-only file system");
}

static void nothing_is_created_if_another_mount_is_refused(void **state)
{
	const struct spec_mount refused[] = {
		{ .container_path = "/x", .host_path = DIR "/d", .options = &STRINGS("x") },
		{ .container_path = "/x", .host_path = "relative" },
		{ .container_path = "/x", .host_path = DIR "/file/x" },
		{ .container_path = "/x", .host_path = DIR "/d", .propagation = SPEC_BOTH_WAYS },
	};
	struct hw_err e;

	(void)state;
	assert_int_equal(mknod(DIR "/file", S_IFREG | 0600, 0), 0);
	for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
		AUTO(spec_done) struct oci_spec s = { 0 };
		const struct spec_mount requested[] = {
			{ .container_path = "/a", .host_path = DIR "/no" },
			refused[i],
		};

		assert_true(spec_set_mounts(&s,
					    &(struct spec_mounts){ .requested = requested,
								   .n_requested = 2 },
					    &e) < 0);
		assert_true(str_starts(e.msg, "mount /x: ") ||
			    str_starts(e.msg, "mounts[1].host_path: "));
		assert_int_equal(access(DIR "/no", F_OK), -1);
	}
}

static void the_sources_propagation_is_checked(void **state)
{
	static const struct {
		unsigned long first, second; /* propagation of the source's mount */
		bool slave_ok, shared_ok;
	} v[] = {
		{ MS_PRIVATE, MS_PRIVATE, false, false },
		{ MS_SHARED, MS_SHARED, true, true },
		{ MS_SHARED, MS_SLAVE, true, false },
	};
	struct hw_err e;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(v); i++) {
		AUTO(spec_done) struct oci_spec slave = { 0 }, shared = { 0 };

		/* a slave has a master: a bind mount of the shared mount */
		assert_int_equal(mount(NULL, DIR, NULL, v[i].first, NULL), 0);
		assert_int_equal(mount(DIR, DIR "/d", NULL, MS_BIND, NULL), 0);
		assert_int_equal(mount(NULL, DIR "/d", NULL, v[i].second, NULL), 0);
		if (v[i].slave_ok) {
			assert_ok(set_one(&slave, BIND(.propagation = SPEC_FROM_HOST), &e), &e);
			assert_spec(&slave, "linux.rootfsPropagation", "'rslave'");
		} else {
			assert_refused(BIND(.propagation = SPEC_FROM_HOST), -EINVAL,
				       "mounts[0].host_path: " DIR
				       "/d is on a mount that is not shared or a slave");
		}
		if (v[i].shared_ok) {
			assert_ok(set_one(&shared, BIND(.propagation = SPEC_BOTH_WAYS), &e), &e);
			assert_spec(&shared, "linux.rootfsPropagation", "'rshared'");
		} else {
			assert_refused(BIND(.propagation = SPEC_BOTH_WAYS), -EINVAL,
				       "mounts[0].host_path: " DIR
				       "/d is on a mount that is not shared");
		}
		assert_int_equal(umount2(DIR "/d", MNT_DETACH), 0);
	}
}

static void both_ways_wins_over_from_the_host(void **state)
{
	const struct spec_mount requested[] = {
		{ .container_path = "/a", .host_path = DIR, .propagation = SPEC_FROM_HOST },
		{ .container_path = "/b", .host_path = DIR, .propagation = SPEC_BOTH_WAYS },
		{ .container_path = "/c", .host_path = DIR, .propagation = SPEC_FROM_HOST },
		{ .container_path = "/d", .host_path = DIR },
	};
	AUTO(spec_done) struct oci_spec s = { 0 };
	autofree char *text = NULL;
	struct hw_err e;

	(void)state;
	assert_int_equal(mount(NULL, DIR, NULL, MS_SHARED, NULL), 0);
	assert_ok(spec_set_mounts(&s,
				  &(struct spec_mounts){ .requested = requested, .n_requested = 4 },
				  &e),
		  &e);
	assert_spec(&s, "linux.rootfsPropagation", "'rshared'");
	text = encode_spec(&s);
	assert_non_null(strstr(text, "\"/a\",\"type\":\"bind\",\"source\":\"" DIR
				     "\",\"options\":[\"rbind\",\"rw\",\"rslave\"]"));
	assert_non_null(strstr(text, "\"/b\",\"type\":\"bind\",\"source\":\"" DIR
				     "\",\"options\":[\"rbind\",\"rw\",\"rshared\"]"));
}

static void mappings_depend_on_the_handler(void **state)
{
	struct oci_mapping one = { 0, 1000, 10 }, two = { 0, 2000, 10 };
	const struct hw_list own = { &one, 1 }, other = { &two, 1 };
	struct spec_mounts m = { .requested = BIND(.uid_mappings = &own, .gid_mappings = &own),
				 .n_requested = 1 };
	static const struct {
		enum oci_idmap idmap;
		bool other;
		const char *msg; /* NULL: accepted */
	} v[] = {
		{ OCI_IDMAP_NONE, false,
		  "mount /x: uidMappings: idmapped mounts are not supported" },
		{ OCI_IDMAP_SAME, false, NULL },
		{ OCI_IDMAP_SAME, true,
		  "mount /x: uidMappings: differ from those of the user namespace" },
		{ OCI_IDMAP_ANY, true, NULL },
	};
	struct hw_err e;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(v); i++) {
		AUTO(spec_done) struct oci_spec s = { 0 };

		*(struct oci_mapping *)spec_append(&s.uid_mappings, sizeof(one)) =
			v[i].other ? two : one;
		*(struct oci_mapping *)spec_append(&s.gid_mappings, sizeof(one)) =
			v[i].other ? two : one;
		m.idmap = v[i].idmap;
		if (v[i].msg) {
			assert_int_equal(spec_set_mounts(&s, &m, &e), -EPERM);
			assert_string_equal(e.msg, v[i].msg);
		} else {
			autofree char *text = NULL;

			assert_ok(spec_set_mounts(&s, &m, &e), &e);
			text = last_mount(&s);
			assert_non_null(strstr(text, "\"uidMappings\":[{\"containerID\":0,"
						     "\"hostID\":1000,\"size\":10}]"));
			assert_non_null(strstr(text, "\"gidMappings\":[{"));
		}
	}
	assert_refused(BIND(.uid_mappings = &other), -EINVAL,
		       "mount /x: only one of uidMappings and gidMappings is given");
}

#define MOUNT_TEST(sentence, f)                                                                    \
	{                                                                                          \
		sentence, f, mount_dir, umount_dir, NULL                                           \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		MOUNT_TEST("mounts: the defaults are OCI's; in a privileged container /sys is "
			   "writable",
			   the_default_mounts_are_those_of_oci),
		MOUNT_TEST("mounts: a requested mount replaces another of its path; the deepest is "
			   "last",
			   a_requested_mount_wins_and_they_are_sorted_by_depth),
		MOUNT_TEST("mounts: options of a mount are written", options_of_a_mount),
		MOUNT_TEST("mounts: a recursively read-only mount must be read-only and private",
			   rro_needs_ro_and_private),
		MOUNT_TEST("mounts: links are followed, and missing directories created",
			   links_are_followed_and_directories_created),
		MOUNT_TEST("mounts: a host path that cannot be used is refused by name",
			   a_host_path_that_cannot_be_used_is_refused_by_name),
		MOUNT_TEST("mounts: no directory is created if another mount is refused",
			   nothing_is_created_if_another_mount_is_refused),
		MOUNT_TEST("mounts: the source must be able to propagate mounts",
			   the_sources_propagation_is_checked),
		MOUNT_TEST("mounts: the root propagates as one of its mounts needs it",
			   both_ways_wins_over_from_the_host),
		MOUNT_TEST("mounts: an idmapped mount needs a handler that can make it",
			   mappings_depend_on_the_handler),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
