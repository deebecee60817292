/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pod/container-image.c - the root file system of a container
 *
 * What:  an overlayfs mount: the layers of the image, and above them a directory for what the container
 *        writes. The container holds the layers, so they stay if the image is removed.
 * Rules: the upper directory is mounted "volatile": the kernel does not sync it, and it is never used
 *        again, because after a power cut it may be damaged.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/os/file.h"
#include "base/os/mount.h"
#include "base/os/remove-tree.h"
#include "base/str.h"
#include "image/store/mount.h"
#include "pod/container.h"

/* ---- image and layers ------------------------------------------------------------------ */

static void set_image(struct container *c, const struct store_image *image)
{
	c->image_id = str_copy(image->id);
	c->image_ref = str_copy(image->digests.n ? image->digests.v[0] : image->id);
}

/* Return: 1 if all layers exist; 0 if one of them does not */
static int hold_layers(struct container *c, struct hw_err *e)
{
	bool all = true;
	int r = 1;

	c->hold = store_hold_new(c->pods->options.store);
	for (size_t i = 0; r >= 0 && i < c->layers.n; i++) {
		r = store_hold_layer(c->hold, c->layers.v[i], e);
		all &= r == 1;
	}
	return r < 0 ? r : all;
}

void container_release_layers(struct container *c)
{
	store_hold_free(take_ptr(c->hold));
}

int container_hold_layers(struct container *c, struct hw_err *e)
{
	int r;

	r = hold_layers(c, e);
	return r < 0 ? err_ctx(e, "container %s", c->o.id) : 0;
}

int container_hold_all_layers(struct container *c, struct hw_err *e)
{
	int r;

	c->hold = store_hold_new(c->pods->options.store);
	r = store_hold_all(c->hold, e);
	return r < 0 ? err_ctx(e, "container %s", c->o.id) : 0;
}

int container_check_layers(const struct container *c, struct hw_err *e)
{
	for (size_t i = 0; i < c->layers.n; i++)
		if (!digest_is_sha256(c->layers.v[i]))
			return err_text(e, -EBADMSG, "layers: invalid chain ID \"%.80s\"",
					c->layers.v[i]);
	return 0;
}

static int list_layers(struct container *c, struct hw_err *e)
{
	autofree struct store_layer *layers = NULL;
	size_t n;
	int r;

	r = store_image_layers(c->pods->options.store, c->image_id, &layers, &n, e);
	for (size_t i = 0; r == 1 && i < n; i++)
		strings_add(&c->layers, layers[i].chain_id);
	return r;
}

static int no_image(const struct container *c, struct hw_err *e)
{
	return err_text(e, -ENODATA, "config.image: no image \"%.200s\" on this node",
			c->spec->image);
}

int container_find_image(struct container *c, struct image_config **ret_config, struct hw_err *e)
{
	struct store *store = c->pods->options.store;
	AUTO(store_snapshot_put) const struct store_snapshot *snap = store_snapshot_get(store);
	AUTO(buf_done) struct buf config = { 0 };
	const struct store_image *image;
	int r;

	r = store_snapshot_find(snap, c->spec->image, &image, e);
	if (r <= 0)
		return r < 0 ? r : no_image(c, e);
	set_image(c, image);
	r = list_layers(c, e);
	if (r == 1)
		r = hold_layers(c, e);
	/* read after the layers are held: from here on they stay, even if the image is removed */
	if (r == 1)
		r = store_image_read(store, c->image_id, NULL, &config, e);
	if (r <= 0)
		return r < 0 ? r : no_image(c, e);
	return image_config_parse(config.data, config.len, ret_config, e);
}

/* ---- mount ------------------------------------------------------------------------------ */

int container_mount(struct container *c, struct hw_err *e)
{
	autofree char *dir = str_printf("%s/containers/%s", c->pods->root, c->o.id);
	autofree char *upper = str_printf("%s/upper", dir), *work = str_printf("%s/work", dir);
	autofree char *target = container_rootfs(c->pods, c->o.id);
	struct mount_image image = {
		.id = c->image_id, .upper = upper, .work = work, .is_volatile = true
	};
	const char *const dirs[] = { dir, upper, work, target };

	for (size_t i = 0; i < ARRAY_SIZE(dirs); i++)
		if (mkdir(dirs[i], i == 1 ? 0755 : 0700) < 0)
			return err_set(e, -errno, "create %s", dirs[i]);
	return mount_image(c->pods->options.store, &image, target, e);
}

int container_unmount(struct pods *p, const char *id, struct hw_err *e)
{
	autofree char *target = container_rootfs(p, id);
	autofree char *path = str_printf("%s/containers", p->root);
	autoclose int dir = -1;
	int r;

	r = mount_detach(target, e);
	if (r < 0)
		return r;
	dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return err_set(e, -errno, "open %s", path);
	return remove_tree(dir, id, e);
}
