/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci/seccomp/filter.h - compiled seccomp profiles: each is compiled once, and kept in a directory
 *
 * What:  hawser-seccomp, a process with reduced rights, compiles a profile (oci/compiler). The result is a file
 *	  of the directory; its name is a hash of the profile, whose conditions are decided, of the
 *	  architecture, and of the file of hawser-seccomp, which an update replaces. Requests for the same
 *	  profile at the same time share one compilation.
 * Rules: the directory has at most FILTERS_MAX files: the oldest ones are removed. It may be deleted while
 *	  no process uses it.
 *	  What hawser-seccomp writes is untrusted: it is bounded and checked.
 */
#ifndef OCI_SECCOMP_FILTER_H
#define OCI_SECCOMP_FILTER_H

#include "base/buf.h"
#include "oci/seccomp/profile.h"

#define FILTERS_MAX 256

struct filters;

struct filters_options {
	const char *program; /* path of hawser-seccomp; copied */
	const char *dir;     /* copied; is created; its parent must exist */
	int timeout_ms;	     /* for a compilation; 0: 10 seconds */
};

int filters_new(const struct filters_options *options, struct filters **ret_filters,
		struct hw_err *e);
/* No thread may use the filters. NULL is allowed. */
void filters_free(struct filters *f);
AUTO_DEFINE(filters_free, struct filters);

/* Gets the filter of a profile, an array of struct sock_filter. May be called from any thread.
 * @p: its conditions are decided. Return: 0; -EINVAL if the profile is invalid; -EIO if hawser-seccomp
 * failed; or another negative errno */
int filters_get(struct filters *f, const struct profile *p, struct buf *ret_filter,
		struct hw_err *e);

#endif
