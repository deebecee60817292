/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/hawser/hawser.h - what the commands of hawser share
 *
 * What:  one struct cli is made by main() and handed to the one command that runs.
 *        A command is a const struct in a file of its own, named in hawser.c.
 * Rules: strings from the command line are borrowed. Results go to standard
 *        output, everything else to standard error; an error is printed once, by
 *        main(). What a runtime says is cleaned before it is shown (cli/text.h).
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

/* What an error is about, for its hint. */
enum trouble {
	TROUBLE_CALL,	     /* the runtime's answer, or something of our own */
	TROUBLE_CONNECT,     /* there is no runtime */
	TROUBLE_NOT_OFFERED, /* it does not know hawser.v1 */
};

struct cli {
	/* options of every command */
	const char *runtime; /* --runtime */
	int timeout;	     /* --timeout, s; 0: none, -1: the command's own */
	bool json, help, version;

	/* options of some */
	bool quiet, names, more, force, repair, password_stdin;
	const char *creds, *platform, *output, *format;
	struct hw_strings name; /* --name */

	/* made from them */
	const struct command *command;
	const char *socket; /* a path */
	struct rpc_client *client;
	enum trouble trouble;
};

struct command {
	const char *name; /* one word or two */
	const char *args;
	int min_args, max_args; /* max_args -1: any number */
	bool is_long;		/* may take long: another --timeout */
	/* @args: what follows the command, NULL at the end */
	int (*run)(struct cli *cli, char **args, struct hw_err *e);
	const char *summary;
	const char *help;
	const struct option_entry *options; /* NULL: none of its own */
};

extern const struct command pull_command, images_command, rmi_command, inspect_command,
	history_command, verify_command, load_command, save_command, info_command, version_command;

/* ---- runtime.c: calls -------------------------------------------------------- */

int runtime_socket(const char *runtime, const char **ret_path, struct hw_err *e);
int runtime_connect(struct cli *cli, struct hw_err *e);
int64_t runtime_deadline(const struct cli *cli);
/* @ret_answer: a variable of the answer's type */
int runtime_call(struct cli *cli, const char *method, const ProtobufCMessage *request,
		 void *ret_answer, struct hw_err *e); /* RuntimeService */
int image_call(struct cli *cli, const char *method, const ProtobufCMessage *request,
	       void *ret_answer, struct hw_err *e); /* ImageService */
/* Of hawser.v1.Images; request NULL: it follows. */
int hawser_stream(struct cli *cli, const char *method, const ProtobufCMessage *request,
		  struct rpc_stream **ret_stream, struct hw_err *e);
/* After a call of hawser.v1 has failed: a runtime that does not know it is named. */
int hawser_failed(struct cli *cli, const char *what, struct hw_err *e);
bool is_unimplemented(const struct hw_err *e);
/* Return: 0, or -ENOENT; info as the runtime gives it */
int image_status(struct cli *cli, const char *image, bool verbose,
		 struct Runtime__V1__ImageStatusResponse **ret, struct hw_err *e);

/* ---- output.c ---------------------------------------------------------------- */

void cli_report(const struct cli *cli, const struct hw_err *e);
void cli_usage(const struct cli *cli, const char *msg, char *hint); /* frees the hint */

void print_json(struct value *v);			    /* takes it */
void print_field(const char *name, const char *value);	    /* "Name:    value", cleaned */
void print_field_taken(const char *name, char *value);	    /* the same; frees it */
void print_list(const char *name, char **values, size_t n); /* one per line */

#endif
