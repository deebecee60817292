/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image/store/test-mount.c - overlayfs mounts, with fsopen() and with mount(2)
 */
#include "image/store/mount.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
/* cmocka.h needs the headers above */
#include <cmocka.h>

#include <stdlib.h>
#include <sys/stat.h>
#include <sys/utsname.h>

#include "base/os/userns.h"
#include "image/manifest.h"
#include "image/store/test-store.h"

#define NAME "docker.io/library/busybox"

typedef int mount_function(const struct mount_stack *stack, const char *target, struct hw_err *e);
static mount_function *const methods[] = { mount_overlay, mount_overlay_legacy };

/* Directories for layers, upper, work, empty and merged, all in one tmpfs. */
struct scene {
	char *top, *merged, *upper, *work, *empty;
	struct mount_layer *layers;
	size_t n;
};

static char *make_directory(const char *top, const char *name)
{
	char *path = str_printf("%s/%s", top, name);

	OK(file_mkdirs(AT_FDCWD, path, 0755, &e));
	return path;
}

/* Layer i has two files, "all" and the number i; both contain the number i. */
static void fill_layer(struct scene *s, size_t i)
{
	autofree char *name = str_printf("layer%zu", i), *number = str_printf("%zu", i);
	autofree char *path = make_directory(s->top, name), *all = str_printf("%s/all", path);
	autofree char *own = str_printf("%s/%zu", path, i);

	OK(file_replace(AT_FDCWD, all, number, strlen(number), 0644, 0, &e));
	OK(file_replace(AT_FDCWD, own, number, strlen(number), 0644, 0, &e));
	s->layers[i].path = take_ptr(path);
}

static void scene_init(struct scene *s, struct test_store *p, const char *name, size_t n)
{
	*s = (struct scene){ .n = n };
	s->top = make_directory(p->path, name);
	s->merged = make_directory(s->top, "merged");
	s->upper = make_directory(s->top, "upper");
	s->work = make_directory(s->top, "work");
	s->empty = make_directory(s->top, "empty");
	s->layers = mem_new((n + 1) * sizeof(*s->layers));
	for (size_t i = 0; i < n; i++)
		fill_layer(s, i);
}

static void scene_done(struct scene *s)
{
	umount2(s->merged, MNT_DETACH);
	for (size_t i = 0; i < s->n; i++)
		free((char *)(uintptr_t)s->layers[i].path);
	free(s->layers);
	free(s->merged);
	free(s->upper);
	free(s->work);
	free(s->empty);
	free(s->top);
}

AUTO_VALUE_DEFINE(scene_done, struct scene);

static struct mount_stack make_stack(const struct scene *s, bool writable)
{
	return (struct mount_stack){ .layers = s->layers,
				     .n = s->n,
				     .empty = s->empty,
				     .upper = writable ? s->upper : NULL,
				     .work = writable ? s->work : NULL };
}

static int file_contains(const struct scene *s, const char *name, const char *text)
{
	autofree char *path = str_printf("%s/%s", s->merged, name);
	AUTO(buf_done) struct buf b = { 0 };
	struct hw_err e;

	return file_read(AT_FDCWD, path, 100, &b, &e) == 0 && str_equal(b.data, text);
}

static int write_file(const struct scene *s, const char *name)
{
	autofree char *path = str_printf("%s/%s", s->merged, name);
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	if (fd < 0)
		return -errno;
	close(fd);
	return 0;
}

static int test_store_on_tmpfs(void **state)
{
	struct test_store *p = mem_new(sizeof(*p));

	*state = p;
	snprintf(p->path, sizeof(p->path), "%.40s/mount.XXXXXX", str_or(getenv("TMPDIR"), "/tmp"));
	/* overlayfs does not accept upper directories on an overlayfs */
	return mkdtemp(p->path) && mount("none", p->path, "tmpfs", 0, "") == 0 ? 0 : -1;
}

static void highest_layer_wins(void **state)
{
	for (size_t method = 0; method < ARRAY_SIZE(methods); method++) {
		autofree char *name = str_printf("method%zu", method);
		AUTO(scene_done) struct scene s;
		struct mount_stack stack;

		scene_init(&s, *state, name, 3);
		stack = make_stack(&s, true);
		OK(methods[method](&stack, s.merged, &e));
		assert_true(file_contains(&s, "all", "2"));
		assert_true(file_contains(&s, "0", "0"));
		assert_true(file_contains(&s, "1", "1"));
		assert_int_equal(write_file(&s, "new"), 0);
		assert_int_equal(umount2(s.merged, 0), 0);
		stack = make_stack(&s, false);
		OK(methods[method](&stack, s.merged, &e));
		assert_int_equal(write_file(&s, "another"), -EROFS);
		assert_false(file_contains(&s, "new", ""));
	}
}

static void opaque_layer_hides(void **state)
{
	for (size_t method = 0; method < ARRAY_SIZE(methods); method++) {
		autofree char *name = str_printf("method%zu", method);
		AUTO(scene_done) struct scene s;
		struct mount_stack stack;

		scene_init(&s, *state, name, 3);
		s.layers[1].opaque = true;
		stack = make_stack(&s, true);
		OK(methods[method](&stack, s.merged, &e));
		assert_true(file_contains(&s, "2", "2"));
		assert_true(file_contains(&s, "1", "1"));
		assert_false(file_contains(&s, "0", "0"));
	}
}

static void few_layers(void **state)
{
	for (size_t i = 0; i < 8; i++) {
		/* neither layers nor upper: mount_overlay_legacy() does not support this */
		bool nothing = i == 4;
		autofree char *name = str_printf("few%zu", i);
		AUTO(scene_done) struct scene s;
		struct mount_stack stack;

		scene_init(&s, *state, name, i / 2 % 2);
		stack = make_stack(&s, i % 2);
		OK(methods[nothing ? 0 : i / 4](&stack, s.merged, &e));
		assert_int_equal(file_contains(&s, "all", "0"), i / 2 % 2);
		assert_int_equal(write_file(&s, "new"), i % 2 ? 0 : -EROFS);
	}
}

static void difficult_names(void **state)
{
	static const char *const names[] = { "a:b", "a,b=c", "a\\b", "a\\:b", " " };
	char longest[200];

	memset(longest, 'x', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	for (size_t i = 0; i < 2 * (ARRAY_SIZE(names) + 1); i++) {
		size_t at = i / 2;
		autofree char *name = at < ARRAY_SIZE(names)
					      ? str_printf("%zu%s", i, names[at])
					      : str_printf("%zu%s/%s", i, longest, longest);
		AUTO(scene_done) struct scene s;
		struct mount_stack stack;

		scene_init(&s, *state, name, 2);
		stack = make_stack(&s, true);
		OK(methods[i % 2](&stack, s.merged, &e));
		assert_true(file_contains(&s, "all", "1"));
		assert_true(file_contains(&s, "0", "0"));
	}
}

static uid_t owner_of(const struct scene *s, const char *name)
{
	autofree char *path = str_printf("%s/%s", s->merged, name);
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	return st.st_uid;
}

static void require_linux_6_5(void)
{
	unsigned long major, minor;
	struct utsname kernel;
	char *end;

	assert_int_equal(uname(&kernel), 0);
	major = strtoul(kernel.release, &end, 10);
	assert_int_equal(*end, '.');
	minor = strtoul(end + 1, NULL, 10);
	if (major > 6 || (major == 6 && minor >= 5))
		return;
	print_message("idmapped layers need Linux 6.5\n");
	skip();
}

static void layers_are_idmapped(void **state)
{
	AUTO(userns_done) struct userns ns = USERNS_NONE;
	AUTO(scene_done) struct scene s;
	autofree char *own = NULL;
	struct mount_stack stack;
	struct hw_err error;

	require_linux_6_5();
	OK(userns_create(100000, 1000, 0, &ns, &e));
	scene_init(&s, *state, "idmap", 3);
	own = str_printf("%s/1", s.layers[1].path);
	assert_int_equal(chown(own, 7, 7), 0);
	assert_int_equal(chown(s.upper, 100000, 100000), 0);
	for (size_t i = 0; i < 2; i++) {
		stack = make_stack(&s, i == 0);
		stack.userns = ns.user;
		OK(mount_overlay(&stack, s.merged, &e));
		assert_int_equal(owner_of(&s, "all"), 100000);
		assert_int_equal(owner_of(&s, "1"), 100007);
		assert_true(file_contains(&s, "all", "2"));
		assert_int_equal(umount2(s.merged, 0), 0);
		/* nothing else is mounted there */
		assert_int_equal(umount2(s.merged, 0), -1);
	}
	stack.layers = (struct mount_layer[]){ { "/proc", false } };
	stack.n = 1;
	assert_true(mount_overlay(&stack, s.merged, &error) < 0);
	assert_non_null(strstr(error.msg, "idmapped mount of /proc"));
	assert_int_equal(umount2(s.merged, 0), -1);
}

static void working_directory_stays(void **state)
{
	AUTO(scene_done) struct scene s;
	autofree char *before = getcwd(NULL, 0), *after = NULL;
	struct mount_stack stack;

	scene_init(&s, *state, "cwd", 2);
	stack = make_stack(&s, true);
	OK(mount_overlay_legacy(&stack, s.merged, &e));
	after = getcwd(NULL, 0);
	assert_string_equal(before, after);
}

static void many_layers(void **state)
{
	AUTO(scene_done) struct scene s;
	struct mount_stack stack;
	struct hw_err why = { 0 };

	scene_init(&s, *state, "many", MANIFEST_LAYERS_MAX + 1);
	for (size_t method = 0; method < ARRAY_SIZE(methods); method++) {
		stack = make_stack(&s, true);
		assert_int_equal(methods[method](&stack, s.merged, &why), -E2BIG);
		assert_string_equal(why.msg,
				    "too many layers for overlayfs: got 501, want at most 500");
		stack.n = MANIFEST_LAYERS_MAX;
		OK(methods[method](&stack, s.merged, &e));
		assert_true(file_contains(&s, "all", "499"));
		assert_true(file_contains(&s, "0", "0"));
		assert_int_equal(umount2(s.merged, 0), 0);
	}
}

static void errors_name_the_directory(void **state)
{
	AUTO(scene_done) struct scene s;
	autofree char *missing = NULL;
	struct mount_stack stack;
	struct hw_err e = { 0 };

	scene_init(&s, *state, "wrong", 2);
	stack = make_stack(&s, true);
	missing = str_printf("%s/nothing", s.top);
	assert_int_equal(mount_overlay(&stack, missing, &e), -ENOENT);
	assert_non_null(strstr(e.msg, missing));
	stack.upper = missing;
	assert_int_equal(mount_overlay(&stack, s.merged, &e), -ENOENT);
	assert_non_null(strstr(e.msg, missing));
	stack.upper = "/proc"; /* is not writable */
	assert_int_equal(mount_overlay(&stack, s.merged, &e), -EINVAL);
	assert_non_null(strstr(e.msg, "overlay"));
}

static void image_is_mounted(void **state)
{
	struct test_store *p = *state;
	AUTO(scene_done) struct scene s;
	struct hw_err why = { 0 };
	struct mount_image image;
	char id[DIGEST_TEXT];

	test_store_open(p);
	scene_init(&s, p, "pod", 0);
	add_image(p, "", LIST("one", "two"), LIST(NAME ":1"), id);
	image = (struct mount_image){ .id = id, .upper = s.upper, .work = s.work };
	OK(mount_image(p->store, &image, s.merged, &e));
	assert_true(file_contains(&s, "f", "two"));
	assert_int_equal(umount2(s.merged, 0), 0);
	image = (struct mount_image){ .id = "sha256:none" };
	assert_int_equal(mount_image(p->store, &image, s.merged, &why), -ENOENT);
	assert_string_equal(why.msg, "mount image sha256:none: not in the store, or incomplete");
}

#define TEST(name, f)                                                                              \
	{                                                                                          \
		name, f, test_store_on_tmpfs, test_store_delete                                    \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST("mount: the highest layer takes precedence, and only the upper directory is "
		     "written to",
		     highest_layer_wins),
		TEST("mount: an opaque layer hides all layers below it", opaque_layer_hides),
		TEST("mount: zero layers or one layer can be mounted, with and without an upper "
		     "directory",
		     few_layers),
		TEST("mount: directories may have any name", difficult_names),
		TEST("mount: files of idmapped layers belong to users of the namespace, and no "
		     "mount of a layer is left",
		     layers_are_idmapped),
		TEST("mount: mounting does not change the working directory",
		     working_directory_stays),
		TEST("mount: 500 layers are mounted, 501 are rejected", many_layers),
		TEST("mount: an error names the directory", errors_name_the_directory),
		TEST("mount: an image of the store is mounted", image_is_mounted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
