/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/err.h - the short names, used inside, of <hawser/err.h>
 */
#ifndef BASE_ERR_H
#define BASE_ERR_H

#include <hawser/err.h>

#define err_set	    hw_err_set
#define err_text    hw_err_text
#define err_cni	    hw_err_cni
#define err_details hw_err_details
#define err_ctx	    hw_err_ctx
#define err_wire    hw_err_wire
#define err_format  hw_err_format

#endif
