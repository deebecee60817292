/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rpc/sample.h - a service for tests and benchmarks
 *
 *	/sample.Sample/Now    instant the request
 *	/sample.Sample/Echo   short   the request
 *	/sample.Sample/Fail   short   "5 text" fails with code 5 and that text
 *	/sample.Sample/Mute   short   succeeds without an answer, which is a mistake
 *	/sample.Sample/Sleep  long    "ms": sleeps, or until the call is over
 *	/sample.Sample/Count  long    "n size": n messages of that size
 *	/sample.Sample/Sum    long    any number of requests: "n bytes"
 *	/sample.Sample/Chat   long    each request is answered at once
 */
#ifndef RPC_SAMPLE_H
#define RPC_SAMPLE_H

#include <stdatomic.h>

#include "rpc/call.h"

struct sample {
	atomic_uint begun;  /* long calls whose handler has started */
	atomic_uint ended;  /* of these */
	atomic_uint wasted; /* of these, those that were over before they ended */
};

extern const struct rpc_method sample_methods[]; /* their ctx is a struct sample */

#endif
