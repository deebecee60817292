/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/hawser/output.c - what went wrong, and what to do about it
 *
 * What:  one error on standard error, with a hint where we know one.
 * How:   a table from kinds of errors to hints; the first that fits is taken.
 */
#include "cli/hawser/hawser.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/str.h"
#include "cli/text.h"
#include "rpc/grpc/status.h"

struct report {
	char *code, *msg, *hint;
};

static const struct hw_field report_fields[] = {
	{ "code", HW_STRING, HW_AT(struct report, code), .flags = HW_ALWAYS },
	{ "msg", HW_STRING, HW_AT(struct report, msg), .flags = HW_ALWAYS },
	{ "hint", HW_STRING, HW_AT(struct report, hint) },
	{ 0 },
};

/* code: an errno where there was no connection, else a status of gRPC */
static const struct hint {
	enum trouble trouble;
	int code;
	const struct command *command; /* NULL: any */
	const char *text;
} hints[] = {
	{ TROUBLE_CONNECT, ENOENT, NULL,
	  "is hawser-cri running? --runtime unix:PATH names the socket of another runtime" },
	{ TROUBLE_CONNECT, ECONNREFUSED, NULL, "nobody listens there: is hawser-cri running?" },
	{ TROUBLE_CONNECT, EACCES, NULL, "the socket is for its owner and root: run it as root" },
	{ TROUBLE_CONNECT, EAGAIN, NULL, "too many wait there already: is the runtime stuck?" },
	{ TROUBLE_NOT_OFFERED, STATUS_UNIMPLEMENTED, NULL,
	  "it needs hawser-cri, of the version of this program or later" },
	{ TROUBLE_CALL, STATUS_UNIMPLEMENTED, NULL,
	  "does the runtime speak CRI v1? containerd does not where its CRI plugin is disabled" },
	{ TROUBLE_CALL, STATUS_DEADLINE_EXCEEDED, NULL, "--timeout SECONDS gives it more time" },
	{ TROUBLE_CALL, STATUS_UNAVAILABLE, &pull_command,
	  "are the registry, and the runtime, reachable? Trying again may help" },
	{ TROUBLE_CALL, STATUS_UNAVAILABLE, NULL,
	  "the runtime went away, or is no runtime: is it running?" },
	{ TROUBLE_CALL, STATUS_UNAUTHENTICATED, &pull_command,
	  "--creds USER names a user of that registry; the password is asked for" },
	{ TROUBLE_CALL, STATUS_PERMISSION_DENIED, &pull_command,
	  "--creds USER names a user who may pull it; the password is asked for" },
	{ TROUBLE_CALL, STATUS_NOT_FOUND, &pull_command,
	  "are name and tag right? A registry may hide what needs --creds" },
	{ TROUBLE_CALL, STATUS_NOT_FOUND, NULL, "\"hawser images\" lists those that are there" },
	{ TROUBLE_CALL, STATUS_RESOURCE_EXHAUSTED, NULL,
	  "the runtime has too much to do: try again" },
};

static bool fits(const struct cli *cli, const struct hint *h, const struct hw_err *e)
{
	if (h->trouble != cli->trouble || (h->command && h->command != cli->command))
		return false;
	if (h->trouble == TROUBLE_CONNECT)
		return e->code == -h->code;
	return e->domain == HW_DOMAIN_GRPC && e->wire == h->code;
}

static const char *find_hint(const struct cli *cli, const struct hw_err *e)
{
	for (size_t i = 0; i < ARRAY_SIZE(hints); i++)
		if (fits(cli, &hints[i], e))
			return hints[i].text;
	return NULL;
}

/* Several errors are several lines; no other control character is let through. */
static void print_lines(const char *msg)
{
	AUTO(hw_strings_free) struct hw_strings lines = { 0 };

	strings_split(msg, '\n', &lines);
	for (size_t i = 0; i < lines.n; i++) {
		autofree char *line = text_clean(lines.v[i]);

		if (*line)
			fprintf(stderr, "hawser: %s\n", line);
	}
}

static void print_json_line(const struct report *r)
{
	autofree char *json = hw_field_encode(report_fields, r, 0);
	autofree char *safe = text_json_safe(json);

	fprintf(stderr, "%s\n", safe);
}

/* The one place where an error is printed. */
static void print_report(const struct cli *cli, const struct report *r)
{
	fflush(stdout);
	if (cli->json) {
		print_json_line(r);
		return;
	}
	print_lines(r->msg);
	if (r->hint)
		fprintf(stderr, "hint: %s\n", r->hint);
}

/** cli_report() - a command has failed */
void cli_report(const struct cli *cli, const struct hw_err *e)
{
	int code = cli->trouble == TROUBLE_CONNECT ? STATUS_UNAVAILABLE : (int)status_of(e);
	struct report r = { .code = (char *)status_name(code),
			    .msg = (char *)e->msg,
			    .hint = (char *)find_hint(cli, e) };

	print_report(cli, &r);
}

/** cli_usage() - the words are wrong; @hint is freed */
void cli_usage(const struct cli *cli, const char *msg, char *hint)
{
	struct report r = { .code = (char *)status_name(STATUS_INVALID_ARGUMENT),
			    .msg = (char *)msg,
			    .hint = hint };

	print_report(cli, &r);
	free(hint);
}

/* ---- results --- */

#define NAME_WIDTH 14

/**
 * print_json() - a JSON value, which is freed
 */
void print_json(struct value *v)
{
	autofree char *text = value_format(v, HW_JSON_PRETTY);
	autofree char *safe = text_json_safe(text);

	printf("%s\n", safe);
	value_free(v);
}

/**
 * print_field() - a line of a description; nothing if there is no value
 */
void print_field(const char *name, const char *value)
{
	autofree char *clean = text_clean(value);

	if (*clean)
		printf("%-*s%s\n", NAME_WIDTH, name, clean);
}

/**
 * print_field_taken() - the same of a value that is freed
 */
void print_field_taken(const char *name, char *value)
{
	print_field(name, value);
	free(value);
}

/**
 * print_list() - the name on the first line only
 */
void print_list(const char *name, char **values, size_t n)
{
	for (size_t i = 0; i < n; i++)
		print_field(i ? "" : name, values[i]);
}
