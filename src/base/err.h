/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/err.h - short internal names of the functions in <hawser/err.h>; other codes for
 *              an error; lists of errors
 */
#ifndef BASE_ERR_H
#define BASE_ERR_H

#include <stddef.h>

#include <hawser/err.h>

#ifdef __clang_analyzer__
/* Tells the static analyzer that these functions return an error, never 0. */
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

/* Replaces the errno of an error if it is @from, where the caller knows better what it means:
 * -EINVAL of a decoder is -EBADMSG if the text came from a server. The message stays.
 * Return: the errno that the error now has */
int err_replace(struct hw_err *e, int from, int to);

/* Gives an error a CNI code, and the errno that is closest to it. Message and details stay.
 * Return: e->code */
int err_recode(struct hw_err *e, int wire);

/*
 * Collects errors for work that continues after a failure. All errors are reported together, one
 * per line, with the code of the first. Starts zeroed and needs no cleanup. Errors that do not fit
 * into a struct hw_err are only counted: "and 3 more".
 */
struct errors {
	size_t n, left_out;
	struct hw_err all;
};

void errors_add(struct errors *errors, const struct hw_err *e); /* message and details */
/* Return: 0 if no error was added, with *e unchanged; else the code of the first error, with all
 * messages in *e */
int errors_result(const struct errors *errors, struct hw_err *e);

#endif
