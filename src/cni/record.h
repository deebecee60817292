/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cni/record.h - the attachment record: what a plugin is about to make
 *
 * STATE/attachments/<plugin>/<hash of network>/<hash of container and interface>,
 * a JSON object replaced atomically, written before the kernel is changed and
 * removed when DEL has succeeded. A torn file counts as absent for CHECK, and
 * is removed by GC.
 */
#ifndef CNI_RECORD_H
#define CNI_RECORD_H

#include <hawser/plugin.h>

#include "base/err.h"
#include "base/mem.h"

struct record {
	char *plugin;
	char *network;
	char *container_id;
	char *ifname;
	char *netns;
	char *args;	  /* CNI_ARGS of the ADD */
	char *config;	  /* JSON object: the ADD's standard input */
	char *made;	  /* JSON object of the plugin's own table; NULL: none */
	char *boot;	  /* the kernel's boot id; a record of another boot is stale */
	int64_t started;  /* CLOCK_BOOTTIME, ns */
	int64_t finished; /* 0: the ADD has not ended */
};

extern const struct hw_field record_fields[];

int record_write(const char *state_dir, const struct record *r, struct hw_err *e);
/* Return: 1 with a record, 0 when there is none */
int record_read(const char *state_dir, const char *plugin, const char *network,
		const char *container_id, const char *ifname, struct record *ret_record,
		struct hw_err *e);
int record_remove(const char *state_dir, const char *plugin, const char *network,
		  const char *container_id, const char *ifname, struct hw_err *e);
/* Calls back for each record of (plugin, network); a negative answer is remembered, the walk goes on. */
int record_each(const char *state_dir, const char *plugin, const char *network,
		int (*each)(void *ctx, const struct record *r, struct hw_err *e), void *ctx,
		struct hw_err *e);
void record_done(struct record *r);

AUTO_VALUE_DEFINE(record_done, struct record);

#endif
