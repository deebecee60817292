/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image/store/mount.c - a stack of layers as one tree, by overlayfs
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
#include "base/str.h"
#include "image/manifest.h"

#define MOUNT_PAGE     4096 /* what mount(2) copies of its options, with a NUL */
#define MOUNT_NAME_MAX 256  /* what fsconfig() takes as a value, with its NUL */

/* The layers that are seen, the highest first, as overlayfs wants them. */
struct seen {
	const char *paths[MANIFEST_LAYERS_MAX];
	size_t n;
};

/* overlayfs wants two folders at least, the upper one included. */
static int list_seen(const struct mount_stack *stack, struct seen *ret, struct hw_err *e)
{
	ret->n = 0;
	for (size_t i = stack->n; i-- > 0;) {
		if (ret->n == MANIFEST_LAYERS_MAX)
			return err_text(e, -E2BIG, "%zu layers are more than overlayfs takes: %d",
					stack->n, MANIFEST_LAYERS_MAX);
		ret->paths[ret->n++] = stack->layers[i].path;
		if (stack->layers[i].opaque)
			break;
	}
	if (ret->n == 0 || (ret->n == 1 && !stack->upper))
		ret->paths[ret->n++] = stack->empty;
	return 0;
}

/* ---- since Linux 6.5 ----------------------------------------------------------- */

/* The kernel says more about the mount that is being made: "e overlay: ...". */
static int config_failed(int fs, const char *key, const char *value, struct hw_err *e)
{
	int error = errno;
	char text[256];
	ssize_t n = read(fs, text, sizeof(text) - 1);

	if (n <= 2)
		return err_set(e, -error, "overlayfs: %s %.200s", key, value);
	text[n] = '\0';
	text[strcspn(text, "\n")] = '\0';
	return err_text(e, -error, "overlayfs: %s %.200s: %s", key, value, text + 2);
}

static int set(int fs, const char *key, const char *value, struct hw_err *e)
{
	if (strlen(value) >= MOUNT_NAME_MAX)
		return err_set(e, -ENAMETOOLONG, "overlayfs: %s %.64s...", key, value);
	if (fsconfig(fs, FSCONFIG_SET_STRING, key, value, 0) == 0)
		return 0;
	return config_failed(fs, key, value, e);
}

static int set_upper(int fs, const struct mount_stack *stack, struct hw_err *e)
{
	const char *const options[][2] = {
		{ "upperdir", stack->upper },
		{ "workdir", stack->work },
		{ "index", "off" }, /* else one upper folder could not be mounted over again */
		{ "metacopy", "off" },
	};
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(options); i++)
		r = set(fs, options[i][0], options[i][1], e);
	if (r == 0 && stack->is_volatile &&
	    fsconfig(fs, FSCONFIG_SET_FLAG, "volatile", NULL, 0) < 0)
		r = config_failed(fs, "volatile", "", e);
	return r;
}

static int attach(int fs, const struct mount_stack *stack, const char *target, struct hw_err *e)
{
	autoclose int tree = -1;

	if (fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return config_failed(fs, "for", target, e);
	tree = fsmount(fs, FSMOUNT_CLOEXEC, stack->upper ? 0 : MOUNT_ATTR_RDONLY);
	if (tree < 0)
		return err_set(e, -errno, "make the mount");
	if (move_mount(tree, "", AT_FDCWD, target, MOVE_MOUNT_F_EMPTY_PATH) < 0)
		return err_set(e, -errno, "move the mount to %s", target);
	return 0;
}

static int mount_new(const struct mount_stack *stack, const char *target, struct hw_err *e)
{
	autoclose int fs = -1;
	struct seen seen;
	int r = list_seen(stack, &seen, e);

	if (r < 0)
		return r;
	fs = fsopen("overlay", FSOPEN_CLOEXEC);
	if (fs < 0)
		return err_set(e, -errno, "overlayfs");
	r = set(fs, "source", "overlay", e);
	for (size_t i = 0; r == 0 && i < seen.n; i++)
		r = set(fs, "lowerdir+", seen.paths[i], e);
	if (r == 0 && stack->upper)
		r = set_upper(fs, stack, e);
	return r < 0 ? r : attach(fs, stack, target, e);
}

/* ---- before -------------------------------------------------------------------- */

/* A mount by numbers of descriptors. */
struct page {
	const struct mount_stack *stack;
	const char *target;
	int fds[MANIFEST_LAYERS_MAX + 2];
	size_t n;
	struct buf options;
	int error;
};

static void page_done(struct page *p)
{
	for (size_t i = 0; i < p->n; i++)
		mem_close_fd(&p->fds[i]);
	buf_done(&p->options);
}

AUTO_VALUE_DEFINE(page_done, struct page);

static int page_add(struct page *p, const char *before, const char *path, struct hw_err *e)
{
	int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return err_set(e, -errno, "open %s", path);
	p->fds[p->n++] = fd;
	buf_printf(&p->options, "%s%d", before, fd);
	return 0;
}

static int page_fill(struct page *p, struct hw_err *e)
{
	struct seen seen;
	int r = list_seen(p->stack, &seen, e);

	for (size_t i = 0; r == 0 && i < seen.n; i++)
		r = page_add(p, i > 0 ? ":" : "lowerdir=", seen.paths[i], e);
	if (r < 0 || !p->stack->upper)
		return r;
	r = page_add(p, ",upperdir=", p->stack->upper, e);
	if (r == 0)
		r = page_add(p, ",workdir=", p->stack->work, e);
	buf_puts(&p->options, ",index=off,metacopy=off");
	if (p->stack->is_volatile)
		buf_puts(&p->options, ",volatile");
	return r;
}

/* In a thread, which does not share its working directory. The target is absolute. */
static void *page_mount(void *arg)
{
	struct page *p = arg;

	if (unshare(CLONE_FS) < 0 || chdir("/proc/self/fd") < 0 ||
	    mount("overlay", p->target, "overlay", p->stack->upper ? 0 : MS_RDONLY,
		  p->options.data) < 0)
		p->error = errno;
	return NULL;
}

/**
 * mount_overlay_page() - mount a stack of layers, with all names in one page
 *
 * Return: 0; -E2BIG: they do not fit; or negative errno
 */
int mount_overlay_page(const struct mount_stack *stack, const char *target, struct hw_err *e)
{
	AUTO(page_done) struct page p = { .stack = stack, .target = target };
	pthread_t thread;
	int r = page_fill(&p, e);

	if (r < 0)
		return r;
	if (p.options.len >= MOUNT_PAGE)
		return err_text(e, -E2BIG, "%zu layers are more than fit into one mount", stack->n);
	r = -pthread_create(&thread, NULL, page_mount, &p);
	if (r < 0)
		return err_set(e, r, "start a thread");
	pthread_join(thread, NULL);
	return p.error ? err_set(e, -p.error, "mount overlayfs at %s", target) : 0;
}

/* ---- either way ---------------------------------------------------------------- */

/* No layers, and nothing to write to: the empty folder itself. */
static int mount_empty(const struct mount_stack *stack, const char *target, struct hw_err *e)
{
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_RDONLY };
	autoclose int tree = open_tree(AT_FDCWD, stack->empty, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);

	if (tree < 0 || mount_setattr(tree, "", AT_EMPTY_PATH, &attr, sizeof(attr)) < 0)
		return err_set(e, -errno, "mount %s", stack->empty);
	if (move_mount(tree, "", AT_FDCWD, target, MOVE_MOUNT_F_EMPTY_PATH) < 0)
		return err_set(e, -errno, "move the mount to %s", target);
	return 0;
}

/* In names for the upper folder it means something, in those of layers not in every kernel. */
static bool has_backslash(const struct mount_stack *stack)
{
	return strchr(str_or(stack->upper, ""), '\\') || strchr(str_or(stack->work, ""), '\\');
}

/**
 * mount_overlay() - mount a stack of layers
 * @target: an absolute path
 *
 * Return: 0; -E2BIG: too many layers; or negative errno
 */
int mount_overlay(const struct mount_stack *stack, const char *target, struct hw_err *e)
{
	struct hw_err older;
	int r;

	if (stack->n == 0 && !stack->upper)
		return mount_empty(stack, target, e);
	if (has_backslash(stack))
		return mount_overlay_page(stack, target, e);
	r = mount_new(stack, target, e);
	/* an older kernel does not know the option; and no value of this one may be long */
	if (r != -EINVAL && r != -ENAMETOOLONG)
		return r;
	if (mount_overlay_page(stack, target, &older) == 0)
		return 0;
	if (older.code != -EINVAL)
		*e = older;
	return e->code;
}

/* ---- an image ------------------------------------------------------------------ */

static char **layer_paths(struct store *s, const struct store_layer *layers, size_t n,
			  struct mount_layer *ret)
{
	char **paths = mem_new((n + 1) * sizeof(*paths));

	for (size_t i = 0; i < n; i++) {
		paths[i] = str_printf("%s/layers/%s/root", store_root(s),
				      layers[i].chain_id + strlen("sha256:"));
		ret[i] = (struct mount_layer){ paths[i], layers[i].opaque };
	}
	return paths;
}

/** mount_image() - mount an image of the store */
int mount_image(struct store *s, const struct mount_image *image, const char *target,
		struct hw_err *e)
{
	AUTO(hw_strings_free) struct hw_strings paths = { 0 };
	autofree struct store_layer *layers = NULL;
	autofree struct mount_layer *stack = NULL;
	autofree char *empty = str_printf("%s/empty", store_root(s));
	size_t n = 0;
	int r = store_image_layers(s, image->id, &layers, &n, e);

	if (r < 0)
		return err_ctx(e, "mount image %s", image->id);
	if (r == 0)
		return err_text(e, -ENOENT, "mount image %s: it is not in the store, or not whole",
				image->id);
	stack = mem_new((n + 1) * sizeof(*stack));
	paths = (struct hw_strings){ layer_paths(s, layers, n, stack), n };
	r = mount_overlay(&(struct mount_stack){ .layers = stack,
						 .n = n,
						 .empty = empty,
						 .upper = image->upper,
						 .work = image->work,
						 .is_volatile = image->is_volatile },
			  target, e);
	return r < 0 ? err_ctx(e, "mount image %s", image->id) : 0;
}
