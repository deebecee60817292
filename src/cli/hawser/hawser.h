/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/hawser/hawser.h - options, calls and output that the commands of hawser share
 *
 * What:  main() fills one struct cli, which is passed to the command that runs. A
 *        command is a const struct (cli/command.h) in its own file, listed in
 *        hawser.c. Its own options are static variables of that file.
 * Rules: strings of the command line are borrowed. Results go to standard output,
 *        progress and errors to standard error. An error is printed once, by main().
 *        text_clean() replaces control characters in every string of a runtime before
 *        it is printed (cli/text.h).
 */
#ifndef CLI_HAWSER_HAWSER_H
#define CLI_HAWSER_HAWSER_H

#include <stdbool.h>
#include <stdint.h>

#include <hawser/field.h>

#include "api/call.h"
#include "base/err.h"
#include "base/json/value.h"
#include "cli/command.h"

struct Runtime__V1__ImageStatusResponse; /* api/cri-v1.pb-c.h */

/* Where an error comes from; the hint depends on it. */
enum error_source {
	ERROR_CALL,	   /* a call failed, or hawser itself failed */
	ERROR_CONNECT,	   /* connecting to the runtime failed */
	ERROR_UNSUPPORTED, /* the runtime does not support hawser.v1 */
};

struct cli {
	/* options of all commands */
	const char *runtime; /* --runtime */
	int timeout;	     /* --timeout, seconds; 0: no timeout, -1: default of the command */
	bool json;

	const struct command *command;
	const char *socket; /* path, from --runtime */
	struct rpc_client *client;
	enum error_source error_source;
};

extern const struct command pull_command, images_command, rmi_command, inspect_command,
	history_command, verify_command, recover_command, load_command, save_command, info_command,
	version_command;

/* ---- runtime.c: calls -------------------------------------------------------- */

/* Get the path from "unix:/path", "unix:///path" or "/path"; *ret_path points into @runtime. */
int runtime_socket(const char *runtime, const char **ret_path, struct hw_err *e);
int runtime_connect(struct cli *cli, struct hw_err *e); /* does nothing if already connected */
int64_t runtime_deadline(const struct cli *cli);	/* for a call that starts now */
/* Call a method of CRI. @ret_answer is the address of a pointer to the method's response type. */
int runtime_call(struct cli *cli, const char *method, const ProtobufCMessage *request,
		 void *ret_answer, struct hw_err *e); /* RuntimeService */
int image_call(struct cli *cli, const char *method, const ProtobufCMessage *request,
	       void *ret_answer, struct hw_err *e); /* ImageService */
/* Call a method of hawser.v1.Images. */
int hawser_call(struct cli *cli, const char *method, const ProtobufCMessage *request,
		void *ret_answer, struct hw_err *e);
/* Start a streaming call of hawser.v1.Images. @request NULL: the caller sends a stream of requests. */
int hawser_stream(struct cli *cli, const char *method, const ProtobufCMessage *request,
		  struct rpc_stream **ret_stream, struct hw_err *e);
/* Call this after a call of hawser.v1 has failed with the error @e. If the runtime does not support the
 * call, *e is replaced by an error that says so and names the runtime and its version.
 * @what: the command or option that needs the call. Return: e->code */
int hawser_failed(struct cli *cli, const char *what, struct hw_err *e);
bool is_unimplemented(const struct hw_err *e); /* true if the runtime does not support the method */
/* Get the status of an image by name, ID or prefix of an ID. @verbose: request its configuration, too.
 * Return: 0, and (*ret)->image is not NULL; an error with STATUS_NOT_FOUND if the image does not exist */
int image_status(struct cli *cli, const char *image, bool verbose,
		 struct Runtime__V1__ImageStatusResponse **ret, struct hw_err *e);

/* ---- images.c: completion ---------------------------------------------------- */

int complete_images(struct cli *cli, const char *word, struct hw_strings *words, struct hw_err *e);

/* ---- output.c: errors and results -------------------------------------------- */

void report_error(const struct cli *cli, const struct hw_err *e);
void report_usage_error(const struct cli *cli, const char *msg, const char *hint);

void print_json(struct value *v); /* frees @v */
/* Print a line with name and value; the value is cleaned. An empty value prints no line. */
void print_field(const char *name, const char *value);
void print_field_and_free(const char *name, char *value);   /* print_field(), then free(@value) */
void print_list(const char *name, char **values, size_t n); /* a line for each value */

#endif
