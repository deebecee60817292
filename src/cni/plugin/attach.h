/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cni/plugin/attach.h - a plugin's verbs with undo, attachment records and locks
 */
#ifndef CNI_PLUGIN_ATTACH_H
#define CNI_PLUGIN_ATTACH_H

#include "cni/plugin/record.h"
#include "cni/plugin/skel.h"

/*
 * Each function runs one verb of the plugin for a decoded call. The plugin must implement the verb;
 * for DEL and GC, .record is enough. Each returns 0 or a negative errno.
 *
 * attach_add() undoes a failed ADD by the plugin's del() and returns the error of the ADD.
 * attach_gc() deletes recorded attachments that are not valid, then calls the plugin's gc(); it
 * continues after an error and returns all errors, one per line.
 */
int attach_add(struct skel_frame *f, struct hw_err *e);
int attach_del(struct skel_frame *f, struct hw_err *e);
int attach_check(struct skel_frame *f, struct hw_err *e);
int attach_gc(struct skel_frame *f, struct hw_err *e);
int attach_status(struct skel_frame *f, struct hw_err *e);

/* Removes the record before DEL ends, for a plugin that must do so while it holds a lock of its own. */
int attach_remove_record(struct hw_call *call, struct hw_err *e);

/* For a DEL without a record: does another network have a record of the interface whose configuration is
 * the same, except for the name? Then the network was renamed after the ADD. */
bool attach_is_renamed(const struct hw_call *call);
/* Return: the namespace that the runtime sent, also if call->netns is "" because another network has
 * a record of the interface; "": none */
const char *attach_requested_netns(const struct hw_call *call);

/* Does the network namespace in which the recorded attachment was made still exist? Also true if that
 * cannot be found out. */
bool attach_has_netns(const struct record *r);

/*
 * For `hawser-plugin repair`: calls repair() for each recorded attachment of these plugins, the
 * newest last.
 * @plugins: NULL at the end
 * @errors:  all errors are added to it; an error does not stop the repair
 *
 * Return: the number of attachments repaired
 */
int attach_repair(const struct hw_plugin *const *plugins, const char *state_dir,
		  struct errors *errors);

#endif
