/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cni/plugin/record.h - the attachment record: what a plugin is about to make
 *
 * STATE/attachments/<plugin>/<hash of network>/<hash of container and interface>,
 * a JSON object replaced atomically, written before the kernel is changed and
 * removed when DEL has succeeded. A torn file counts as absent, and is removed
 * by DEL and GC.
 */
#ifndef CNI_PLUGIN_RECORD_H
#define CNI_PLUGIN_RECORD_H

#include <hawser/plugin.h>

#include "base/err.h"
#include "base/mem.h"

struct record {
	char *plugin;
	char *network;
	char *container_id;
	char *ifname;
	char *netns;
	char *netns_id; /* "DEVICE:INODE" that the path led to; "": nowhere */
	bool netns_override;
	char *args;	  /* CNI_ARGS of the ADD */
	char *config;	  /* JSON object: the ADD's standard input */
	char *made;	  /* JSON object of the plugin's own table; NULL: none */
	char *boot;	  /* the kernel's boot id; a record of another boot is stale */
	int64_t started;  /* CLOCK_BOOTTIME, ns */
	int64_t finished; /* 0: the ADD has not ended */
	int64_t earlier;  /* when that ended on top of which this ADD has not; 0: of none */
};

extern const struct hw_field record_fields[];

/* -EPERM where others may write: what a record says is removed by DEL and GC. */
int record_check_dir(const char *state_dir, struct hw_err *e);
/* "" when the kernel does not say */
const char *record_boot_id(void);
int record_write(const char *state_dir, const struct record *r, struct hw_err *e);
/* Return: 1 with a record, 0 when there is none */
int record_read(const char *state_dir, const char *plugin, const char *network,
		const char *container_id, const char *ifname, struct record *ret_record,
		struct hw_err *e);
int record_remove(const char *state_dir, const char *plugin, const char *network,
		  const char *container_id, const char *ifname, struct hw_err *e);
/* Has an attachment to another network that interface of the container? */
bool record_is_elsewhere(const char *state_dir, const char *network, const char *container_id,
			 const char *ifname);
/*
 * Calls back for each record of (plugin, network); an error is added to @errors and does not end the
 * walk. With @prune, which needs every writer shut out, files that are no record (torn ones, and what
 * a killed writer left) are removed.
 */
void record_each(const char *state_dir, const char *plugin, const char *network, bool prune,
		 int (*each)(void *ctx, const struct record *r, struct hw_err *e), void *ctx,
		 struct errors *errors);
/* The same for all networks, without pruning, and until a callback returns a positive number. */
void record_each_of(const char *state_dir, const char *plugin,
		    int (*each)(void *ctx, const struct record *r, struct hw_err *e), void *ctx,
		    struct errors *errors);
void record_done(struct record *r);

AUTO_VALUE_DEFINE(record_done, struct record);

#endif
