/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cni/runtime/gc.h - garbage collection with a list that is made at the right time
 */
#ifndef CNI_RUNTIME_GC_H
#define CNI_RUNTIME_GC_H

#include <hawser/cni.h>

/*
 * As hw_gc(), with a list of valid attachments that @list makes. It is called once, after the snapshot of
 * the cache: an attachment whose ADD finishes before that call must be in the list, one whose ADD finishes
 * later is kept in any case. A list that exists before the snapshot would lack what is attached between them.
 * @locked_ms: the longest time that ADD and DEL of the network wait for the plugins' GC, which is killed
 *             then; 0: only the timeout of @cni applies
 * @list: sets *ret_valid and *ret_n to a list that @ctx keeps; returns 0 or a negative errno
 */
int gc_run(const struct hw_cni *cni, const struct hw_conf *conf, int locked_ms,
	   int (*list)(void *ctx, const struct hw_valid **ret_valid, size_t *ret_n,
		       struct hw_err *e),
	   void *ctx, struct hw_err *e);

#endif
