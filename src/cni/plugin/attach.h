/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cni/plugin/attach.h - a plugin's verbs with what stands around them: undo, records, locks
 *
 * Each takes a decoded call whose verb the plugin has (DEL, GC: or keeps records).
 */
#ifndef CNI_PLUGIN_ATTACH_H
#define CNI_PLUGIN_ATTACH_H

#include "cni/plugin/skel.h"

int attach_add(struct skel_frame *f, struct hw_err *e);
int attach_del(struct skel_frame *f, struct hw_err *e);
int attach_check(struct skel_frame *f, struct hw_err *e);
int attach_gc(struct skel_frame *f, struct hw_err *e);
int attach_status(struct skel_frame *f, struct hw_err *e);

/* For people: what all attachments have in the kernel is put back, the newest last. */
int attach_repair(const struct hw_plugin *const *plugins, const char *state_dir,
		  struct errors *errors);

#endif
