/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rpc/sample.h - a gRPC service for tests and benchmarks
 *
 *	/sample.Sample/Now    instant  responds with the request
 *	/sample.Sample/Echo   short    responds with the request
 *	/sample.Sample/Fail   short    "5 TEXT": fails with code 5 and the text TEXT
 *	/sample.Sample/Mute   short    returns without a response, like a faulty handler
 *	/sample.Sample/Sleep  long     "MS": sleeps MS milliseconds, or until the call is cancelled
 *	/sample.Sample/Count  long     "N SIZE": responds with N messages of SIZE bytes
 *	/sample.Sample/Watch  endless  "": responds with "watching", then sleeps until it is cancelled;
 *	                               "SIZE": responds with messages of SIZE bytes until then
 *	/sample.Sample/Sum    long     stream of requests: responds with "N BYTES", number and size
 *	/sample.Sample/Chat   long     stream of requests: responds to each request at once
 */
#ifndef RPC_SAMPLE_H
#define RPC_SAMPLE_H

#include <stdatomic.h>

#include "rpc/call.h"

struct sample_counts {
	atomic_uint started;   /* long calls whose handler has started */
	atomic_uint ended;     /* long calls whose handler has ended */
	atomic_uint cancelled; /* long calls that were cancelled when their handler ended */
};

extern const struct rpc_method sample_methods[]; /* their ctx is a struct sample_counts */

#endif
