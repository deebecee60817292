/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/err.h - the short names, used inside, of <hawser/err.h>
 */
#ifndef BASE_ERR_H
#define BASE_ERR_H

#include <hawser/err.h>

#ifdef __clang_analyzer__
/* A static analyser does not see that these return an error and never 0: say so. */
static inline int err_negative(int r)
{
	return r < 0 ? r : -1;
}
#define err_set(...)	 err_negative(hw_err_set(__VA_ARGS__))
#define err_text(...)	 err_negative(hw_err_text(__VA_ARGS__))
#define err_cni(...)	 err_negative(hw_err_cni(__VA_ARGS__))
#define err_details(...) err_negative(hw_err_details(__VA_ARGS__))
#define err_ctx(...)	 err_negative(hw_err_ctx(__VA_ARGS__))
#else
#define err_set	    hw_err_set
#define err_text    hw_err_text
#define err_cni	    hw_err_cni
#define err_details hw_err_details
#define err_ctx	    hw_err_ctx
#endif
#define err_wire   hw_err_wire
#define err_format hw_err_format

#endif
