/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cni/runtime/conf.h - a network's configuration from the inside
 *
 * Public functions are in <hawser/cni.h>. A struct hw_conf never changes once
 * it has been made.
 */
#ifndef CNI_RUNTIME_CONF_H
#define CNI_RUNTIME_CONF_H

#include <hawser/cni.h>

#include "base/err.h"
#include "base/json/value.h"
#include "base/mem.h"
#include "base/str.h"

#define CONF_SIZE_MAX (1 << 20) /* of a file; a configuration is a few hundred bytes */

struct conf_plugin {
	char *type;
	char *version;			/* its own cniVersion; NULL: none */
	char *name;			/* of the plugin object itself; NULL: none */
	struct hw_strings capabilities; /* those that are true */
	struct value *object;		/* as it was written */
	char *bytes;			/* the same as compact text */
};

struct hw_conf {
	bool list; /* else a single plugin */
	char *name;
	char *version;
	char *file;
	char *bytes;
	bool disable_check, disable_gc, only_inlined;
	struct conf_plugin *plugins;
	size_t n_plugins;
};

/* How a configuration is made; on failure what is filled so far stays, the name foremost. */
struct hw_conf *conf_new(void);
int conf_fill_list(struct hw_conf *conf, const char *json, size_t len, struct hw_err *e);
int conf_fill_plugin(struct hw_conf *conf, const char *json, size_t len, struct hw_err *e);
int conf_add_plugin(struct hw_conf *conf, struct value *object, struct hw_err *e);
int conf_check_plugins(const struct hw_conf *conf, struct hw_err *e);
char *conf_list_text(const struct hw_conf *plugin);

/*
 * The configuration that plugin i gets on its standard input: its object with
 * name and cniVersion set, prevResult when not NULL (JSON text), runtimeConfig
 * from the capability arguments that it declares, valid attachments when
 * @with_valid.
 */
struct conf_request {
	const char *prev_result;
	const char *capability_args;
	bool with_valid;
	const struct hw_valid *valid;
	size_t n_valid;
};
int conf_request(const struct hw_conf *conf, size_t i, const struct conf_request *request,
		 char **ret_json, struct hw_err *e);

int conf_parse_object(const char *json, const char *what, struct value **ret_object,
		      struct hw_err *e);

AUTO_DEFINE(hw_conf_free, struct hw_conf);

#endif
