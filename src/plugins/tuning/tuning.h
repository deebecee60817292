/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/tuning/tuning.h - the parts of the tuning plugin: tuning.c (verbs), conf.c (what to
 * change), backup.c (the former values)
 */
#ifndef PLUGINS_TUNING_TUNING_H
#define PLUGINS_TUNING_TUNING_H

#include <hawser/plugin.h>

#include "base/mem.h"

struct link;

/* ---- what to change: conf.c ------------------------------------------------------------- */

/* The keys that both the configuration and args.cni have; has_: the key is present. */
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
	const char *key, *value; /* of the configuration */
	char *path;		 /* relative to /proc/sys */
};

/* The changes, from all sources */
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

/* Collect the changes from configuration, CNI_ARGS, runtimeConfig and args. @t borrows strings of the
 * configuration; the caller calls tuning_done() also after a failure. */
int tuning_init(struct tuning *t, const struct hw_call *call, struct hw_err *e);
void tuning_done(struct tuning *t);
/* Is the interface itself changed, not only sysctls? */
bool tuning_has_attributes(const struct tuning *t);
/* -EPERM if a sysctl does not match the administrator's allowlist; without one all are allowed */
int tuning_check_allowed(const struct tuning *t, struct hw_err *e);

AUTO_VALUE_DEFINE(tuning_done, struct tuning);

/* ---- the former values: backup.c ----------------------------------------------------------- */

/* Attributes of the interface before tuning, as in upstream's file */
struct tuning_backup {
	char *mac; /* NULL: not saved */
	bool has_promisc, promisc;
	int mtu; /* 0: not saved */
	bool has_allmulti, allmulti;
	bool has_txqlen;
	int txqlen;
};

/* Read the file of an earlier ADD; a malformed one counts as empty. Return: 1, or 0 if missing */
int tuning_backup_read(const struct hw_call *call, struct tuning_backup *ret, struct hw_err *e);
int tuning_backup_write(const struct hw_call *call, const struct tuning_backup *b,
			struct hw_err *e);
int tuning_backup_remove(const struct hw_call *call, struct hw_err *e);
/* Take the current values of the attributes that will be changed, unless @b already has them. */
void tuning_backup_fill(struct tuning_backup *b, const struct tuning *t, const struct link *link);
void tuning_backup_done(struct tuning_backup *b);

/*
 * Restore sysctls and attributes. Tries all of them, and returns the first error. A namespace,
 * interface or sysctl that no longer exists, and a value that the kernel refuses, are not errors.
 * @sysctl: former values by path
 */
int tuning_restore(const struct hw_call *call, const struct hw_map *sysctl,
		   const struct tuning_backup *b, struct hw_err *e);

AUTO_VALUE_DEFINE(tuning_backup_done, struct tuning_backup);

extern const struct hw_plugin tuning_plugin;

#endif
