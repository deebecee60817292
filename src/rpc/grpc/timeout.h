/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rpc/grpc/timeout.h - grpc-timeout: at most eight digits and a unit, "100m"
 */
#ifndef RPC_GRPC_TIMEOUT_H
#define RPC_GRPC_TIMEOUT_H

#include <stdbool.h>
#include <stdint.h>

#define TIMEOUT_TEXT 24 /* bytes that any of them needs */

/* ns; what would not fit 63 bits of them is TIME_NEVER */
bool timeout_parse(const char *text, int64_t *ret_ns);
/* In the finest unit that fits eight digits, rounded up: the peer must not give up before us. */
const char *timeout_format(int64_t ns, char buf[TIMEOUT_TEXT]);

#endif
