/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cni/plugin/fuzz-args.c - fuzzer: CNI_ARGS
 */
#include <stdint.h>
#include <string.h>

#include <hawser/plugin.h>

#include "base/mem.h"
#include "base/str.h"
#include "cni/runtime/conf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static const char *const keys[] = { "IP", "MAC", "GATEWAY", NULL };
	AUTO(hw_strings_free) struct hw_strings values = { 0 };
	autofree char *args = str_ncopy((const char *)data, len);
	struct hw_err e;

	if (hw_args_parse(args, keys, &values, &e) < 0 && (e.code >= 0 || !e.msg[0]))
		__builtin_trap();
	return 0;
}
