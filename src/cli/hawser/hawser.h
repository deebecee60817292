/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/hawser/hawser.h - shared by the commands of hawser
 *
 * What:  main() fills one struct cli and passes it to the command that runs. A
 *        command is a const struct in its own file, listed in hawser.c.
 * Rules: strings of the command line are borrowed. Results go to standard output,
 *        everything else to standard error. An error is printed once, by main().
 *        Strings from a runtime are cleaned before they are printed (cli/text.h).
 */
#ifndef CLI_HAWSER_HAWSER_H
#define CLI_HAWSER_HAWSER_H

#include <stdbool.h>
#include <stdint.h>

#include <hawser/field.h>

#include "api/call.h"
#include "base/err.h"
#include "base/json/value.h"
#include "cli/options.h"

struct Runtime__V1__ImageStatusResponse; /* api/cri-v1.pb-c.h */

/* Where an error comes from, to choose a hint. */
enum error_source {
	ERROR_CALL,	   /* a call, or hawser itself */
	ERROR_CONNECT,	   /* the connection to the runtime */
	ERROR_UNSUPPORTED, /* the runtime does not support hawser.v1 */
};

struct cli {
	/* options of all commands */
	const char *runtime; /* --runtime */
	int timeout;	     /* --timeout, seconds; 0: none, -1: default of the command */
	bool json, help, version;

	/* options of some commands */
	bool quiet, names_only, long_format, force, repair, password_stdin;
	const char *creds, *platform, *output, *format;
	struct hw_strings load_names; /* --name */

	const struct cli_command *command;
	const char *socket; /* path, from --runtime */
	struct rpc_client *client;
	enum error_source error_source;
};

struct cli_command {
	const char *name; /* one or two words */
	const char *args;
	int min_args, max_args; /* max_args -1: no limit */
	bool is_long;		/* has a longer default timeout */
	/* @args: arguments after the command, ends with NULL */
	int (*run)(struct cli *cli, char **args, struct hw_err *e);
	const char *summary;		    /* for the list of commands: "remove images" */
	const char *help;		    /* more sentences, and examples */
	const struct option_entry *options; /* or NULL */
};

extern const struct cli_command pull_command, images_command, rmi_command, inspect_command,
	history_command, verify_command, load_command, save_command, info_command, version_command;

/* ---- runtime.c: calls -------------------------------------------------------- */

/* Get the path from "unix:/path", "unix:///path" or "/path"; it is a part of @runtime. */
int runtime_socket(const char *runtime, const char **ret_path, struct hw_err *e);
int runtime_connect(struct cli *cli, struct hw_err *e); /* unless connected */
int64_t runtime_deadline(const struct cli *cli);	/* of a call that starts now */
/* Call a method of CRI. @ret_answer points to a variable of the response type. */
int runtime_call(struct cli *cli, const char *method, const ProtobufCMessage *request,
		 void *ret_answer, struct hw_err *e); /* RuntimeService */
int image_call(struct cli *cli, const char *method, const ProtobufCMessage *request,
	       void *ret_answer, struct hw_err *e); /* ImageService */
/* Start a streaming call of hawser.v1.Images. @request NULL: requests are streamed, too. */
int hawser_stream(struct cli *cli, const char *method, const ProtobufCMessage *request,
		  struct rpc_stream **ret_stream, struct hw_err *e);
/* To be called when a call of hawser.v1 failed. If the runtime does not support it, replace the error
 * by one that says so, with name and version of the runtime. @what: command or option. Return:
 * e->code */
int hawser_failed(struct cli *cli, const char *what, struct hw_err *e);
bool is_unimplemented(const struct hw_err *e); /* does the runtime not support the method? */
/* Get the status of an image by name, ID or prefix of an ID. @verbose: with its configuration.
 * Return: 0, and (*ret)->image is set; an error with STATUS_NOT_FOUND if there is no such image */
int image_status(struct cli *cli, const char *image, bool verbose,
		 struct Runtime__V1__ImageStatusResponse **ret, struct hw_err *e);

/* ---- output.c: errors and results -------------------------------------------- */

void report_error(const struct cli *cli, const struct hw_err *e);
void report_usage_error(const struct cli *cli, const char *msg, char *hint); /* frees the hint */

void print_json(struct value *v);		       /* frees it */
void print_field(const char *name, const char *value); /* cleaned; nothing if empty */
void print_field_and_free(const char *name, char *value);
void print_list(const char *name, char **values, size_t n); /* a line for each value */

#endif
