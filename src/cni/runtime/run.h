/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cni/runtime/run.h - one call of the library, from its arguments to each plugin
 *
 * A struct run lives for one call, on the caller's stack; it borrows the
 * library object, the network and the strings of the attachment.
 */
#ifndef CNI_RUNTIME_RUN_H
#define CNI_RUNTIME_RUN_H

#include <hawser/cni.h>

#include "base/err.h"
#include "base/mem.h"
#include "cni/runtime/conf.h"

#define RUN_LOCK_HOLDER "libhawser" /* of the network's lock */

struct run {
	const struct hw_cni *cni;
	const struct hw_conf *conf;
	struct hw_attach at; /* of our size; its strings are never NULL */
	char *args;	     /* CNI_ARGS */
	int cancel_fd;
	int64_t deadline;
};

/* @at NULL: a call without an attachment; the object's own deadline and cancel descriptor count */
int run_init(struct run *run, const struct hw_cni *cni, const struct hw_conf *conf,
	     const struct hw_attach *at, struct hw_err *e);
void run_done(struct run *run);

/* Wait for the network: alone for GC, shared for ADD and DEL. */
int run_lock(const struct run *run, bool exclusive, int *ret_fd, struct hw_err *e);

/* Plugin i of the network, found and run; *ret_output is what it printed. */
int run_plugin(const struct run *run, size_t i, const char *command,
	       const struct conf_request *request, char **ret_output, size_t *ret_len,
	       struct hw_err *e);

/* DEL of the whole list; the network is locked by the caller. @prev_result NULL: none */
int run_del(const struct run *run, const char *prev_result, struct hw_err *e);
/* The cached result as prevResult for this network's version; NULL: there is none of use. */
char *run_prev_result(const struct run *run);

AUTO_VALUE_DEFINE(run_done, struct run);

#endif
