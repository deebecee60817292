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
 *        it is printed (cli/text.h), except the output of containers, which is printed
 *        as it is.
 */
#ifndef CLI_HAWSER_HAWSER_H
#define CLI_HAWSER_HAWSER_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>

#include <hawser/field.h>

#include "api/call.h"
#include "base/err.h"
#include "base/json/value.h"
#include "base/mem.h"
#include "cli/command.h"

/* api/cri-v1.pb-c.h */
struct Runtime__V1__ContainerFilter;
struct Runtime__V1__ContainerStatus;
struct Runtime__V1__ContainerStatusResponse;
struct Runtime__V1__ImageStatusResponse;
struct Runtime__V1__ListContainersResponse;
struct Runtime__V1__ListImagesResponse;
struct Runtime__V1__ListPodSandboxResponse;
struct Runtime__V1__PodSandbox;
/* api/hawser-v1.pb-c.h */
struct Hawser__V1__ListLostContainersResponse;
struct Hawser__V1__ListPodsResponse;
struct Hawser__V1__PodDetails;

/* Where an error comes from; the hint depends on it. */
enum error_source {
	ERROR_CALL,	   /* a call failed, or hawser itself failed */
	ERROR_CONNECT,	   /* connecting to the runtime failed */
	ERROR_UNSUPPORTED, /* the runtime does not support hawser.v1 */
	ERROR_USAGE,	   /* the command line is wrong */
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
	int expected; /* seconds that the next call takes by itself; its default timeout is longer */
};

/* Exit status after an error in the command line. */
#define USAGE_STATUS 2

/* Exit status of commands that run a program, if it did not run. podman and docker have the same. */
#define NOT_RUN_STATUS 125

extern const struct command ps_command, exec_command, logs_command, run_command, start_command,
	stop_command, kill_command, wait_command, pull_command, images_command, rmi_command,
	image_inspect_command, history_command, verify_command, recover_command, load_command,
	save_command, info_command, version_command;
extern const struct command pods_command, rm_command, inspect_command, network_ls_command,
	network_check_command, network_gc_command;

/* ---- runtime.c: calls -------------------------------------------------------- */

void runtime_disconnect(struct cli *cli);
/* Prepare for calls that complete a word: the shell waits for at most two seconds. */
int runtime_complete(struct cli *cli, struct hw_err *e);
/* Set .socket from "unix:/path", "unix:///path" or "/path" in .runtime. */
int runtime_socket(struct cli *cli, struct hw_err *e);
int runtime_connect(struct cli *cli, struct hw_err *e); /* does nothing if already connected */
int64_t runtime_deadline(const struct cli *cli);	/* for a call that starts now */
/* Call a method of CRI. @ret_answer is the address of a pointer to the method's response type. */
int runtime_call(struct cli *cli, const char *method, const ProtobufCMessage *request,
		 void *ret_answer, struct hw_err *e); /* RuntimeService */
int image_call(struct cli *cli, const char *method, const ProtobufCMessage *request,
	       void *ret_answer, struct hw_err *e); /* ImageService */
/* Start a call of RuntimeService, whose answer *ret_stream receives. */
int runtime_begin(struct cli *cli, const char *method, const ProtobufCMessage *request,
		  struct rpc_stream **ret_stream, struct hw_err *e);
/* Call a method of any service. */
int service_call(struct cli *cli, const ProtobufCServiceDescriptor *service, const char *method,
		 const ProtobufCMessage *request, void *ret_answer, struct hw_err *e);
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

/* Get the status of a container. @word: the container as the user gave it, for errors.
 * Return: 0, and (*ret)->status is not NULL */
int container_status(struct cli *cli, const char *word, const char *id,
		     struct Runtime__V1__ContainerStatusResponse **ret, struct hw_err *e);

/* ---- find.c: pods and containers ------------------------------------------------ */

/* Find a pod or a container by ID, name or prefix of an ID, or as NAMESPACE/NAME or POD/NAME.
 * Return: 0; an error with STATUS_NOT_FOUND, or STATUS_INVALID_ARGUMENT if @word is ambiguous */
int find_pod(struct cli *cli, const char *word, char **ret_id, struct hw_err *e);
int find_container(struct cli *cli, const char *word, char **ret_id, struct hw_err *e);
/* What a word stands for. .id is freed by the caller. */
struct found {
	char *id;
	bool is_pod;
	bool is_lost; /* only hawser.v1 knows it */
};
/* Find a pod or a container; a name stands for a pod rather than for a container. */
int find_any(struct cli *cli, const char *word, struct found *ret, struct hw_err *e);
/* Return: a name that find_pod() accepts, unless it is ambiguous: NAME or NAMESPACE/NAME; freed by the caller */
char *pod_label(const struct Runtime__V1__PodSandbox *pod);
int list_pods(struct cli *cli, struct Runtime__V1__ListPodSandboxResponse **ret, struct hw_err *e);
int list_containers(struct cli *cli, struct Runtime__V1__ContainerFilter *filter,
		    struct Runtime__V1__ListContainersResponse **ret, struct hw_err *e);
/* @word: the container as the user gave it, for errors */
typedef int container_action(struct cli *cli, const char *word, const char *id, struct hw_err *e);
/* Find each container and call @act with it. If one fails, the others still follow. The words of those
 * that succeeded are printed; with --json, their IDs, in an object with the key @done. */
int each_container(struct cli *cli, char **words, const char *done, container_action *act,
		   struct hw_err *e);
int complete_pods(struct cli *cli, const char *word, struct hw_strings *words, struct hw_err *e);
int complete_containers(struct cli *cli, const char *word, struct hw_strings *words,
			struct hw_err *e);

/* ---- details.c: pods and containers that CRI does not list ---------------------- */

struct details {
	struct Hawser__V1__ListPodsResponse *pods;		   /* NULL: not supported */
	struct Hawser__V1__ListLostContainersResponse *containers; /* NULL: not supported */
};

/* Does nothing if the runtime does not support hawser.v1. */
int details_get(struct cli *cli, struct details *ret, struct hw_err *e);
void details_done(struct details *details);
bool details_is_lost(const struct Hawser__V1__PodDetails *pod);

AUTO_VALUE_DEFINE(details_done, struct details);

/* ---- start.c, stop.c: calls ------------------------------------------------------ */

int container_start(struct cli *cli, const char *word, const char *id, struct hw_err *e);
/* @grace: seconds until SIGKILL is sent */
int container_stop(struct cli *cli, const char *word, const char *id, int grace, struct hw_err *e);
/* Like container_stop(), but does not wait for the answer, which *ret_stream receives. */
int container_stop_begin(struct cli *cli, const char *id, int grace, struct rpc_stream **ret_stream,
			 struct hw_err *e);

/* ---- pull.c ---------------------------------------------------------------------- */

/* Pull an image without credentials, and show the progress. *ret_id may be another name of the image. */
int image_pull(struct cli *cli, const char *image, char **ret_id, struct hw_err *e);

/* ---- wait.c: wait for a container ------------------------------------------------ */

/* Called again and again while a container runs: waits for @ms, or less if something has happened.
 * Return: 0; 1: something has happened, and may happen again soon; a negative errno ends the wait */
typedef int container_pause(void *ctx, int ms, struct hw_err *e);
/* Wait until a container has ended. */
int container_wait(struct cli *cli, const char *word, const char *id, container_pause *pause,
		   void *ctx, int *ret_exit_code, struct hw_err *e);

/* ---- images.c -------------------------------------------------------------------- */

/* @name: NULL: all images */
int list_images(struct cli *cli, char *name, struct Runtime__V1__ListImagesResponse **ret,
		struct hw_err *e);

/* ---- images.c, network.c: completion ----------------------------------------- */

int complete_images(struct cli *cli, const char *word, struct hw_strings *words, struct hw_err *e);
int complete_networks(struct cli *cli, const char *word, struct hw_strings *words,
		      struct hw_err *e);

/* ---- output.c: errors and results -------------------------------------------- */

/* Set an error in the command line that the tables of options cannot find. Its exit status is USAGE_STATUS. */
#define usage_error(cli, e, ...)                                                                   \
	((cli)->error_source = ERROR_USAGE, err_text((e), -EINVAL, __VA_ARGS__))

void report_error(const struct cli *cli, const struct hw_err *e);
void report_usage_error(const struct cli *cli, const char *msg, const char *hint);

void print_json(struct value *v); /* frees @v */
/* Print a line with name and value; the value is cleaned. An empty value prints no line. */
void print_field(const char *name, const char *value);
void print_field_and_free(const char *name, char *value);   /* print_field(), then free(@value) */
void print_list(const char *name, char **values, size_t n); /* a line for each value */
/* Print an empty line and a line for each note, cleaned. Without notes, nothing. */
void print_notes(const struct hw_strings *notes);

#endif
