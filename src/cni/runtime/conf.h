/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cni/runtime/conf.h - internals of network configurations
 *
 * The public functions are in <hawser/cni.h>. A struct hw_conf does not change
 * after its construction.
 */
#ifndef CNI_RUNTIME_CONF_H
#define CNI_RUNTIME_CONF_H

#include <hawser/cni.h>

#include "base/err.h"
#include "base/json/value.h"
#include "base/mem.h"
#include "base/str.h"

#define CONF_SIZE_MAX (1 << 20) /* maximum size of a file; most files have a few hundred bytes */

struct conf_plugin {
	char *type;
	char *version;			/* cniVersion of the plugin object; NULL: missing */
	char *name;			/* name in the plugin object; NULL: missing */
	struct hw_strings capabilities; /* capabilities whose value is true */
	struct value *object;		/* the plugin object with all its keys */
	char *bytes;			/* the plugin object as compact JSON */
};

struct hw_conf {
	bool list; /* false: a single plugin */
	char *name;
	char *version;
	char *file;
	char *bytes;
	bool disable_check, disable_gc, only_inlined;
	struct conf_plugin *plugins;
	size_t n_plugins;
};

/*
 * Construction. The conf_fill_ functions fill an empty struct. On failure they leave it partly
 * filled, with the name if the text contains one; hw_conf_free() accepts such a struct.
 */
struct hw_conf *conf_new(void);
/* Fills from a configuration list; does not load plugins from separate files. */
int conf_fill_list(struct hw_conf *conf, const char *json, size_t len, struct hw_err *e);
/* Fills from a single plugin's configuration. */
int conf_fill_plugin(struct hw_conf *conf, const char *json, size_t len, struct hw_err *e);
/* Appends a plugin; takes its own reference to @object. */
int conf_add_plugin(struct hw_conf *conf, struct value *object, struct hw_err *e);
/* Return: 0, or -EINVAL if the network has no plugins */
int conf_check_plugins(const struct hw_conf *conf, struct hw_err *e);
/* Return: a single plugin's configuration as a list with one plugin, in libcni's format; freed
 * by the caller */
char *conf_list_text(const struct hw_conf *plugin);

/* What to add to a plugin's configuration, in addition to the network's name and cniVersion. */
struct conf_request {
	const char *prev_result;     /* JSON; NULL: none */
	const char *capability_args; /* JSON object; the plugin gets the keys that it declares */
	bool with_valid;	     /* add the list of valid attachments, even if it is empty */
	const struct hw_valid *valid;
	size_t n_valid;
};
/*
 * Formats the configuration that plugin @i gets on its standard input.
 * @ret_json: freed by the caller
 */
int conf_request(const struct hw_conf *conf, size_t i, const struct conf_request *request,
		 char **ret_json, struct hw_err *e);

/*
 * Parses a JSON object that the caller of the library passed.
 * @what: description of the object, for error messages
 */
int conf_parse_object(const char *json, const char *what, struct value **ret_object,
		      struct hw_err *e);

AUTO_DEFINE(hw_conf_free, struct hw_conf);

#endif
