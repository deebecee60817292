/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/tuning/tuning.h - internal interfaces of the tuning plugin
 *
 * tuning.c  the CNI verbs
 * conf.c    collects the changes to make from all sources
 * backup.c  saves and restores the former values
 */
#ifndef PLUGINS_TUNING_TUNING_H
#define PLUGINS_TUNING_TUNING_H

#include <hawser/plugin.h>

#include "base/mem.h"

struct link;

/* ---- the changes: conf.c ---------------------------------------------------------------- */

/* The keys that the configuration and args.cni have in common. A member has_X: the key X is
 * present. */
struct tuning_keys {
	struct hw_map sysctl;
	char *mac;
	bool promisc, has_promisc;
	int mtu;
	bool has_mtu;
	bool allmulti, has_allmulti;
	int txqlen;
	bool has_txqlen;
};

struct tuning_conf {
	struct tuning_keys keys;
	char *data_dir;
	struct tuning_args {
		struct tuning_keys cni;
	} args;
	struct tuning_runtime {
		char *mac;
	} runtime;
};

extern const struct hw_field tuning_fields[];

struct tuning_sysctl {
	const char *key, *value; /* as in the configuration */
	char *path;		 /* relative to /proc/sys */
};

/* The changes to make, from all sources */
struct tuning {
	struct tuning_sysctl *sysctls;
	size_t n_sysctls;
	char *mac_text; /* NULL: unchanged */
	struct hw_mac mac;
	bool promisc; /* false: unchanged */
	int mtu;      /* 0: unchanged */
	bool has_allmulti, allmulti, has_txqlen;
	int txqlen;
};

/* Collect the changes from configuration, CNI_ARGS, runtimeConfig and args. @t borrows strings of
 * the configuration. Call tuning_done() also after an error. */
int tuning_init(struct tuning *t, const struct hw_call *call, struct hw_err *e);
void tuning_done(struct tuning *t);
/* Are there changes to the interface itself, not only to sysctls? */
bool tuning_has_attributes(const struct tuning *t);
/* Return: 0; -EPERM if there is an allowlist of the administrator and a sysctl does not match it */
int tuning_check_allowed(const struct tuning *t, struct hw_err *e);

AUTO_VALUE_DEFINE(tuning_done, struct tuning);

/* ---- the former values: backup.c ----------------------------------------------------------- */

/* Attributes of the interface before tuning, in the attachment record and in the backup file */
struct tuning_backup {
	char *mac; /* NULL: not saved */
	bool has_promisc, promisc;
	int mtu; /* 0: not saved */
	bool has_allmulti, allmulti;
	bool has_txqlen;
	int txqlen;
};

extern const struct hw_field tuning_backup_fields[];

/* Read the backup file that an ADD wrote. A malformed file is treated as empty.
 * Return: 1 if the file exists, 0 if not */
int tuning_backup_read(const struct hw_call *call, struct tuning_backup *ret, struct hw_err *e);
int tuning_backup_write(const struct hw_call *call, const struct tuning_backup *b,
			struct hw_err *e);
int tuning_backup_remove(const struct hw_call *call, struct hw_err *e);
/* Store in @b the current values of the attributes that @t changes. @b needs tuning_backup_done(). */
void tuning_backup_fill(struct tuning_backup *b, const struct tuning *t, const struct link *link);
void tuning_backup_done(struct tuning_backup *b);

/*
 * Restore sysctls and attributes. Tries all of them, and returns the first error. A namespace,
 * interface or sysctl that no longer exists, and a value that the kernel refuses, are not errors.
 * @sysctl: former values by path
 */
int tuning_restore(const char *netns, const char *ifname, const struct hw_map *sysctl,
		   const struct tuning_backup *b, struct hw_err *e);

AUTO_VALUE_DEFINE(tuning_backup_done, struct tuning_backup);

extern const struct hw_plugin tuning_plugin;

#endif
