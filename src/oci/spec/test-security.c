/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci/spec/test-security.c - masked and read-only paths, seccomp, AppArmor, SELinux
 *
 * How:   this host may have neither AppArmor nor SELinux, so files below /tmp/sec take the place of
 *        those in /sys.
 */
#include "oci/spec/security.h"

#include <errno.h>
#include <fcntl.h>

#include "base/os/file.h"
#include "oci/spec/test.h"

#define ROOT "/tmp/sec"

static void write_file(const char *path, const char *text)
{
	autofree char *dir = str_ncopy(path, (size_t)(strrchr(path, '/') - path));
	struct hw_err e;

	assert_ok(file_mkdirs(AT_FDCWD, dir, 0755, &e), &e);
	assert_ok(file_replace(AT_FDCWD, path, text, strlen(text), 0644, 0, &e), &e);
}

static void assert_refused(const struct spec_security *security, int code, const char *msg)
{
	AUTO(spec_done) struct oci_spec s = { 0 };
	struct hw_err e;

	assert_int_equal(spec_set_security(&s, security, &e), code);
	assert_string_equal(e.msg, msg);
}

static void paths_and_the_root_are_protected(void **state)
{
	struct spec_security security = { .readonly_root = true,
					  .masked_paths = &STRINGS("/proc/kcore", "/sys/firmware"),
					  .readonly_paths = &STRINGS("/proc/sys"),
					  .seccomp_bpf = "\x01\x02\x03\x04\x05\x06\x07\x08",
					  .seccomp_len = 8 };
	AUTO(spec_done) struct oci_spec s = { 0 }, privileged = { 0 };
	struct hw_err e;

	(void)state;
	assert_ok(spec_set_security(&s, &security, &e), &e);
	assert_spec(&s, "root", "{'path':'','readonly':true}");
	assert_spec(&s, "linux",
		    "{'maskedPaths':['/proc/kcore','/sys/firmware'],'readonlyPaths':["
		    "'/proc/sys']}");
	assert_spec(&s, "annotations", "{'run.oci.seccomp_bpf_data':'AQIDBAUGBwg='}");
	security.privileged = true;
	assert_ok(spec_set_security(&privileged, &security, &e), &e);
	assert_spec(&privileged, "root", "{'path':'','readonly':true}");
	assert_spec(&privileged, "linux", NULL);
	assert_spec(&privileged, "annotations", NULL);
	assert_refused(&(struct spec_security){ .masked_paths = &STRINGS("proc") }, -EINVAL,
		       "path \"proc\": not an absolute path");
}

static void other_handlers_get_an_oci_profile(void **state)
{
	AUTO(spec_done) struct oci_spec s = { 0 };
	struct hw_err e;

	(void)state;
	assert_ok(spec_set_security(&s,
				    &(struct spec_security){
					    .seccomp = "{\"defaultAction\":\"SCMP_ACT_ALLOW\"}" },
				    &e),
		  &e);
	assert_spec(&s, "linux", "{'seccomp':{'defaultAction':'SCMP_ACT_ALLOW'}}");
}

static void an_apparmor_profile_must_be_loaded(void **state)
{
	static const char *const loaded[] = { "a", "b (c)", "/usr/bin/d" };
	struct hw_err e;

	(void)state;
	assert_refused(&(struct spec_security){ .apparmor = "x", .root = ROOT "/none" },
		       -EOPNOTSUPP, "AppArmor profile x: this host has no AppArmor");
	write_file(ROOT "/sys/module/apparmor/parameters/enabled", "N\n");
	assert_refused(&(struct spec_security){ .apparmor = "x", .root = ROOT }, -EOPNOTSUPP,
		       "AppArmor profile x: this host has no AppArmor");
	write_file(ROOT "/sys/module/apparmor/parameters/enabled", "Y\n");
	write_file(ROOT "/sys/kernel/security/apparmor/profiles",
		   "a (enforce)\nb (c) (complain)\n/usr/bin/d (unconfined)\n");
	for (size_t i = 0; i < ARRAY_SIZE(loaded); i++) {
		AUTO(spec_done) struct oci_spec s = { 0 };

		assert_ok(spec_set_security(
				  &s,
				  &(struct spec_security){ .apparmor = loaded[i], .root = ROOT },
				  &e),
			  &e);
		assert_string_equal(s.process.apparmor_profile, loaded[i]);
	}
	assert_refused(&(struct spec_security){ .apparmor = "b", .root = ROOT }, -ENOENT,
		       "AppArmor profile b is not loaded");
}

static void selinux_labels_are_checked(void **state)
{
	static const char *const bad[] = { "", "u", "u:r", "u:r:", "u::t", ":r:t", "u:r:t:" };
	static const char *const good[] = { "u:r:t", "system_u:system_r:container_t:s0:c1,c2" };
	struct hw_err e;

	(void)state;
	assert_refused(&(struct spec_security){ .selinux_label = good[0], .root = ROOT },
		       -EOPNOTSUPP, "SELinux label u:r:t: this host has no SELinux");
	write_file(ROOT "/sys/fs/selinux/enforce", "1");
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		autofree char *msg =
			str_printf("SELinux label \"%s\": expected USER:ROLE:TYPE:LEVEL", bad[i]);

		assert_refused(&(struct spec_security){ .mount_label = bad[i], .root = ROOT },
			       -EINVAL, msg);
	}
	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		AUTO(spec_done) struct oci_spec s = { 0 };

		assert_ok(spec_set_security(&s,
					    &(struct spec_security){ .selinux_label = good[i],
								     .mount_label = good[i],
								     .root = ROOT },
					    &e),
			  &e);
		assert_string_equal(s.process.selinux_label, good[i]);
		assert_string_equal(s.mount_label, good[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{ "security: paths are protected and a filter is set, unless privileged",
		  paths_and_the_root_are_protected },
		{ "security: a handler without compiled filters gets an OCI profile",
		  other_handlers_get_an_oci_profile },
		{ "security: an AppArmor profile must be loaded",
		  an_apparmor_profile_must_be_loaded },
		{ "security: SELinux labels are checked", selinux_labels_are_checked },
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
