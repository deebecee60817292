/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pod/container-seccomp.c - the seccomp profile of a container
 *
 * How:   the profile is that of the source, or of a file of the node. Its conditions are decided for the
 *        capabilities of the container, and hawser-seccomp compiles it, also for a handler that takes
 *        only the profile: so a profile is refused with the same error for every handler.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/utsname.h>

#include "base/os/file.h"
#include "base/str.h"
#include "oci/seccomp/default-profile.h"
#include "oci/seccomp/filter.h"
#include "pod/container.h"

#define FIELD "linux.security_context.seccomp"

static int read_file(const char *path, struct profile *ret, struct hw_err *e)
{
	AUTO(buf_done) struct buf text = { 0 };
	int r;

	if (*path != '/')
		return err_text(e, -EINVAL, "localhost_ref: \"%.200s\" is not an absolute path",
				path);
	r = file_read(AT_FDCWD, path, PROFILE_MAX, &text, e);
	if (r < 0) {
		static const int mistakes[] = { -ENOENT, -ENOTDIR, -EISDIR, -EFBIG };

		err_ctx(e, "localhost_ref");
		for (size_t i = 0; i < ARRAY_SIZE(mistakes); i++)
			r = err_replace(e, mistakes[i], -EINVAL);
		return r;
	}
	r = profile_decode(str_or(text.data, ""), text.len, ret, e);
	return r < 0 ? err_ctx(e, "profile %.200s", path) : 0;
}

static int find_profile(const struct container_profile *wanted,
			const struct hw_strings *capabilities, struct profile *ret,
			struct hw_err *e)
{
	AUTO(profile_done) struct profile p = { 0 };
	struct utsname node;
	struct profile_target target = {
		.machine = profile_machine(NULL),
		.capabilities = capabilities,
		.kernel = node.release,
	};
	int r = 0;

	uname(&node);
	if (wanted->type == PROFILE_RUNTIME_DEFAULT)
		default_profile(&target, &p);
	else
		r = read_file(wanted->ref, &p, e);
	if (r == 0 && profile_resolve(&p, &target, e) < 0)
		r = err_ctx(e, "profile %.200s", wanted->ref);
	if (r < 0)
		return r;
	*ret = p;
	p = (struct profile){ 0 };
	return 0;
}

static int compile(const struct container *c, const struct oci_handler *handler,
		   const struct hw_strings *capabilities, struct container_seccomp *ret,
		   struct hw_err *e)
{
	const struct container_profile *wanted = &c->spec->security.seccomp;
	AUTO(container_seccomp_done) struct container_seccomp seccomp = { 0 };
	AUTO(profile_done) struct profile p = { 0 };
	int r;

	r = find_profile(wanted, capabilities, &p, e);
	if (r < 0)
		return r;
	r = filters_get(c->pods->options.filters, &p, &seccomp.filter, e);
	if (r < 0)
		return wanted->type == PROFILE_LOCALHOST ? err_ctx(e, "profile %.200s", wanted->ref)
							 : r;
	if (handler->seccomp != OCI_SECCOMP_FILTER)
		buf_done(&seccomp.filter);
	/* a filter has no flags: crun reads them from the profile */
	if (handler->seccomp != OCI_SECCOMP_FILTER || p.flags.n)
		seccomp.profile = profile_encode(&p);
	*ret = seccomp;
	seccomp = (struct container_seccomp){ 0 };
	return 0;
}

int container_find_seccomp(const struct container *c, const struct oci_handler *handler,
			   const struct hw_strings *capabilities, struct container_seccomp *ret,
			   struct hw_err *e)
{
	const struct container_security *s = &c->spec->security;
	int r;

	*ret = (struct container_seccomp){ 0 };
	if (s->privileged || !s->has_seccomp || s->seccomp.type == PROFILE_UNCONFINED)
		return 0;
	if (handler->seccomp == OCI_SECCOMP_NONE)
		return err_text(e, -EOPNOTSUPP,
				FIELD ": %s of the runtime handler has no support for seccomp",
				handler->program);
	r = compile(c, handler, capabilities, ret, e);
	return r < 0 ? err_ctx(e, FIELD) : 0;
}

void container_seccomp_done(struct container_seccomp *s)
{
	buf_done(&s->filter);
	free(take_ptr(s->profile));
}
