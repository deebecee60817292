/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/errors.c - several errors that become one
 */
#include "base/errors.h"

#include <stdio.h>
#include <string.h>

#define ERRORS_TAIL sizeof("\nand 18446744073709551615 more")

/** errors_add() - one more, with its details, on a line of its own */
void errors_add(struct errors *errors, const struct hw_err *e)
{
	char text[sizeof(e->msg) + sizeof(e->details)];
	char *msg = errors->all.msg;
	size_t at, room;

	err_format(e, text, sizeof(text));
	if (errors->n++ == 0) {
		errors->all = *e;
		errors->all.details[0] = '\0';
		snprintf(msg, sizeof(e->msg) - ERRORS_TAIL, "%s", text);
		return;
	}
	at = strlen(msg);
	room = sizeof(e->msg) - ERRORS_TAIL - at;
	if (strlen(text) + sizeof("\n") > room)
		errors->left_out++;
	else
		snprintf(msg + at, room, "\n%s", text);
}

/** errors_end() - all of them as one error */
int errors_end(const struct errors *errors, struct hw_err *e)
{
	size_t at;

	if (errors->n == 0)
		return 0;
	*e = errors->all;
	at = strlen(e->msg);
	if (errors->left_out)
		snprintf(e->msg + at, sizeof(e->msg) - at, "\nand %zu more", errors->left_out);
	return e->code;
}
