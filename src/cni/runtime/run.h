/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cni/runtime/run.h - one call of the library, from its arguments to each plugin
 *
 * A struct run lives for one call, on the caller's stack. It borrows the
 * library object, the network and the strings of the attachment.
 */
#ifndef CNI_RUNTIME_RUN_H
#define CNI_RUNTIME_RUN_H

#include <hawser/cni.h>

#include "base/err.h"
#include "base/mem.h"
#include "cni/runtime/conf.h"

#define RUN_LOCK_HOLDER "libhawser" /* @holder of lock_acquire() */

struct run {
	const struct hw_cni *cni;
	const struct hw_conf *conf;
	struct hw_attach at; /* container_id, netns and ifname are never NULL */
	char *args;	     /* value of CNI_ARGS */
	int cancel_fd;	     /* -1: none */
	int64_t deadline;
};

/*
 * Begins a call; run_done() ends it.
 * @at: NULL for a call without an attachment; deadline and cancel descriptor are then those of @cni
 *
 * Return: 0, or a negative errno if @at is invalid
 */
int run_init(struct run *run, const struct hw_cni *cni, const struct hw_conf *conf,
	     const struct hw_attach *at, struct hw_err *e);
void run_done(struct run *run);

/*
 * Acquires the network's lock, see lock_acquire(); closing *ret_fd releases it.
 * @exclusive: true for GC; false for ADD and DEL, which share the lock and also acquire that of
 *             the attachment, see lock_attachment()
 *
 * Return: 0, or a negative errno: CNI code 11 on timeout, -ECANCELED if cancelled
 */
int run_lock(const struct run *run, bool exclusive, int *ret_fd, struct hw_err *e);

/*
 * Finds plugin @i of the network and runs it.
 * @command:    CNI_COMMAND
 * @request:    what to add to the plugin's configuration
 * @ret_output: its standard output, @ret_len bytes; freed by the caller
 *
 * Return: 0, or a negative errno with the plugin's error
 */
int run_plugin(const struct run *run, size_t i, const char *command,
	       const struct conf_request *request, char **ret_output, size_t *ret_len,
	       struct hw_err *e);

/*
 * Runs DEL of the whole network, last plugin first. The caller must hold the network's lock. On
 * success the cache entry is removed; on failure it stays, so that DEL can be retried.
 * @prev_result: JSON, for all plugins; NULL: none
 *
 * Return: 0, or a negative errno with the first error
 */
int run_del(const struct run *run, const char *prev_result, struct hw_err *e);
/*
 * Reads the cached result, or else the caller's, in the network's version, as prevResult for DEL. It is not an error if
 * the result is missing, damaged or cannot be converted: the plugins then get no prevResult.
 *
 * Return: JSON, freed by the caller; NULL: none
 */
char *run_prev_result(const struct run *run);

AUTO_VALUE_DEFINE(run_done, struct run);

#endif
