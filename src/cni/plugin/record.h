/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cni/plugin/record.h - attachment records: what a plugin creates for an attachment
 *
 * STATE/attachments/<plugin>/<hash of network>/<hash of container, interface and
 * entry>, a JSON object that is replaced atomically. It is written before the kernel is
 * changed and removed when DEL has succeeded. A damaged file is treated as
 * missing; DEL and GC remove it.
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
	char *entry; /* "", or .config_hash of a second plugin of the same type in the network's
		      * list */
	char *config_hash; /* of the plugin's own configuration; NULL in records of 0.1.0 */
	char *netns;
	char *netns_id;	      /* "DEVICE:INODE" of the namespace at ADD; "": it did not exist */
	int64_t netns_cookie; /* see netns-id.h; 0: unknown, as in records of 0.1.0 */
	bool netns_override;
	char *args;	  /* CNI_ARGS of the ADD */
	char *config;	  /* JSON object: standard input of the ADD */
	char *created;	  /* JSON object described by .created_fields of the plugin; NULL: none */
	char *boot;	  /* boot ID of the kernel; a record of another boot is stale */
	int64_t started;  /* CLOCK_BOOTTIME, ns */
	int64_t finished; /* 0: the ADD has not finished */
};

extern const struct hw_field record_fields[];

/*
 * Checks that no other user can write records, because DEL and GC delete the objects that
 * the records name.
 *
 * Return: 0, also if the directory does not exist; -EPERM if its owner is neither root nor the
 * current user, or all users can write to it
 */
int record_check_dir(const char *state_dir, struct hw_err *e);
/* Writes a record, replacing an existing one of the same attachment. */
int record_write(const char *state_dir, const struct record *r, struct hw_err *e);
/* Return: 1 if found; 0 if there is no record or it is damaged; or a negative errno */
int record_read(const char *state_dir, const char *plugin, const char *network,
		const char *container_id, const char *ifname, const char *entry,
		struct record *ret_record, struct hw_err *e);
/* Removes a record; succeeds if it does not exist. */
int record_remove(const char *state_dir, const char *plugin, const char *network,
		  const char *container_id, const char *ifname, const char *entry,
		  struct hw_err *e);
/*
 * Searches for records of the interface of a container in other networks.
 * @plugin: only records of this plugin; NULL: of any plugin
 */
bool record_in_other_network(const char *state_dir, const char *plugin, const char *network,
			     const char *container_id, const char *ifname);
/*
 * Calls @each for all records of a plugin and network. Errors are added to @errors and do not end the
 * walk.
 * @prune: remove damaged records and temporary files of writers that died; the caller must prevent
 *         writes during the walk
 */
void record_each_of_network(const char *state_dir, const char *plugin, const char *network,
			    bool prune,
			    int (*each)(void *ctx, const struct record *r, struct hw_err *e),
			    void *ctx, struct errors *errors);
/* Calls @each for the records of a plugin in all networks; removes nothing. A positive return value
 * of @each ends the walk. */
void record_each_of_plugin(const char *state_dir, const char *plugin,
			   int (*each)(void *ctx, const struct record *r, struct hw_err *e),
			   void *ctx, struct errors *errors);
/* Frees the content of a record. */
void record_done(struct record *r);

AUTO_VALUE_DEFINE(record_done, struct record);

#endif
