/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hawser/plugin.h - write a CNI plugin
 *
 * What:  a plugin is one const struct. hw_plugin_main() does the rest of the
 *        protocol: environment, versions, decoding, errors, output.
 * How:   call->result starts as a copy of prevResult; add() extends it. The
 *        library prints it in the configuration's version after everything has
 *        succeeded. A failed add() is undone by the plugin's own del(), which
 *        gets the same call (call->command is still "ADD").
 *        With .record, each attachment has a record until del() has succeeded,
 *        and GC calls del() for each recorded attachment that is not valid; the
 *        plugin needs no code for it. The record is first written before add()
 *        runs; with .created_fields, when add() calls hw_record_save().
 * Rules: a verb that is NULL succeeds and prints nothing.
 *        On DEL, a prevResult that cannot be parsed counts as missing.
 *        For GC, del() gets the configuration and arguments of the ADD, and its
 *        netns if the path still leads to the same namespace, else "".
 *        An ADD that finds an unfinished record of the same attachment deletes
 *        that one first. If it finds a finished one, call->earlier is what that
 *        ADD created: add() refuses, or takes it over. If it fails, nothing is
 *        undone and the earlier record stays.
 *
 *	const struct hw_plugin hello = {
 *		.size = sizeof(struct hw_plugin),
 *		.name = "hello", .summary = "says hello",
 *		.add = hello_add, .del = hello_del,
 *		.fields = hello_fields, .conf_size = sizeof(struct hello_conf),
 *	};
 *	int main(int argc, char **argv) { return hw_plugin_main(argc, argv, &hello); }
 */
#ifndef HAWSER_PLUGIN_H
#define HAWSER_PLUGIN_H

#include <hawser/cni.h>
#include <hawser/err.h>
#include <hawser/field.h>
#include <hawser/result.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One call of a plugin. Only the library creates one, so it can grow at its end. */
struct hw_call {
	const char *command; /* ADD DEL CHECK GC STATUS VERSION */
	const char *container_id;
	const char *netns; /* "": the runtime gave none */
	const char *ifname;
	const char *args; /* CNI_ARGS */
	const char *path; /* CNI_PATH */
	bool netns_override;

	const char *input; /* the configuration, unchanged */
	size_t input_len;
	const char *network; /* its name */
	const char *version; /* its cniVersion, "0.1.0" if missing */
	const void *conf;    /* decoded by .fields; NULL: the plugin has none */

	const struct hw_result *prev; /* NULL: none */
	struct hw_result *result;     /* ADD: the result to print */

	const struct hw_valid *valid; /* GC: attachments to keep; NULL: the runtime sent no list */
	size_t n_valid;

	void *created; /* described by .created_fields; see hw_record_save() */
	const void *
		earlier; /* ADD: what an earlier ADD of this attachment created; NULL: no earlier ADD */

	char *reply;	 /* printed unchanged instead of the result; malloc()ed */
	int exit_status; /* of a successful call */

	bool recorded; /* there is a record of this attachment, and created is its content */
};

/* Grows at its end; members that an older plugin does not have are 0. */
struct hw_plugin {
	size_t size; /* sizeof(struct hw_plugin) */
	const char *name;
	const char *summary; /* one line for --help */
	int (*add)(struct hw_call *call, struct hw_err *e);
	int (*del)(struct hw_call *call, struct hw_err *e);
	int (*check)(struct hw_call *call, struct hw_err *e);
	int (*gc)(struct hw_call *call, struct hw_err *e); /* called after the GC of .record */
	int (*status)(struct hw_call *call, struct hw_err *e);
	int (*version)(struct hw_call *call,
		       struct hw_err *e);      /* sets reply; NULL: prints .versions */
	const char *const *versions;	       /* NULL at the end; NULL: all of hw_versions() */
	const struct hw_field *fields;	       /* describe its configuration */
	size_t conf_size;		       /* size of the struct that they describe */
	bool record;			       /* keep attachment records */
	const struct hw_field *created_fields; /* describe what the plugin adds to a record */
	size_t created_size;
	/* Restores what a record names and another program has removed: `hawser-plugin repair`.
	 * Like del(), it must work with call->created alone. */
	int (*repair)(struct hw_call *call, struct hw_err *e);
};

/**
 * hw_plugin_main() - main() of a plugin
 * @argc:   of main()
 * @argv:   of main()
 * @plugin: the plugin; a .size that is not set, or members that this library does
 *          not support, are reported as an error
 *
 * Return: the exit status
 */
HW_PUBLIC int hw_plugin_main(int argc, char **argv, const struct hw_plugin *plugin);

/* ---- arguments ------------------------------------------------------------ */

/**
 * hw_args_parse() - parse CNI_ARGS as upstream's plugins do
 * @args:       the text, "K=V;K=V"; NULL or "": none
 * @keys:       the known keys, case-sensitive, NULL at the end
 * @ret_values: one per key, NULL if missing; freed with hw_strings_free()
 *
 * Unknown keys are an error unless IgnoreUnknown=1. Of duplicate keys, the last
 * one counts.
 */
HW_PUBLIC int hw_args_parse(const char *args, const char *const *keys,
			    struct hw_strings *ret_values, struct hw_err *e);

/* ---- delegation ------------------------------------------------------------ */

/**
 * hw_delegate() - run another plugin with this call's environment and input
 * @plugin:     its name, searched in CNI_PATH; a plugin of the running binary is
 *              called without exec, with the same result
 * @command:    ADD, DEL, CHECK, GC or STATUS
 * @input:      configuration for the plugin; NULL: the call's own
 * @ret_result: for ADD only, else NULL
 *
 * Return: 0, or the plugin's error with its code and details
 */
HW_PUBLIC int hw_delegate(struct hw_call *call, const char *plugin, const char *command,
			  const char *input, struct hw_result **ret_result, struct hw_err *e);

/* ---- attachment records ------------------------------------------------------- */

/**
 * hw_record_save() - write call->created to the attachment record
 *
 * For ADD, before the kernel is changed. The record is replaced atomically. On
 * DEL and CHECK call->created is what was last saved; if call->recorded is false
 * there is no record, and it is zero.
 *
 * Return: 0, or a negative errno; -EINVAL if the call has no record, for example
 * because the plugin has no .record
 */
HW_PUBLIC int hw_record_save(struct hw_call *call, struct hw_err *e);

#ifdef __cplusplus
}
#endif

#endif
