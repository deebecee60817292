/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci/spec/test-devices.c - device nodes of a container
 */
#include "oci/spec/devices.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "oci/spec/test.h"

#define DIR "/tmp/dev"
#define STANDARD                                                                                   \
	"{'allow':false,'type':'a','access':'rwm'},"                                               \
	"{'allow':true,'type':'c','major':1,'minor':3,'access':'rwm'},"                            \
	"{'allow':true,'type':'c','major':1,'minor':5,'access':'rwm'},"                            \
	"{'allow':true,'type':'c','major':1,'minor':7,'access':'rwm'},"                            \
	"{'allow':true,'type':'c','major':1,'minor':8,'access':'rwm'},"                            \
	"{'allow':true,'type':'c','major':1,'minor':9,'access':'rwm'},"                            \
	"{'allow':true,'type':'c','major':5,'minor':0,'access':'rwm'},"                            \
	"{'allow':true,'type':'c','major':5,'minor':2,'access':'rwm'},"                            \
	"{'allow':true,'type':'c','major':136,'access':'rwm'}"

/* Nodes below /tmp/dev: x, sub/y, and a link to x. */
static int make_nodes(void **state)
{
	(void)state;
	if (mkdir(DIR, 0755) < 0 || mount("none", DIR, "tmpfs", 0, NULL) < 0 ||
	    mkdir(DIR "/sub", 0755) < 0 || mkdir(DIR "/shm", 0755) < 0)
		return -1;
	umask(0);
	if (mknod(DIR "/x", S_IFCHR | 0640, makedev(10, 229)) < 0 ||
	    mknod(DIR "/sub/y", S_IFBLK | 0600, makedev(7, 0)) < 0 ||
	    mknod(DIR "/shm/z", S_IFCHR | 0600, makedev(1, 3)) < 0 ||
	    mknod(DIR "/file", S_IFREG | 0600, 0) < 0)
		return -1;
	umask(022);
	return symlink("x", DIR "/link") < 0 || chown(DIR "/x", 1, 2) < 0 ? -1 : 0;
}

static int remove_nodes(void **state)
{
	(void)state;
	return umount(DIR) < 0 || rmdir(DIR) < 0 ? -1 : 0;
}

static void set(struct oci_spec *s, const struct spec_devices *d)
{
	struct hw_err e;

	assert_ok(spec_set_devices(s, d, &e), &e);
}

static void by_default_only_standard_nodes_are_allowed(void **state)
{
	AUTO(spec_done) struct oci_spec s = { 0 };

	(void)state;
	set(&s, &(struct spec_devices){ 0 });
	assert_spec(&s, "linux.devices", NULL);
	assert_spec(&s, "linux.resources.devices", "[" STANDARD "]");
}

static void a_device_is_added_with_a_rule(void **state)
{
	const struct spec_device v[] = {
		{ DIR "/link", "/dev/kvm", "rw" },
		{ DIR "/sub/y", NULL, NULL },
	};
	AUTO(spec_done) struct oci_spec s = { 0 };

	(void)state;
	set(&s, &(struct spec_devices){ v, 2, false });
	assert_spec(&s, "linux.devices",
		    "[{'type':'c','path':'/dev/kvm','major':10,'minor':229,'fileMode':416,'uid':1,"
		    "'gid':2},{'type':'b','path':'" DIR
		    "/sub/y','major':7,'minor':0,'fileMode':384,'uid':0,'gid':0}]");
	assert_spec(&s, "linux.resources.devices",
		    "[" STANDARD ",{'allow':true,'type':'c','major':10,'minor':229,'access':'rw'},"
		    "{'allow':true,'type':'b','major':7,'minor':0,'access':'rwm'}]");
}

static void all_devices_of_a_directory_are_added(void **state)
{
	const struct spec_device dir = { DIR, "/dev/mine", "r" };
	AUTO(spec_done) struct oci_spec s = { 0 };

	(void)state;
	set(&s, &(struct spec_devices){ &dir, 1, false });
	assert_spec(&s, "linux.devices",
		    "[{'type':'b','path':'/dev/mine/sub/y','major':7,'minor':0,'fileMode':384,"
		    "'uid':0,'gid':0},{'type':'c','path':'/dev/mine/x','major':10,'minor':229,"
		    "'fileMode':416,'uid':1,'gid':2}]");
}

static void other_files_and_permissions_are_refused(void **state)
{
	static const struct {
		struct spec_device device;
		int code;
		const char *msg;
	} v[] = {
		{ { DIR "/file", NULL, NULL }, -EINVAL, "device " DIR "/file: not a device" },
		{ { DIR "/none", NULL, NULL },
		  -ENOENT,
		  "device " DIR "/none: stat " DIR "/none: No such file or directory" },
		{ { DIR "/x", "x", NULL }, -EINVAL, "device " DIR "/x: not an absolute path" },
		{ { "x", "/x", NULL }, -EINVAL, "device x: not an absolute path" },
		{ { NULL, "/x", NULL }, -EINVAL, "device : not an absolute path" },
		{ { DIR "/x", NULL, "rx" },
		  -EINVAL,
		  "device " DIR "/x: invalid permissions \"rx\"" },
		{ { DIR "/x", NULL, "rr" },
		  -EINVAL,
		  "device " DIR "/x: invalid permissions \"rr\"" },
	};
	struct hw_err e;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(v); i++) {
		AUTO(spec_done) struct oci_spec s = { 0 };
		struct spec_devices d = { &v[i].device, 1, false };

		assert_int_equal(spec_set_devices(&s, &d, &e), v[i].code);
		assert_string_equal(e.msg, v[i].msg);
	}
}

static void make_node(const char *path, unsigned major, unsigned minor)
{
	assert_int_equal(mknod(path, S_IFCHR | 0600, makedev(major, minor)), 0);
}

static void privileged_has_all_nodes(void **state)
{
	AUTO(spec_done) struct oci_spec s = { 0 };

	(void)state;
	assert_int_equal(mount("none", "/dev", "tmpfs", 0, NULL), 0);
	assert_int_equal(mkdir("/dev/pts", 0755) | mkdir("/dev/net", 0755), 0);
	make_node("/dev/null", 1, 3);
	make_node("/dev/kmsg", 1, 11);
	make_node("/dev/console", 5, 1);
	make_node("/dev/pts/0", 136, 0);
	make_node("/dev/net/tun", 10, 200);
	set(&s, &(struct spec_devices){ .privileged = true });
	assert_int_equal(umount("/dev"), 0);
	assert_spec(&s, "linux.devices",
		    "[{'type':'c','path':'/dev/kmsg','major':1,'minor':11,'fileMode':384,'uid':0,"
		    "'gid':0},{'type':'c','path':'/dev/net/tun','major':10,'minor':200,'fileMode':"
		    "384,'uid':0,'gid':0}]");
	assert_spec(&s, "linux.resources.devices", "[{'allow':true,'type':'a','access':'rwm'}]");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{ "devices: by default only the standard nodes are allowed",
		  by_default_only_standard_nodes_are_allowed },
		{ "devices: a device is added with its rule, through a link too",
		  a_device_is_added_with_a_rule },
		{ "devices: all devices of a directory are added",
		  all_devices_of_a_directory_are_added },
		{ "devices: other files and invalid permissions are refused",
		  other_files_and_permissions_are_refused },
		{ "devices: a privileged container has all nodes of the host",
		  privileged_has_all_nodes },
	};

	return cmocka_run_group_tests(tests, make_nodes, remove_nodes);
}
