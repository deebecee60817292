/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image/store/mount.h - overlayfs mounts of the layers of an image
 *
 * What:  mount a stack of layers, optionally with a writable upper directory.
 * How:   since Linux 6.5 with fsopen() and one "lowerdir+" option per layer. On
 *        older kernels mount(2) takes all paths in one page of options. To save
 *        space, the paths are descriptor numbers relative to /proc/self/fd, which is the
 *        working directory of a thread that only calls mount(2).
 *        overlayfs cannot be idmapped, but its layers can: each one is mounted with the IDs of a user
 *        namespace, at the target, until overlayfs has its own copies of these mounts. upper must belong to
 *        that namespace's root. This needs Linux 6.5.
 * Rules: an opaque layer hides all layers below it.
 */
#ifndef IMAGE_STORE_MOUNT_H
#define IMAGE_STORE_MOUNT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "image/store/store.h"

struct mount_layer {
	const char *path; /* absolute */
	bool opaque;
};

struct mount_stack {
	const struct mount_layer *layers; /* the lowest first */
	size_t n;
	const char *empty; /* an empty directory: overlayfs needs at least two directories */
	const char *upper; /* directory for changes; NULL: mount read-only */
	const char *work;  /* empty directory on the file system of upper, for overlayfs itself */
	bool is_volatile;  /* do not sync upper: see "volatile" in the kernel's overlayfs.rst */
	int userns;	   /* user namespace: its IDs become those of the layers' files; 0: none */
};

/* Mount at @target, an absolute path of a directory. Undo it with umount2(). Return: 0;
 * -E2BIG: too many layers; or another negative errno */
int mount_overlay(const struct mount_stack *stack, const char *target, struct hw_err *e);
/* Like mount_overlay(), but with mount(2), for kernels before Linux 6.5. The stack must have a
 * layer or upper. Return: -E2BIG also if the options do not fit into a page */
int mount_overlay_legacy(const struct mount_stack *stack, const char *target, struct hw_err *e);

/* An image of the store. The caller holds its layers (store_hold_layer()). */
struct mount_image {
	const char *id;
	const char *upper, *work; /* NULL: mount read-only */
	bool is_volatile;
	int userns;
};

/* Return: 0; -ENOENT: no such image, or one of its layers was lost; or another negative errno */
int mount_image(struct store *s, const struct mount_image *image, const char *target,
		struct hw_err *e);

#endif
