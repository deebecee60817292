/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cni/runtime/cni.c - struct hw_cni, and copies of structs that a caller passes
 *
 * What:  copies the caller's options into one object.
 * How:   the caller may be built with an older or newer library. Its structs
 *        start with their size, which shows the members that the caller
 *        has. All other members become zero, which is always the default.
 * Rules: the object never changes after hw_cni_new().
 */
#include "cni/runtime/cni.h"

#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/str.h"
#include "cni/lock.h"
#include "cni/runtime/cache.h"

#define STRUCT_SIZE_MAX 4096 /* a larger .size must be garbage: the caller did not set it */

int cni_copy_struct(void *to, size_t size, const void *from, const char *what, struct hw_err *e)
{
	const unsigned char *bytes = from;
	size_t caller_size;

	memcpy(&caller_size, from, sizeof(caller_size));
	if (caller_size < sizeof(caller_size) || caller_size > STRUCT_SIZE_MAX)
		return err_text(e, -EINVAL, "%s.size is not set", what);
	for (size_t i = size; i < caller_size; i++)
		if (bytes[i])
			return err_text(e, -E2BIG,
					"%s has unsupported members set: the caller was built for "
					"a newer library",
					what);
	memset(to, 0, size);
	memcpy(to, from, caller_size < size ? caller_size : size);
	memcpy(to, &size, sizeof(size));
	return 0;
}

int hw_cni_new(const struct hw_cni_options *options, struct hw_cni **ret_cni, struct hw_err *e)
{
	AUTO(hw_cni_free) struct hw_cni *cni = mem_new(sizeof(*cni));
	AUTO(buf_done) struct buf path = { 0 };
	struct hw_cni_options o;
	size_t n = 0;
	int r;

	r = cni_copy_struct(&o, sizeof(o), options, "struct hw_cni_options", e);
	if (r < 0)
		return r;
	if (o.exec) {
		r = cni_copy_struct(&cni->exec, sizeof(cni->exec), o.exec, "struct hw_exec", e);
		if (r < 0)
			return r;
	}
	while (o.plugin_dirs && o.plugin_dirs[n])
		n++;
	cni->plugin_dirs = mem_resize(NULL, n + 1, sizeof(char *));
	for (size_t i = 0; i < n; i++) {
		cni->plugin_dirs[i] = str_copy(o.plugin_dirs[i]);
		buf_printf(&path, "%s%s", i ? ":" : "", o.plugin_dirs[i]);
	}
	cni->plugin_dirs[n] = NULL;
	cni->path = buf_take(&path);
	cni->cache_dir = str_copy(str_or(o.cache_dir, CACHE_DIR));
	cni->state_dir = o.state_dir ? str_copy(o.state_dir) : state_dir_default();
	cni->stderr_mode = o.stderr_mode;
	cni->lock_timeout_ms = o.lock_timeout_ms > 0 ? o.lock_timeout_ms : LOCK_TIMEOUT_MS;
	cni->cancel_fd = o.cancel_fd > 0 ? o.cancel_fd : -1;
	cni->timeout_ms = o.timeout_ms;
	cni->damaged = o.damaged;
	cni->damaged_ctx = o.damaged_ctx;
	*ret_cni = take_ptr(cni);
	return 0;
}

void hw_cni_free(struct hw_cni *cni)
{
	if (!cni)
		return;
	for (char **dir = cni->plugin_dirs; dir && *dir; dir++)
		free(*dir);
	free(cni->plugin_dirs);
	free(cni->path);
	free(cni->cache_dir);
	free(cni->state_dir);
	free(cni);
}
