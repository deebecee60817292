/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rpc/grpc/timeout.h - the grpc-timeout header: at most eight digits and a unit, such as "100m"
 */
#ifndef RPC_GRPC_TIMEOUT_H
#define RPC_GRPC_TIMEOUT_H

#include <stdbool.h>
#include <stdint.h>

#define TIMEOUT_TEXT 24 /* size of a buffer for any value */

/* A timeout of more than TIME_NEVER ns becomes TIME_NEVER. Return: false if malformed */
bool timeout_parse(const char *text, int64_t *ret_ns);
/* Formats a timeout in the finest unit in which it has at most eight digits. Rounds up, so that the
 * peer does not time out before we do. A value below 1 ns is written as 1 ns. Return: @buf */
const char *timeout_format(int64_t ns, char buf[TIMEOUT_TEXT]);

#endif
