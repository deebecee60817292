/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cni/plugin/skel.h - a plugin call as a function: environment and bytes in, answer out
 *
 * skel_call() is the whole plugin side of the protocol. program.c puts it
 * between getenv(), standard input and standard output; delegation to a plugin
 * of the same binary calls it directly. It reads and writes nothing itself
 * except, for a plugin with .record, records and locks.
 */
#ifndef CNI_PLUGIN_SKEL_H
#define CNI_PLUGIN_SKEL_H

#include <hawser/plugin.h>

#include "base/err.h"
#include "base/json/value.h"
#include "base/mem.h"
#include "cni/plugin/record.h"

/* Strings are borrowed; NULL is as good as "". */
struct skel_request {
	const char *command, *container_id, *netns, *ifname, *args, *path, *netns_override;
	bool netns_is_checked; /* it is not our own */
	const char *state_dir; /* NULL: lock_state_dir() */
	int lock_timeout_ms;   /* 0: LOCK_TIMEOUT_MS */
	const char *input;
	size_t input_len;
	/* The plugins of this binary, NULL at the end: delegation looks here before it execs. */
	const struct hw_plugin *const *siblings;
};

struct skel_reply {
	char *output; /* for standard output; NULL: nothing */
	char *notice; /* for standard error; NULL: nothing */
	int status;   /* exit status */
};

/* Return: 0, or -1 when the reply carries an error object; *e is then that error too */
int skel_call(const struct hw_plugin *plugin, const struct skel_request *request,
	      struct skel_reply *ret_reply, struct hw_err *e);
void skel_reply_done(struct skel_reply *reply);

/* False when the call is over, one way or the other, before its input is looked at. */
bool skel_wants_input(const struct skel_request *request);

/* The versions that a plugin supports; NULL at the end. */
const char *const *skel_versions(const struct hw_plugin *plugin);
/* VERSION's answer, with its newline */
char *skel_version_reply(const char *const *versions, size_t n);

/* A call on its way: what the plugin sees, and what stands behind it. */
struct skel_frame {
	struct hw_call call; /* the first member: the plugin's pointer is ours */
	const struct hw_plugin *plugin;
	const struct skel_request *request;
	char *state_dir; /* NULL without .record */
	struct value *config;
	struct hw_result *prev;
	struct record record; /* as on disk; no plugin in it: none */
	void *earlier;	      /* of .made_fields */
};

void skel_frame_init(struct skel_frame *f, const struct hw_plugin *plugin,
		     const struct skel_request *request);
/* The configuration: JSON, name and version; then what the plugin itself wants of it. */
int skel_frame_parse(struct skel_frame *f, struct hw_err *e);
int skel_frame_decode(struct skel_frame *f, struct hw_err *e);
void skel_frame_done(struct skel_frame *f);

AUTO_VALUE_DEFINE(skel_reply_done, struct skel_reply);
AUTO_VALUE_DEFINE(skel_frame_done, struct skel_frame);

#endif
