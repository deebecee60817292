/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cni/runtime/cni.h - struct hw_cni, and copies of structs that a caller passes
 *
 * A struct hw_cni owns copies of all its options and never changes, so threads
 * share it without a lock.
 */
#ifndef CNI_RUNTIME_CNI_H
#define CNI_RUNTIME_CNI_H

#include <stddef.h>
#include <stdint.h>

#include <hawser/cni.h>

#include "base/err.h"
#include "base/mem.h"

struct hw_cni {
	char **plugin_dirs; /* NULL at the end */
	char *path;	    /* the same directories, as the value of CNI_PATH */
	char *cache_dir;
	char *state_dir;
	struct hw_exec exec;
	enum hw_stderr stderr_mode;
	int lock_timeout_ms;
	int cancel_fd; /* -1: none */
	int timeout_ms;
	void (*damaged)(void *ctx, const char *file, const struct hw_err *why);
	void *damaged_ctx;
};

/*
 * Copies a caller's struct. It starts with its size, and may be older or newer than ours.
 * @to:   our struct, @size bytes; members that the caller does not have become zero
 * @from: the caller's struct
 * @what: name of the struct, for error messages
 *
 * Return: 0; -EINVAL if the size is not set; -E2BIG if the caller sets members that we do not have
 */
int cni_copy_struct(void *to, size_t size, const void *from, const char *what, struct hw_err *e);

AUTO_DEFINE(hw_cni_free, struct hw_cni);

#endif
