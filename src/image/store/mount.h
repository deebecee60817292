/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image/store/mount.h - a stack of layers as one tree, by overlayfs
 *
 * What:  the layers of an image, and a folder above them for what is written.
 * How:   fsopen() and one "lowerdir+" for each layer, since Linux 6.5. Before, all
 *        names have to fit into one page: then they are numbers of descriptors,
 *        relative to /proc/self/fd, in a thread with a working directory of its
 *        own.
 * Rules: more layers than overlayfs takes are refused with a message that says so.
 *        A layer that is opaque hides all that are below it.
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
	const char *empty; /* an empty folder, where overlayfs needs one layer more */
	const char *upper; /* what is written goes here; NULL: nothing can be */
	const char *work;  /* on the same file system; an empty folder, for overlayfs alone */
	bool is_volatile;  /* the upper one need not be written to disk when asked: see "volatile"
			    * in the kernel's overlayfs.rst */
};

/* At @target, a folder, in this mount namespace. It is unmounted by umount2(). */
int mount_overlay(const struct mount_stack *stack, const char *target, struct hw_err *e);
/* The same as before Linux 6.5; there is a layer or an upper folder. */
int mount_overlay_page(const struct mount_stack *stack, const char *target, struct hw_err *e);

/* An image of the store; the caller holds its layers (store_hold_layer()). */
struct mount_image {
	const char *id;
	const char *upper, *work; /* NULL: it can not be written to */
	bool is_volatile;
};

/* Return: 0; -ENOENT: there is no such image, or it has lost a layer */
int mount_image(struct store *s, const struct mount_image *image, const char *target,
		struct hw_err *e);

#endif
