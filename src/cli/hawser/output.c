/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/hawser/output.c - print errors with hints, and print results
 *
 * How:   a table maps errors to hints; the first matching entry is used.
 */
#include "cli/hawser/hawser.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/call.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/text.h"
#include "rpc/grpc/status.h"

#define NAME_WIDTH 14

/* ---- errors ---------------------------------------------------------------------- */

struct error_report {
	char *code, *msg, *hint;
};

static const struct hw_field report_fields[] = {
	{ "code", HW_STRING, HW_AT(struct error_report, code), .flags = HW_ALWAYS },
	{ "msg", HW_STRING, HW_AT(struct error_report, msg), .flags = HW_ALWAYS },
	{ "hint", HW_STRING, HW_AT(struct error_report, hint) },
	{ 0 },
};

#define CANNOT_START "a container runs only once: remove it, and create another one"
#define CANNOT_EXEC  "run \"hawser ps\" for a list of the containers that run"

static const struct hint {
	enum error_source source;
	int code;		       /* errno for ERROR_CONNECT, else gRPC status code */
	const struct command *command; /* NULL: any */
	const char *text;	       /* NULL: no hint helps */
	const char *words;	       /* only for messages with these words; NULL: any */
} hints[] = {
	{ ERROR_CONNECT, ENOENT, NULL,
	  "is hawser-cri running? Use --runtime unix:PATH for the socket of another runtime" },
	{ ERROR_CONNECT, ECONNREFUSED, NULL,
	  "no process listens on this socket: is hawser-cri running?" },
	{ ERROR_CONNECT, EACCES, NULL,
	  "only root and the owner of the socket may connect: run hawser as root" },
	{ ERROR_CONNECT, EAGAIN, NULL, "the runtime does not accept connections: is it hanging?" },
	{ ERROR_UNSUPPORTED, STATUS_UNIMPLEMENTED, NULL,
	  "this requires hawser-cri of the same version as hawser, or later" },
	{ ERROR_CALL, STATUS_NOT_FOUND, &run_command,
	  "check name and tag of the image; use \"hawser pull --creds USER\" if it is private",
	  "pull \"" },
	{ ERROR_CALL, STATUS_UNAUTHENTICATED, &run_command,
	  "use \"hawser pull --creds USER\" to log in to the registry", "pull \"" },
	{ ERROR_CALL, STATUS_PERMISSION_DENIED, &run_command,
	  "use \"hawser pull --creds USER\" to log in to the registry", "pull \"" },
	{ ERROR_CALL, STATUS_UNAVAILABLE, &run_command,
	  "check that the registry and the runtime are reachable, and try again", "pull \"" },
	{ ERROR_CALL, STATUS_UNAVAILABLE, &run_command,
	  "configure a network, set default-network of hawser-cri, or use --host-network",
	  "network is not ready" },
	{ ERROR_CALL, STATUS_ALREADY_EXISTS, &run_command, "choose another name with --name",
	  "pod \"" },
	{ ERROR_CALL, STATUS_FAILED_PRECONDITION, &start_command, CANNOT_START },
	{ ERROR_CALL, STATUS_UNKNOWN, &start_command, CANNOT_START, "CONTAINER_EXITED" },
	{ ERROR_CALL, STATUS_FAILED_PRECONDITION, &exec_command, CANNOT_EXEC },
	{ ERROR_CALL, STATUS_UNKNOWN, &exec_command, CANNOT_EXEC, "is in CONTAINER_" },
	{ ERROR_CALL, STATUS_UNIMPLEMENTED, NULL,
	  "does the runtime support CRI v1? containerd does not if its CRI plugin is disabled" },
	{ ERROR_CALL, STATUS_DEADLINE_EXCEEDED, NULL,
	  "use --timeout SECONDS for a longer timeout" },
	{ ERROR_CALL, STATUS_UNAVAILABLE, &pull_command,
	  "check that the registry and the runtime are reachable, and try again" },
	{ ERROR_CALL, STATUS_UNAVAILABLE, NULL,
	  "check that the runtime is running, and that this is the socket of a CRI runtime" },
	{ ERROR_CALL, STATUS_UNAUTHENTICATED, &pull_command,
	  "use --creds USER to log in to the registry; hawser asks for the password" },
	{ ERROR_CALL, STATUS_PERMISSION_DENIED, &pull_command,
	  "use --creds USER for a user who may pull the image; hawser asks for the password" },
	{ ERROR_CALL, STATUS_NOT_FOUND, &pull_command,
	  "check name and tag of the image; a private image may need --creds USER" },
	{ ERROR_CALL, STATUS_NOT_FOUND, &network_gc_command,
	  "run \"hawser network ls\" for a list of networks" },
	{ ERROR_CALL, STATUS_NOT_FOUND, NULL,
	  "run \"hawser pods\" and \"hawser ps -a\" for lists of pods and containers",
	  "pod or container \"" },
	{ ERROR_CALL, STATUS_NOT_FOUND, NULL, "run \"hawser pods\" for a list of pods", "pod \"" },
	{ ERROR_CALL, STATUS_NOT_FOUND, NULL, "run \"hawser ps -a\" for a list of containers",
	  "container \"" },
	{ ERROR_CALL, STATUS_NOT_FOUND, NULL, "run \"hawser images\" for a list of images" },
	{ ERROR_CALL, STATUS_INVALID_ARGUMENT, NULL,
	  "use more of the ID, NAMESPACE/POD for a pod, or POD/NAME for a container",
	  ": ambiguous: " },
	{ ERROR_CALL, STATUS_FAILED_PRECONDITION, &rm_command,
	  "stop it with \"hawser stop\", or use --force to kill it", "is running" },
	{ ERROR_CALL, STATUS_RESOURCE_EXHAUSTED, NULL,
	  "free disk space on the file system of the images, for example with \"hawser rmi\"",
	  API_DISK_FULL },
	{ ERROR_CALL, STATUS_RESOURCE_EXHAUSTED, NULL, NULL, "too large" }, /* a message */
	{ ERROR_CALL, STATUS_RESOURCE_EXHAUSTED, NULL,
	  "the runtime is busy or short of resources: try again later" },
};

static const char *find_hint(const struct cli *cli, const struct hw_err *e)
{
	for (size_t i = 0; i < ARRAY_SIZE(hints); i++) {
		const struct hint *h = &hints[i];

		if (h->source != cli->error_source || (h->command && h->command != cli->command) ||
		    (h->words && !strstr(e->msg, h->words)))
			continue;
		if (h->source == ERROR_CONNECT ? e->code == -h->code
					       : e->domain == HW_DOMAIN_GRPC && e->wire == h->code)
			return h->text;
	}
	return NULL;
}

static void print_report(const struct cli *cli, const struct error_report *r)
{
	AUTO(hw_strings_free) struct hw_strings lines = { 0 };

	fflush(stdout);
	if (cli->json) {
		autofree char *json = hw_field_encode(report_fields, r, 0);
		autofree char *safe = text_json_safe(json);

		fprintf(stderr, "%s\n", safe);
		return;
	}
	/* A message may contain several errors, one per line. */
	strings_split(r->msg, '\n', &lines);
	for (size_t i = 0; i < lines.n; i++) {
		autofree char *line = text_clean(lines.v[i]);

		if (*line)
			fprintf(stderr, "hawser: %s\n", line);
	}
	if (r->hint)
		fprintf(stderr, "hint: %s\n", r->hint);
}

void report_error(const struct cli *cli, const struct hw_err *e)
{
	int code =
		cli->error_source == ERROR_CONNECT ? STATUS_UNAVAILABLE : (int)status_from_err(e);
	struct error_report r = { .code = (char *)status_name(code),
				  .msg = (char *)e->msg,
				  .hint = (char *)find_hint(cli, e) };

	print_report(cli, &r);
}

void report_usage_error(const struct cli *cli, const char *msg, const char *hint)
{
	struct error_report r = { .code = (char *)status_name(STATUS_INVALID_ARGUMENT),
				  .msg = (char *)msg,
				  .hint = (char *)hint };

	print_report(cli, &r);
}

/* ---- results --------------------------------------------------------------------- */

void print_json(struct value *v)
{
	autofree char *text = value_format(v, HW_JSON_PRETTY);
	autofree char *safe = text_json_safe(text);

	printf("%s\n", safe);
	value_free(v);
}

void print_field(const char *name, const char *value)
{
	autofree char *clean = text_clean(value);

	if (*clean)
		printf("%-*s%s\n", NAME_WIDTH, name, clean);
}

void print_field_and_free(const char *name, char *value)
{
	print_field(name, value);
	free(value);
}

void print_notes(const struct hw_strings *notes)
{
	for (size_t i = 0; i < notes->n; i++) {
		autofree char *clean = text_clean(notes->v[i]);

		printf("%s%s\n", i == 0 ? "\n" : "", clean);
	}
}

void print_list(const char *name, char **values, size_t n)
{
	for (size_t i = 0; i < n; i++)
		print_field(i ? "" : name, values[i]);
}
