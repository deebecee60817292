/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cri/config/config.h - what hawser-cri is told: a file, and flags of the same names
 *
 * What:  read, check, print and compare configurations. One table, config_fields,
 *        says what there is; the flags, the help and the printed file come from it.
 * Rules: a configuration that was loaded is complete, checked and never changes.
 *        It is shared between threads by references.
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
#include "rpc/socket.h"

#define CONFIG_FILE "/etc/hawser/hawser.yaml"

struct config {
	unsigned int users;
	char *file; /* that was read; "": there was none */
	char *listen, *socket_owner;
	char *root, *state;
	char *cni_conf_dir, *cni_bin_dir, *cni_cache_dir, *cni_conf_template;
	struct hw_strings registry_mirror; /* HOST=URL */
	struct hw_strings plain_http;	   /* HOST */
	char *auth_file, *certs_dir;
	int64_t decompression_limit;
	int64_t disk_reserve;
	int pull_timeout; /* s without progress */
	bool keep_blobs;
	struct hw_strings pinned_images;
	char *cgroup_driver;
	char *stream_address;
	char *metrics_address;
	int long_calls;
	int drain_timeout; /* s */
	char *log_level, *log_format;
};

extern const struct hw_field config_fields[];

/* Where a configuration comes from. */
struct config_source {
	const char *file;
	bool must_exist;	   /* the file was asked for by name */
	const struct value *flags; /* an object: keys that win over the file's */
};

int config_load(const struct config_source *source, struct config **ret_config, struct hw_err *e);
/* @next where it differs in what a running daemon can change, @now in the rest. left() is told each
 * name of the rest that differs. */
struct config *config_merge(const struct config *now, const struct config *next,
			    void (*left)(void *ctx, const char *name), void *ctx);
struct config *config_ref(struct config *c);
void config_unref(struct config *c);

char *config_format(const struct config *c); /* YAML with comments, which reads back to the same */

/* ---- what the texts mean ---------------------------------------------------------- */

/* An address to listen on: a path, or a number and a port of the loopback interface. */
struct config_address {
	const char *path; /* in the text; NULL: ip and port */
	struct hw_ip ip;
	int port;
};

int config_address(const char *text, struct config_address *ret_address, struct hw_err *e);
int config_owner(const char *text, struct socket_owner *ret_owner, struct hw_err *e);

AUTO_DEFINE(config_unref, struct config);

#endif
