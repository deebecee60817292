/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/hawser-error.c - what went wrong, and what to do about it
 *
 * What:  one error on standard error, with a hint where we know one.
 * How:   a table from kinds of errors to hints; the first that fits is taken.
 */
#include "cli/hawser.h"

#include <errno.h>
#include <stdio.h>

#include "base/mem.h"
#include "base/str.h"
#include "cli/text.h"
#include "rpc/grpc-status.h"

struct report {
	char *code, *msg, *hint;
};

static const struct hw_field report_fields[] = {
	{ "code", HW_STRING, HW_AT(struct report, code), .flags = HW_ALWAYS },
	{ "msg", HW_STRING, HW_AT(struct report, msg), .flags = HW_ALWAYS },
	{ "hint", HW_STRING, HW_AT(struct report, hint) },
	{ 0 },
};

/* status: the runtime's word; 0: there was no connection, for this errno */
static const struct hint {
	int status;
	int error;
	const struct command *command; /* NULL: any */
	const char *text;
} hints[] = {
	{ 0, ENOENT, NULL,
	  "is hawser-cri running? --runtime unix:PATH names the socket of another runtime" },
	{ 0, ECONNREFUSED, NULL, "nobody listens there: is hawser-cri running?" },
	{ 0, EACCES, NULL, "the socket is for its owner and root: run it as root" },
	{ 0, EPERM, NULL, "the socket is for its owner and root: run it as root" },
	{ 0, EAGAIN, NULL, "too many wait there already: is the runtime stuck?" },
	{ STATUS_DEADLINE_EXCEEDED, 0, NULL, "--timeout SECONDS gives it more time" },
	{ STATUS_UNAVAILABLE, 0, &pull_command,
	  "are the registry, and the runtime, reachable? Trying again may help" },
	{ STATUS_UNAVAILABLE, 0, NULL, "the runtime went away, or is no runtime: is it running?" },
	{ STATUS_UNAUTHENTICATED, 0, &pull_command,
	  "--creds USER names a user of that registry; the password is asked for" },
	{ STATUS_PERMISSION_DENIED, 0, &pull_command,
	  "--creds USER names a user who may pull it; the password is asked for" },
	{ STATUS_NOT_FOUND, 0, &pull_command,
	  "are name and tag right? A registry may hide what needs --creds" },
	{ STATUS_NOT_FOUND, 0, NULL, "\"hawser images\" lists those that are there" },
	{ STATUS_UNIMPLEMENTED, 0, NULL,
	  "it needs hawser-cri, of the version of this program or later" },
	{ STATUS_RESOURCE_EXHAUSTED, 0, NULL, "the runtime has too much to do: try again" },
};

static bool fits(const struct cli *cli, const struct hint *h, const struct hw_err *e)
{
	if (h->command && h->command != cli->command)
		return false;
	if (h->status)
		return e->domain == HW_DOMAIN_GRPC && e->wire == h->status;
	return cli->is_unreachable && e->code == -h->error;
}

static const char *find_hint(const struct cli *cli, const struct hw_err *e)
{
	for (size_t i = 0; i < ARRAY_SIZE(hints); i++)
		if (fits(cli, &hints[i], e))
			return hints[i].text;
	return NULL;
}

/** cli_report() - the one place where an error is printed */
void cli_report(const struct cli *cli, const struct hw_err *e)
{
	struct report r = {
		.code = str_copy(
			status_name(cli->is_unreachable ? STATUS_UNAVAILABLE : (int)status_of(e))),
		.msg = text_clean(e->msg),
		.hint = str_copy(find_hint(cli, e)),
	};

	fflush(stdout);
	if (cli->json) {
		autofree char *json = hw_field_encode(report_fields, &r, 0);

		fprintf(stderr, "%s\n", json);
	} else {
		fprintf(stderr, "hawser: %s\n", r.msg);
		if (r.hint)
			fprintf(stderr, "hint: %s\n", r.hint);
	}
	hw_field_clear(report_fields, &r);
}
