/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cni/plugin/skel.h - a plugin call as a function
 *
 * skel_call() implements the plugin side of the protocol: it takes the
 * environment and the input of a call, and returns the reply. program.c connects
 * it to the environment and the standard streams of the process; delegation to a
 * plugin of the same binary calls it directly. It does no I/O itself, except
 * records and locks for a plugin with .record.
 */
#ifndef CNI_PLUGIN_SKEL_H
#define CNI_PLUGIN_SKEL_H

#include <sys/stat.h>

#include <hawser/plugin.h>

#include "base/err.h"
#include "base/json/value.h"
#include "base/mem.h"
#include "cni/plugin/record.h"

/* Strings are borrowed; NULL means "". */
struct skel_request {
	const char *command, *container_id, *netns, *ifname, *args, *path, *netns_override;
	bool netns_is_checked; /* the caller has checked that netns is not our own namespace */
	const char *state_dir; /* NULL: state_dir_default() */
	int lock_timeout_ms;   /* 0: LOCK_TIMEOUT_MS */
	const char *input;
	size_t input_len;
	/* All plugins of this binary, NULL at the end. Delegating to one of them needs no exec. */
	const struct hw_plugin *const *siblings;
	const struct stat *self; /* the file of this binary; NULL: see program_find() */
};

struct skel_reply {
	char *output; /* for standard output; NULL: nothing */
	char *notice; /* for standard error; NULL: nothing */
	int status;   /* exit status */
};

/*
 * Runs one call of a plugin.
 * @ret_reply: always filled; skel_reply_done() frees its content
 *
 * Return: 0, or -1 if the reply is an error object; *e is then the same error
 */
int skel_call(const struct hw_plugin *plugin, const struct skel_request *request,
	      struct skel_reply *ret_reply, struct hw_err *e);
void skel_reply_done(struct skel_reply *reply);

/* Return: false if the call succeeds or fails before it needs its input */
bool skel_wants_input(const struct skel_request *request);

/* The spec versions that a plugin supports; NULL at the end. */
const char *const *skel_versions(const struct hw_plugin *plugin);
/* Return: the reply to VERSION, with its newline; freed by the caller */
char *skel_version_reply(const char *const *versions, size_t n);

/* A call in progress: the part that the plugin sees, and the library's own data. */
struct skel_frame {
	/* the first member, so that the plugin's pointer can be cast to the frame */
	struct hw_call call;
	const struct hw_plugin *plugin;
	const struct skel_request *request;
	char *state_dir; /* NULL if the plugin has no .record */
	struct value *config;
	struct hw_result *prev;
	struct record record; /* the record of this attachment; without one, .plugin is NULL */
	const char *entry;    /* see struct record; borrowed; NULL: "" */
	char config_hash[17]; /* "" until it is needed */
	bool record_removed;  /* by attach_remove_record() */
};

/* Begins a call; @plugin and @request must outlive the frame. */
void skel_frame_init(struct skel_frame *f, const struct hw_plugin *plugin,
		     const struct skel_request *request);
/* Parses the input: a JSON object with a valid network name and a version. */
int skel_frame_parse(struct skel_frame *f, struct hw_err *e);
/* Decodes the plugin's configuration, prevResult and, for GC, the valid attachments. */
int skel_frame_decode(struct skel_frame *f, struct hw_err *e);
void skel_frame_done(struct skel_frame *f);

AUTO_VALUE_DEFINE(skel_reply_done, struct skel_reply);
AUTO_VALUE_DEFINE(skel_frame_done, struct skel_frame);

#endif
