/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image/store/mount.c - overlayfs mounts of the layers of an image
 */
#include "image/store/mount.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/os/mount.h"
#include "base/os/thread.h"
#include "base/str.h"
#include "image/manifest.h"

#define MOUNT_PAGE	4096 /* bytes of options that mount(2) copies, including the NUL */
#define MOUNT_VALUE_MAX 256  /* bytes of a value that fsconfig() accepts, including the NUL */

/* The layers that are not hidden, in the order that overlayfs expects: the highest first. */
struct visible {
	const char *paths[MANIFEST_LAYERS_MAX];
	size_t n;
};

/* Adds the empty directory if needed: overlayfs needs at least two directories, including upper. */
static int list_visible(const struct mount_stack *stack, struct visible *ret, struct hw_err *e)
{
	ret->n = 0;
	for (size_t i = stack->n; i-- > 0;) {
		if (ret->n == MANIFEST_LAYERS_MAX)
			return err_text(e, -E2BIG,
					"too many layers for overlayfs: got %zu, want at most %d",
					stack->n, MANIFEST_LAYERS_MAX);
		ret->paths[ret->n++] = stack->layers[i].path;
		if (stack->layers[i].opaque)
			break;
	}
	if (ret->n == 0 || (ret->n == 1 && !stack->upper))
		ret->paths[ret->n++] = stack->empty;
	return 0;
}

/* ---- fsopen(), since Linux 6.5 ------------------------------------------------- */

/* Reading from the descriptor gives the kernel's message: "e overlay: ...". */
static int error_from_fsconfig(int fs, const char *key, const char *value, struct hw_err *e)
{
	int error = errno;
	char text[256];
	ssize_t n;

	n = read(fs, text, sizeof(text) - 1);
	if (n <= 2)
		return err_set(e, -error, "overlayfs: %s %.200s", key, value);
	text[n] = '\0';
	text[strcspn(text, "\n")] = '\0';
	return err_text(e, -error, "overlayfs: %s %.200s: %s", key, value, text + 2);
}

static int set_option(int fs, const char *key, const char *value, struct hw_err *e)
{
	if (strlen(value) >= MOUNT_VALUE_MAX)
		return err_set(e, -ENAMETOOLONG, "overlayfs: %s %.64s...", key, value);
	if (fsconfig(fs, FSCONFIG_SET_STRING, key, value, 0) == 0)
		return 0;
	return error_from_fsconfig(fs, key, value, e);
}

static int set_upper(int fs, const struct mount_stack *stack, struct hw_err *e)
{
	const char *const options[][2] = {
		{ "upperdir", stack->upper },
		{ "workdir", stack->work },
		/* with "on", upper could not be mounted again over other layers */
		{ "index", "off" },
		{ "metacopy", "off" },
	};
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(options); i++)
		r = set_option(fs, options[i][0], options[i][1], e);
	if (r == 0 && stack->is_volatile &&
	    fsconfig(fs, FSCONFIG_SET_FLAG, "volatile", NULL, 0) < 0)
		r = error_from_fsconfig(fs, "volatile", "", e);
	return r;
}

/* Return: a descriptor of the mount, which has no place yet; or a negative errno */
static int create_mount(const struct mount_stack *stack, const struct visible *visible,
			struct hw_err *e)
{
	autoclose int fs = -1, tree = -1;
	int r;

	fs = fsopen("overlay", FSOPEN_CLOEXEC);
	if (fs < 0)
		return err_set(e, -errno, "fsopen overlayfs");
	r = set_option(fs, "source", "overlay", e);
	for (size_t i = 0; r == 0 && i < visible->n; i++)
		r = set_option(fs, "lowerdir+", visible->paths[i], e);
	if (r == 0 && stack->upper)
		r = set_upper(fs, stack, e);
	if (r < 0)
		return r;
	if (fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return error_from_fsconfig(fs, "mount", "", e);
	tree = fsmount(fs, FSMOUNT_CLOEXEC, stack->upper ? 0 : MOUNT_ATTR_RDONLY);
	if (tree < 0)
		return err_set(e, -errno, "fsmount overlayfs");
	return take_fd(tree);
}

static int attach(int tree, const char *target, struct hw_err *e)
{
	if (move_mount(tree, "", AT_FDCWD, target, MOVE_MOUNT_F_EMPTY_PATH) < 0)
		return err_set(e, -errno, "move the mount to %s", target);
	return 0;
}

static int mount_fsopen(const struct mount_stack *stack, const char *target, struct hw_err *e)
{
	struct visible visible;
	autoclose int tree = -1;
	int r;

	r = list_visible(stack, &visible, e);
	if (r == 0)
		r = tree = create_mount(stack, &visible, e);
	return r < 0 ? r : attach(tree, target, e);
}

/* ---- idmapped layers ------------------------------------------------------------ */

/* The mounts of the layers, one above the other at the target. */
struct idmapped {
	int fds[MANIFEST_LAYERS_MAX];
	struct hw_strings paths; /* of the descriptors */
};

static void idmapped_done(struct idmapped *m)
{
	for (size_t i = 0; i < m->paths.n; i++)
		mem_close_fd(&m->fds[i]);
	hw_strings_free(&m->paths);
}

AUTO_VALUE_DEFINE(idmapped_done, struct idmapped);

/* A private mount of a directory, with the IDs of the user namespace. Return: a descriptor */
static int open_idmapped(const char *path, int userns, struct hw_err *e)
{
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_IDMAP | MOUNT_ATTR_RDONLY,
				   .propagation = MS_PRIVATE,
				   .userns_fd = (uint64_t)userns };
	autoclose int tree = -1;

	tree = open_tree(AT_FDCWD, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	if (tree < 0 || mount_setattr(tree, "", AT_EMPTY_PATH, &attr, sizeof(attr)) < 0)
		return err_set(e, -errno, "idmapped mount of %s", path);
	return take_fd(tree);
}

/* overlayfs accepts only mounts that have a place in this mount namespace. */
static int add_idmapped(struct idmapped *m, const char *path, int userns, const char *target,
			struct hw_err *e)
{
	autofree char *name = NULL;
	autoclose int tree = -1;
	int r;

	tree = open_idmapped(path, userns, e);
	r = tree < 0 ? tree : attach(tree, target, e);
	if (r < 0)
		return r;
	name = str_printf("/proc/self/fd/%d", tree);
	m->fds[m->paths.n] = take_fd(tree);
	strings_add(&m->paths, name);
	return 0;
}

static int mount_idmapped(const struct mount_stack *stack, const char *target, struct hw_err *e)
{
	AUTO(idmapped_done) struct idmapped layers = { .paths = { 0 } };
	struct visible visible;
	struct hw_err ignored;
	autoclose int tree = -1;
	int r;

	r = list_visible(stack, &visible, e);
	for (size_t i = 0; r == 0 && i < visible.n; i++) {
		r = add_idmapped(&layers, visible.paths[i], stack->userns, target, e);
		if (r == 0)
			visible.paths[i] = layers.paths.v[i];
	}
	if (r == 0)
		r = tree = create_mount(stack, &visible, e);
	if (r < 0) {
		mount_detach(target, &ignored);
		return r;
	}
	r = mount_detach(target, e);
	return r < 0 ? r : attach(tree, target, e);
}

/* ---- mount(2), before Linux 6.5 ------------------------------------------------- */

struct legacy_mount {
	const struct mount_stack *stack;
	const char *target;
	int fds[MANIFEST_LAYERS_MAX + 2];
	size_t n;
	struct buf options;
	int error;
};

static void legacy_mount_done(struct legacy_mount *m)
{
	for (size_t i = 0; i < m->n; i++)
		mem_close_fd(&m->fds[i]);
	buf_done(&m->options);
}

AUTO_VALUE_DEFINE(legacy_mount_done, struct legacy_mount);

static int add_path(struct legacy_mount *m, const char *before, const char *path, struct hw_err *e)
{
	int fd;

	fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return err_set(e, -errno, "open %s", path);
	m->fds[m->n++] = fd;
	buf_printf(&m->options, "%s%d", before, fd);
	return 0;
}

/* Runs in its own thread, so that the working directory of the other threads does not change. */
static void *mount_thread(void *arg)
{
	struct legacy_mount *m = arg;

	if (unshare(CLONE_FS) < 0 || chdir("/proc/self/fd") < 0 ||
	    mount("overlay", m->target, "overlay", m->stack->upper ? 0 : MS_RDONLY,
		  m->options.data) < 0)
		m->error = errno;
	return NULL;
}

int mount_overlay_legacy(const struct mount_stack *stack, const char *target, struct hw_err *e)
{
	AUTO(legacy_mount_done) struct legacy_mount m = { .stack = stack, .target = target };
	struct visible visible;
	pthread_t thread;
	int r;

	r = list_visible(stack, &visible, e);
	for (size_t i = 0; r == 0 && i < visible.n; i++)
		r = add_path(&m, i > 0 ? ":" : "lowerdir=", visible.paths[i], e);
	if (r == 0 && stack->upper)
		r = add_path(&m, ",upperdir=", stack->upper, e);
	if (r == 0 && stack->upper)
		r = add_path(&m, ",workdir=", stack->work, e);
	if (r < 0)
		return r;
	if (stack->upper)
		buf_printf(&m.options, ",index=off,metacopy=off%s",
			   stack->is_volatile ? ",volatile" : "");
	if (m.options.len >= MOUNT_PAGE)
		return err_text(e, -E2BIG, "mount options of %zu layers are longer than %d bytes",
				stack->n, MOUNT_PAGE);
	r = thread_start(mount_thread, &m, &thread, e);
	if (r < 0)
		return err_ctx(e, "mount overlayfs at %s", target);
	pthread_join(thread, NULL);
	return m.error ? err_set(e, -m.error, "mount overlayfs at %s", target) : 0;
}

/* ---- choice of the method ------------------------------------------------------ */

/* For a stack without layers and without upper: mounts the empty directory itself. */
static int mount_empty(const struct mount_stack *stack, const char *target, struct hw_err *e)
{
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_RDONLY };
	autoclose int tree = -1;

	tree = open_tree(AT_FDCWD, stack->empty, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	if (tree < 0 || mount_setattr(tree, "", AT_EMPTY_PATH, &attr, sizeof(attr)) < 0)
		return err_set(e, -errno, "mount %s", stack->empty);
	return attach(tree, target, e);
}

int mount_overlay(const struct mount_stack *stack, const char *target, struct hw_err *e)
{
	struct hw_err legacy;
	int r;

	if (stack->n == 0 && !stack->upper)
		return mount_empty(stack, target, e);
	if (stack->userns)
		return mount_idmapped(stack, target, e);
	/* fsconfig() interprets a backslash in upper and work */
	if (strchr(str_or(stack->upper, ""), '\\') || strchr(str_or(stack->work, ""), '\\'))
		return mount_overlay_legacy(stack, target, e);
	r = mount_fsopen(stack, target, e);
	/* EINVAL: the kernel may not know "lowerdir+"; ENAMETOOLONG: a limit of fsconfig() only */
	if (r != -EINVAL && r != -ENAMETOOLONG)
		return r;
	if (mount_overlay_legacy(stack, target, &legacy) == 0)
		return 0;
	if (legacy.code != -EINVAL)
		*e = legacy;
	return e->code;
}

/* ---- images -------------------------------------------------------------------- */

int mount_image(struct store *s, const struct mount_image *image, const char *target,
		struct hw_err *e)
{
	AUTO(hw_strings_free) struct hw_strings paths = { 0 };
	autofree struct store_layer *layers = NULL;
	autofree struct mount_layer *stack = NULL;
	autofree char *empty = str_printf("%s/empty", store_root(s));
	size_t n = 0;
	int r;

	r = store_image_layers(s, image->id, &layers, &n, e);
	if (r < 0)
		return err_ctx(e, "mount image %s", image->id);
	if (r == 0)
		return err_text(e, -ENOENT, "mount image %s: not in the store, or incomplete",
				image->id);
	stack = mem_new((n + 1) * sizeof(*stack));
	for (size_t i = 0; i < n; i++) {
		autofree char *path = str_printf("%s/layers/%s/root", store_root(s),
						 layers[i].chain_id + strlen("sha256:"));

		strings_add(&paths, path);
		stack[i] = (struct mount_layer){ paths.v[i], layers[i].opaque };
	}
	r = mount_overlay(&(struct mount_stack){ .layers = stack,
						 .n = n,
						 .empty = empty,
						 .upper = image->upper,
						 .work = image->work,
						 .is_volatile = image->is_volatile,
						 .userns = image->userns },
			  target, e);
	return r < 0 ? err_ctx(e, "mount image %s", image->id) : 0;
}
