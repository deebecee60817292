/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cri/config/config.h - the configuration of hawser-cri: a YAML file, and flags with the same names
 *
 * What:  load, check, merge and print configurations. The table config_fields defines
 *        the keys; the flags, the help and the printed file are generated from it.
 * Rules: a loaded configuration is complete, checked and never changes. Threads share
 *        it (base/shared.h).
 *        An error names the file and the line, or the flag.
 */
#ifndef CRI_CONFIG_CONFIG_H
#define CRI_CONFIG_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hawser/field.h>

#include "base/err.h"
#include "base/json/value.h"
#include "base/mem.h"
#include "base/shared.h"
#include "oci/cgroup-parent.h"
#include "rpc/socket.h"

#define CONFIG_FILE "/etc/hawser/hawser.yaml"

struct config {
	struct shared shared;
	char *file; /* file that was read; "" if it does not exist */
	char *listen, *socket_owner;
	char *root, *state, *netns_dir;
	char *cni_conf_dir, *cni_bin_dir, *cni_cache_dir, *cni_conf_template;
	int network_timeout; /* seconds */
	bool default_network;
	struct hw_strings gc_networks;
	struct hw_strings runtime_handler; /* NAME=PROGRAM */
	struct hw_strings default_sysctls; /* NAME=VALUE */
	struct hw_strings default_capabilities;
	struct hw_strings registry_mirror; /* HOST=URL */
	struct hw_strings plain_http;	   /* HOST */
	char *auth_file, *certs_dir;
	uint32_t fetch_uid;
	uint32_t uid; /* fetch_uid, or if that is 0, an ID that was free when the file was loaded */
	int64_t decompression_limit;
	int64_t disk_reserve;
	int pull_timeout; /* seconds without progress */
	bool keep_blobs;
	struct hw_strings pinned_images;
	char *cgroup_driver;
	char *stream_address;
	char *metrics_address;
	int pulls_per_registry; /* see config_pulls_per_registry() */
	int long_calls;
	int drain_timeout; /* seconds */
	char *log_level, *log_format;
};

extern const struct hw_field config_fields[];

/* Where a configuration comes from. */
struct config_source {
	const char *file;
	bool must_exist;	   /* a missing file is an error */
	const struct value *flags; /* object whose keys override those of the file; or NULL */
};

/* The configuration is to be released with shared_unref(). */
int config_load(const struct config_source *source, struct config **ret_config, struct hw_err *e);
/* Merge configurations for a reload: keys that can change while the daemon runs get the value of
 * @next, all other keys keep the value of @now. Calls ignored() for each of the other keys whose
 * value in @next differs. Return: a configuration to be released with shared_unref() */
struct config *config_merge(const struct config *now, const struct config *next,
			    void (*ignored)(void *ctx, const char *name), void *ctx);

/* YAML with every key, its value and a comment; loading it gives the same configuration.
 * Return: text, to be freed by the caller */
char *config_format(const struct config *c);

/* ---- values ------------------------------------------------------------------------- */

/* An address to listen on: a unix socket, or a loopback address and port. */
struct config_address {
	const char *path; /* points into the parsed text; NULL: ip and port are used */
	struct hw_ip ip;
	int port;
};

/* Parses "unix:PATH" or "ADDRESS:PORT". */
int config_address(const char *text, struct config_address *ret_address, struct hw_err *e);
/* The driver of the key cgroup-driver; with "auto", that of this host. */
enum cgroup_driver config_cgroup_driver(const struct config *c);
/* The key default-sysctls as a map, to be freed with config_sysctls_done(). */
void config_sysctls(const struct config *c, struct hw_map *ret);
void config_sysctls_done(struct hw_map *map);

AUTO_VALUE_DEFINE(config_sysctls_done, struct hw_map);

unsigned config_pulls_per_registry(const struct config *c);
/* Parses "USER", "USER:GROUP" or "", names or numbers. If a group is given, its members may connect
 * too. */
int config_owner(const char *text, struct socket_owner *ret_owner, struct hw_err *e);

#endif
