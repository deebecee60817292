/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pod/container-image.c - the images of a container: its root file system, and those of its mounts
 *
 * What:  an overlayfs mount: the layers of the image, and above them a directory for what the container
 *        writes. The images of its mounts are mounted below its bundle without such a directory, so no process
 *        can change them. The container holds all layers, so they stay if an image is removed.
 * Rules: the upper directory is mounted "volatile": the kernel does not sync it, and it is never used
 *        again, because after a power cut it may be damaged.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/os/file.h"
#include "base/os/mount.h"
#include "base/os/remove-tree.h"
#include "base/str.h"
#include "image/store/mount.h"
#include "pod/container.h"

/* Kubelet looks for it at the start of the message. */
#define IMAGE_MOUNT_FAILED "ImageVolumeMountFailed"

/* ---- images and layers ----------------------------------------------------------------- */

/* Holds the layers from number @first on. Return: 1 if all of them exist; 0 if one of them does not */
static int hold_layers(struct container *c, size_t first, struct hw_err *e)
{
	bool all = true;
	int r = 1;

	if (!c->hold)
		c->hold = store_hold_new(c->pods->options.store);
	for (size_t i = first; r >= 0 && i < c->layers.n; i++) {
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

	r = hold_layers(c, 0, e);
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

/* Images may share layers. */
static int list_layers(struct container *c, const char *image_id, struct hw_err *e)
{
	autofree struct store_layer *layers = NULL;
	size_t n;
	int r;

	r = store_image_layers(c->pods->options.store, image_id, &layers, &n, e);
	for (size_t i = 0; r == 1 && i < n; i++)
		if (!strings_has(&c->layers, layers[i].chain_id))
			strings_add(&c->layers, layers[i].chain_id);
	return r;
}

/* Finds an image and holds its layers. *ret_id, *ret_ref: freed by the caller, also on failure */
static int use_image(struct container *c, const char *name, char **ret_id, char **ret_ref,
		     struct hw_err *e)
{
	AUTO(store_snapshot_put)
	const struct store_snapshot *snap = store_snapshot_get(c->pods->options.store);
	const struct store_image *image;
	size_t first = c->layers.n;
	int r;

	r = store_snapshot_find(snap, name, &image, e);
	if (r == 1) {
		*ret_id = str_copy(image->id);
		*ret_ref = str_copy(image->digests.n ? image->digests.v[0] : image->id);
		r = list_layers(c, image->id, e);
	}
	if (r == 1)
		r = hold_layers(c, first, e);
	return r == 0 ? err_text(e, -ENODATA, "no image \"%.200s\" on this node", name) : r;
}

static int use_mounted_images(struct container *c, struct hw_err *e)
{
	const struct container_mount *mounts = c->spec->mounts.v;

	for (size_t i = 0; i < c->spec->mounts.n; i++) {
		autofree char *id = NULL, *ref = NULL;

		if (str_empty(mounts[i].image))
			continue;
		if (use_image(c, mounts[i].image, &id, &ref, e) < 0)
			return err_ctx(e, IMAGE_MOUNT_FAILED ": mounts[%zu].image", i);
		strings_add(&c->mount_ids, id);
		strings_add(&c->mount_refs, ref);
	}
	return 0;
}

int container_find_image(struct container *c, struct image_config **ret_config, struct hw_err *e)
{
	AUTO(buf_done) struct buf config = { 0 };
	int r;

	r = use_image(c, c->spec->image, &c->image_id, &c->image_ref, e);
	/* read after the layers are held: from here on they stay, even if the image is removed */
	if (r == 1)
		r = store_image_read(c->pods->options.store, c->image_id, NULL, &config, e);
	if (r == 0)
		r = err_text(e, -ENODATA, "no image \"%.200s\" on this node", c->spec->image);
	if (r < 0)
		return err_ctx(e, "config.image");
	r = use_mounted_images(c, e);
	return r < 0 ? r : image_config_parse(config.data, config.len, ret_config, e);
}

/* ---- mount ------------------------------------------------------------------------------ */

/* Where the images of mounts are mounted: a directory for each. */
static char *images_dir(const struct pods *p, const char *id)
{
	return str_printf("%s/containers/%s/images", p->state, id);
}

/* What the container writes, and its bundle, which crun enters with the rights of the container's root. */
static int give_to_root(const struct container *c, const char *upper, const char *work,
			struct hw_err *e)
{
	autofree char *bundle = container_dir(c->pods, c->o.id);
	const struct oci_mapping *m;

	m = pod_user_mapping(&c->pod->spec->namespaces);
	if (!m)
		return 0;
	if (chown(upper, m->host_id, m->host_id) < 0 || chown(work, m->host_id, m->host_id) < 0)
		return err_set(e, -errno, "change the owner of %s", upper);
	if (chown(bundle, 0, m->host_id) < 0 || chmod(bundle, 0710) < 0)
		return err_set(e, -errno, "change the group of %s", bundle);
	return 0;
}

/* Return: 0 with the user namespace of the container, or with 0 if it has none */
static int open_userns(const struct container *c, int *ret_fd, struct hw_err *e)
{
	autofree char *path = pod_path(c->pods, c->pod->o.id, "user");
	int fd;

	if (!pod_user_mapping(&c->pod->spec->namespaces))
		return 0;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return err_set(e, -errno, "open %s", path);
	*ret_fd = fd;
	return 0;
}

static int mount_root(struct container *c, int userns, struct hw_err *e)
{
	autofree char *dir = str_printf("%s/containers/%s", c->pods->root, c->o.id);
	autofree char *upper = str_printf("%s/upper", dir), *work = str_printf("%s/work", dir);
	autofree char *target = container_rootfs(c->pods, c->o.id);
	struct mount_image image = {
		.id = c->image_id,
		.upper = upper,
		.work = work,
		.is_volatile = true,
		.userns = userns,
	};
	const char *const dirs[] = { dir, upper, work, target };
	int r;

	for (size_t i = 0; i < ARRAY_SIZE(dirs); i++)
		if (mkdir(dirs[i], i == 1 ? 0755 : 0700) < 0)
			return err_set(e, -errno, "create %s", dirs[i]);
	r = give_to_root(c, upper, work, e);
	return r < 0 ? r : mount_image(c->pods->options.store, &image, target, e);
}

/* Return: 0 with the path of @sub_path below @root, a mount that does not change */
static int find_source(const char *root, const char *sub_path, char **ret_path, struct hw_err *e)
{
	char path[PATH_MAX], link[32];
	autoclose int dir = -1, fd = -1;
	ssize_t n;

	dir = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return err_set(e, -errno, "open %s", root);
	fd = file_open_in_root(dir, sub_path, O_PATH);
	if (fd == -ENOENT || fd == -ENOTDIR || fd == -ELOOP)
		return err_text(e, -EINVAL, "image_sub_path: the image has no \"%.200s\"",
				sub_path);
	if (fd < 0)
		return err_set(e, fd, "image_sub_path: open \"%.200s\"", sub_path);
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, path, sizeof(path));
	if (n < 0 || n == sizeof(path))
		return err_set(e, n < 0 ? -errno : -ENAMETOOLONG, "read %s", link);
	*ret_path = str_ncopy(path, (size_t)n);
	return 0;
}

static int mount_one(struct container *c, const char *dir, const char *id, const char *sub_path,
		     int userns, struct hw_err *e)
{
	autofree char *target = str_printf("%s/%zu", dir, c->mount_sources.n);
	struct mount_image image = { .id = id, .userns = userns };
	autofree char *source = NULL;
	int r;

	if (mkdir(target, 0700) < 0)
		return err_set(e, -errno, "create %s", target);
	r = mount_image(c->pods->options.store, &image, target, e);
	if (r == 0)
		r = find_source(target, str_or(sub_path, ""), &source, e);
	if (r == 0)
		strings_add(&c->mount_sources, source);
	return r;
}

static int mount_images(struct container *c, int userns, struct hw_err *e)
{
	autofree char *dir = images_dir(c->pods, c->o.id);
	const struct container_mount *mounts = c->spec->mounts.v;
	int r = 0;

	if (c->mount_ids.n == 0)
		return 0;
	if (mkdir(dir, 0700) < 0)
		return err_set(e, -errno, "create %s", dir);
	for (size_t i = 0; r == 0 && i < c->spec->mounts.n; i++) {
		if (str_empty(mounts[i].image))
			continue;
		r = mount_one(c, dir, c->mount_ids.v[c->mount_sources.n], mounts[i].image_sub_path,
			      userns, e);
		if (r < 0)
			err_ctx(e, IMAGE_MOUNT_FAILED ": mounts[%zu]", i);
	}
	return r;
}

int container_mount(struct container *c, struct hw_err *e)
{
	int userns = 0, r;

	r = open_userns(c, &userns, e);
	if (r == 0)
		r = mount_root(c, userns, e);
	if (r == 0)
		r = mount_images(c, userns, e);
	if (userns)
		close(userns);
	return r;
}

static int detach_image(void *ctx, const struct file_entry *entry, struct hw_err *e)
{
	autofree char *path = str_printf("%s/%s", (const char *)ctx, entry->name);

	return mount_detach(path, e);
}

int container_unmount(struct pods *p, const char *id, struct hw_err *e)
{
	autofree char *images = images_dir(p, id);
	autofree char *target = container_rootfs(p, id);
	autofree char *path = str_printf("%s/containers", p->root);
	autoclose int dir = -1;
	int r;

	r = mount_detach(target, e);
	if (r == 0)
		r = file_walk(AT_FDCWD, images, detach_image, images, e);
	if (r < 0 && r != -ENOENT)
		return r;
	dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return err_set(e, -errno, "open %s", path);
	return remove_tree(dir, id, e);
}
