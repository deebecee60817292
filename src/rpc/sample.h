/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rpc/sample.h - a gRPC service for tests and benchmarks
 *
 *	/sample.Sample/Now    instant  responds with the request
 *	/sample.Sample/Echo   short    responds with the request
 *	/sample.Sample/Fail   short    "5 text" fails with code 5 and that text
 *	/sample.Sample/Mute   short    returns without a response, as a faulty handler would
 *	/sample.Sample/Sleep  long     "ms": sleeps that long, or until the call is cancelled
 *	/sample.Sample/Count  long     "n size": responds with n messages of that size
 *	/sample.Sample/Sum    long     stream of requests: responds with "n bytes"
 *	/sample.Sample/Chat   long     stream of requests: responds to each at once
 */
#ifndef RPC_SAMPLE_H
#define RPC_SAMPLE_H

#include <stdatomic.h>

#include "rpc/call.h"

struct sample_counts {
	atomic_uint started;   /* long calls whose handler has started */
	atomic_uint ended;     /* of these, those whose handler has ended */
	atomic_uint cancelled; /* of the ended, those that were cancelled */
};

extern const struct rpc_method sample_methods[]; /* their ctx is a struct sample_counts */

#endif
