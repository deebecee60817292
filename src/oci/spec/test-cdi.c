/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci/spec/test-cdi.c - devices of the Container Device Interface
 */
#include "oci/spec/cdi.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/os/file.h"
#include "base/os/remove-tree.h"
#include "oci/spec/test.h"

#define TOP  "/tmp/cdi"
#define DIRS TOP "/low:" TOP "/none:" TOP "/high"

static int make_directories(void **state)
{
	struct hw_err e;

	(void)state;
	return file_mkdirs(AT_FDCWD, TOP "/low", 0755, &e) < 0 ||
	       file_mkdirs(AT_FDCWD, TOP "/high", 0755, &e) < 0;
}

static int remove_directories(void **state)
{
	autoclose int dir = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct hw_err e;

	(void)state;
	return remove_tree(dir, "cdi", &e);
}

/* Single quotes in @text stand for double quotes. */
static void write_file(const char *name, const char *text)
{
	autofree char *path = str_printf(TOP "/%s", name), *copy = str_copy(text);
	struct hw_err e;

	for (char *c = copy; *c; c++)
		if (*c == '\'')
			*c = '"';
	assert_ok(file_replace(AT_FDCWD, path, copy, strlen(copy), 0644, 0, &e), &e);
}

/* A file with the device "one", which has these edits */
static void write_edits(const char *name, const char *edits)
{
	autofree char *text = str_printf("{'cdiVersion':'0.6.0','kind':'v.com/c','devices':"
					 "[{'name':'one','containerEdits':%s}]}",
					 edits);

	write_file(name, text);
}

static void use(struct oci_spec *s, const struct hw_strings *names)
{
	struct hw_err e;

	assert_ok(cdi_apply(DIRS, names, s, &e), &e);
}

static void assert_refused(const char *name, int code, const char *message)
{
	AUTO(spec_done) struct oci_spec s = { 0 };
	struct hw_err e;

	assert_int_equal(cdi_apply(DIRS, &STRINGS((char *)name), &s, &e), code);
	assert_string_equal(e.msg, message);
}

static void variables_nodes_and_mounts_are_added(void **state)
{
	AUTO(spec_done) struct oci_spec s = { 0 };

	(void)state;
	strings_add(&s.process.env, "A=old");
	strings_add(&s.process.env, "AB=stays");
	write_edits("low/a.json",
		    "{'env':['A=1','B=2'],'deviceNodes':[{'path':'/dev/x','hostPath':'/dev/zero',"
		    "'permissions':'r','uid':7},{'path':'/dev/y','type':'b','major':7,'minor':9,"
		    "'fileMode':384}],'mounts':[{'hostPath':'/a','containerPath':'/b','options':["
		    "'ro']},{'hostPath':'t','containerPath':'/t','type':'tmpfs'}]}");
	use(&s, &STRINGS("v.com/c=one"));
	assert_spec(&s, "process.env", "['A=1','AB=stays','B=2']");
	assert_spec(&s, "linux.devices",
		    "[{'type':'c','path':'/dev/x','major':1,'minor':5,'fileMode':438,'uid':7,"
		    "'gid':0},{'type':'b','path':'/dev/y','major':7,'minor':9,'fileMode':384,"
		    "'uid':0,'gid':0}]");
	assert_spec(&s, "linux.resources.devices",
		    "[{'allow':true,'type':'c','major':1,'minor':5,'access':'r'},"
		    "{'allow':true,'type':'b','major':7,'minor':9,'access':'rwm'}]");
	assert_spec(&s, "mounts",
		    "[{'destination':'/b','type':'bind','source':'/a','options':['ro','rbind']},"
		    "{'destination':'/t','type':'tmpfs','source':'t'}]");
}

static void only_requested_devices_are_applied(void **state)
{
	AUTO(spec_done) struct oci_spec s = { 0 };

	(void)state;
	write_file("low/a.yaml", "cdiVersion: '0.5.0'\nkind: v.com/c\n"
				 "containerEdits: {env: ['COMMON=1']}\n"
				 "devices:\n- {name: one, containerEdits: {env: ['ONE=1']}}\n"
				 "- {name: two, containerEdits: {env: ['TWO=1']}}\n"
				 "- {name: '3', containerEdits: {env: ['THREE=1']}}\n");
	write_file("low/b.yml", "{cdiVersion: '1', kind: w.com/c, containerEdits: {env: ['W=1']}, "
				"devices: [{name: one, containerEdits: {hooks: []}}]}");
	write_file("low/ignored.txt", "{");
	use(&s, &STRINGS("v.com/c=two", "v.com/c=3"));
	assert_spec(&s, "process.env", "['COMMON=1','TWO=1','THREE=1']");
}

static void a_later_directory_takes_precedence(void **state)
{
	AUTO(spec_done) struct oci_spec s = { 0 };

	(void)state;
	write_edits("low/a.json", "{'env':['FROM=low']}");
	write_edits("high/b.json", "{'env':['FROM=high']}");
	use(&s, &STRINGS("v.com/c=one"));
	assert_spec(&s, "process.env", "['FROM=high']");
	write_edits("high/c.json", "{'env':['FROM=high']}");
	assert_refused("v.com/c=one", -EINVAL,
		       "CDI_devices[0]: v.com/c=one: " TOP "/high/b.json and " TOP
		       "/high/c.json have the same device");
}

static void what_is_not_supported_is_refused_by_name(void **state)
{
	static const struct {
		const char *edits, *message;
	} v[] = {
		{ "{'hooks':[{'hookName':'prestart','path':'/x'}]}",
		  "containerEdits.hooks is not supported" },
		{ "{'intelRdt':{}}", "containerEdits.intelRdt is not supported" },
		{ "{'additionalGids':[1]}", "containerEdits.additionalGids is not supported" },
		{ "{'deviceNodes':[{'path':'/dev/null','future':1}]}",
		  "device /dev/null: deviceNodes.future is not supported" },
		{ "{'mounts':[{'hostPath':'/a','containerPath':'/b','future':1}]}",
		  "mounts.future is not supported" },
		{ "{'mounts':[{'hostPath':'a','containerPath':'/b'}]}",
		  "mount /b: not an absolute path" },
		{ "{'env':['A']}", "env: \"A\": expected NAME=VALUE" },
		{ "{'deviceNodes':[{'path':'x'}]}", "device x: not an absolute path" },
		{ "{'deviceNodes':[{'path':'/dev'}]}", "device /dev: /dev: not a device" },
		{ "{'deviceNodes':[{'path':'/dev/null','type':'p'}]}",
		  "device /dev/null: type \"p\" is not supported" },
		{ "{'deviceNodes':[{'path':'/dev/null','permissions':'rx'}]}",
		  "device /dev/null: invalid permissions \"rx\"" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(v); i++) {
		autofree char *message = str_printf(
			"CDI_devices[0]: v.com/c=one: " TOP "/low/a.json: %s", v[i].message);

		write_edits("low/a.json", v[i].edits);
		assert_refused("v.com/c=one", -EINVAL, message);
	}
}

static void names_are_checked(void **state)
{
	static const char *const names[] = { "",	   "one",      "v.com=one",   "v.com/=one",
					     "/c=one",	   "v.com/c=", "v.com/c/d=x", "v.com/c=a b",
					     "v.com/c.d=x" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		autofree char *message = str_printf(
			"CDI_devices[0]: \"%s\": expected VENDOR/CLASS=DEVICE", names[i]);

		assert_refused(names[i], -EINVAL, message);
	}
}

static void a_missing_device_is_reported_with_files_that_cannot_be_used(void **state)
{
	AUTO(spec_done) struct oci_spec s = { 0 };

	(void)state;
	assert_refused("v.com/c=one", -ENODATA,
		       "CDI_devices[0]: v.com/c=one: no such device on this node");
	write_file("low/a.json", "{'kind':'v.com/c'}");
	assert_refused("v.com/c=one", -ENODATA,
		       "CDI_devices[0]: v.com/c=one: no such device on this node; " TOP
		       "/low/a.json: cdiVersion: required key is missing");
	write_edits("low/b.json", "{'env':['A=1']}");
	use(&s, &STRINGS("v.com/c=one"));
	assert_spec(&s, "process.env", "['A=1']");
}

static void files_are_bounded(void **state)
{
	autofree char *large = mem_new((1 << 20) + 2);

	(void)state;
	memset(large, ' ', (1 << 20) + 1);
	write_file("low/a.json", large);
	assert_refused("v.com/c=one", -ENODATA,
		       "CDI_devices[0]: v.com/c=one: no such device on this node; read " TOP
		       "/low/a.json: larger than 1048576 bytes");
	for (int i = 0; i < 256; i++) {
		autofree char *name = str_printf("low/%d.json", i);

		write_file(name, "{}");
	}
	assert_refused("v.com/c=one", -EFBIG, "CDI_devices: " TOP "/low: more than 256 files");
}

#define CDI_TEST(sentence, f)                                                                      \
	{                                                                                          \
		sentence, f, make_directories, remove_directories, NULL                            \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CDI_TEST("cdi: variables, device nodes and mounts are added",
			 variables_nodes_and_mounts_are_added),
		CDI_TEST("cdi: only requested devices are applied, and the edits for all once",
			 only_requested_devices_are_applied),
		CDI_TEST("cdi: a device of a later directory takes precedence",
			 a_later_directory_takes_precedence),
		CDI_TEST("cdi: edits that are not supported or invalid are refused by name",
			 what_is_not_supported_is_refused_by_name),
		CDI_TEST("cdi: a malformed name is refused", names_are_checked),
		CDI_TEST("cdi: an error for a missing device names a file that cannot be used",
			 a_missing_device_is_reported_with_files_that_cannot_be_used),
		CDI_TEST("cdi: number and size of the files are limited", files_are_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
