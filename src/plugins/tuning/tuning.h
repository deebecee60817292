/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/tuning/tuning.h - what tuning is asked to change
 */
#ifndef PLUGINS_TUNING_TUNING_H
#define PLUGINS_TUNING_TUNING_H

#include <hawser/plugin.h>

#include "base/mem.h"

struct link;

/* The same keys stand in the configuration and in args.cni; has_: the key was there. */
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
	const char *key, *value;
	char *path; /* relative to /proc/sys */
};

/* What results from all sources. Strings are the configuration's. */
struct tuning {
	struct tuning_sysctl *sysctls;
	size_t n_sysctls;
	char *mac_text; /* NULL: none */
	struct hw_mac mac;
	bool promisc;
	int mtu; /* 0: none */
	bool has_allmulti, allmulti, has_txqlen;
	int txqlen;
};

/* Of a call's configuration, CNI_ARGS, runtimeConfig and args. */
int tuning_init(struct tuning *t, const struct hw_call *call, struct hw_err *e);
void tuning_done(struct tuning *t);
bool tuning_has_attributes(const struct tuning *t); /* more than sysctls */
/* Do all sysctls match the administrator's list, if there is one? */
int tuning_check_allowed(const struct tuning *t, struct hw_err *e);

AUTO_VALUE_DEFINE(tuning_done, struct tuning);

/* As upstream's file has them. */
struct saved {
	char *mac;
	bool has_promisc, promisc;
	int mtu;
	bool has_allmulti, allmulti;
	bool has_txqlen;
	int txqlen;
};

/* A file that is not there, or torn, says nothing. Return: 1 when there is one */
int saved_read(const struct hw_call *call, struct saved *ret, struct hw_err *e);
int saved_write(const struct hw_call *call, const struct saved *s, struct hw_err *e);
int saved_remove(const struct hw_call *call, struct hw_err *e);
/* What there is now of what will be changed, unless it says something already. */
void saved_fill(struct saved *s, const struct tuning *t, const struct link *link);
void saved_done(struct saved *s);

AUTO_VALUE_DEFINE(saved_done, struct saved);

/* @sysctl: former values by their path. What is gone, or what the kernel refuses, is no error. */
int tuning_restore(const struct hw_call *call, const struct hw_map *sysctl, const struct saved *s,
		   struct hw_err *e);

extern const struct hw_plugin tuning_plugin;

#endif
