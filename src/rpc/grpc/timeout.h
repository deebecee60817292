/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rpc/grpc/timeout.h - the grpc-timeout header: at most eight digits and a unit, "100m"
 */
#ifndef RPC_GRPC_TIMEOUT_H
#define RPC_GRPC_TIMEOUT_H

#include <stdbool.h>
#include <stdint.h>

#define TIMEOUT_TEXT 24 /* size of a buffer for any value */

/* A timeout that does not fit into 63 bits of ns is TIME_NEVER. Return: false if malformed */
bool timeout_parse(const char *text, int64_t *ret_ns);
/* Formats in the finest unit that fits eight digits, rounded up, so that the peer does not time out
 * before we do. Less than 1 ns is written as 1 ns. Return: @buf */
const char *timeout_format(int64_t ns, char buf[TIMEOUT_TEXT]);

#endif
