/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hawser/plugin.h - write a CNI plugin
 *
 * What:  a plugin is one const struct. hw_plugin_main() implements the protocol:
 *        environment, versions, decoding, errors, output.
 * How:   call->result starts as a copy of prevResult; add() extends it. The
 *        library prints the result in the configuration's version after
 *        everything has succeeded. If add() fails, the library calls the
 *        plugin's del() with the same call (call->command is still "ADD").
 *        With .record, the library keeps a record of each attachment until del()
 *        has succeeded. GC calls del() for each recorded attachment that is not
 *        valid; the plugin needs no code for GC. The record is created before
 *        add() runs or, with .created_fields, when add() calls hw_record_save().
 * Rules: a command whose function is NULL succeeds and prints nothing.
 *        On DEL, a prevResult that cannot be parsed is treated as missing.
 *        When GC calls del(), the call has the configuration and arguments of
 *        the ADD. Its netns is that of the ADD if the path still leads to the
 *        same namespace, else "".
 *        If ADD finds a finished record of the same attachment, it fails with
 *        HW_CNI_ALREADY_ATTACHED and changes nothing; add() is not called. If that
 *        record is unfinished, or its namespace no longer exists, ADD first deletes
 *        that attachment. ADDs and DELs of one attachment run one after the other.
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

/* One call of a plugin. Only the library creates this struct, so later versions may add members at
 * its end. */
struct hw_call {
	const char *command; /* ADD DEL CHECK GC STATUS VERSION */
	const char *container_id;
	const char *netns; /* "": the runtime did not set CNI_NETNS */
	const char *ifname;
	const char *args; /* CNI_ARGS */
	const char *path; /* CNI_PATH */
	bool netns_override;

	const char *input; /* the configuration, unchanged */
	size_t input_len;
	const char *network; /* name of the network */
	const char *version; /* cniVersion of the configuration, "0.1.0" if missing */
	const void *conf;    /* decoded by .fields; NULL: the plugin has no .fields */

	const struct hw_result *prev; /* prevResult; NULL: none */
	struct hw_result *result;     /* ADD: the result to print */

	const struct hw_valid *valid; /* GC: attachments to keep; NULL: the runtime sent no list */
	size_t n_valid;

	void *created; /* described by .created_fields; see hw_record_save() */

	char *reply;	 /* printed unchanged instead of the result; malloc()ed */
	int exit_status; /* exit status of a successful call */

	bool recorded; /* a record of this attachment exists; .created has its contents */
};

/* Later versions may add members at the end. A member that an older plugin lacks is read as 0. */
struct hw_plugin {
	size_t size; /* sizeof(struct hw_plugin) */
	const char *name;
	const char *summary; /* one line for --help */
	int (*add)(struct hw_call *call, struct hw_err *e);
	int (*del)(struct hw_call *call, struct hw_err *e);
	int (*check)(struct hw_call *call, struct hw_err *e);
	/* Called after GC has deleted the recorded attachments that are not valid. */
	int (*gc)(struct hw_call *call, struct hw_err *e);
	int (*status)(struct hw_call *call, struct hw_err *e);
	/* Sets call->reply. NULL: the library prints .versions. */
	int (*version)(struct hw_call *call, struct hw_err *e);
	const char *const *versions;	       /* NULL at the end; NULL: all of hw_versions() */
	const struct hw_field *fields;	       /* describe the configuration */
	size_t conf_size;		       /* size of the struct that .fields describe */
	bool record;			       /* keep attachment records */
	const struct hw_field *created_fields; /* describe what the plugin adds to a record */
	size_t created_size;
	/* For `hawser-plugin repair`: restores the objects that the record names, if another
	 * program has removed them. Like del(), it must work with call->created alone. */
	int (*repair)(struct hw_call *call, struct hw_err *e);
};

/**
 * hw_plugin_main() - main() of a plugin
 * @argc:   the argument of main()
 * @argv:   the argument of main()
 * @plugin: the plugin. An unset .size, and members that this library does not
 *          support, are reported as errors.
 *
 * Return: the exit status
 */
HW_PUBLIC int hw_plugin_main(int argc, char **argv, const struct hw_plugin *plugin);

/* ---- arguments ------------------------------------------------------------ */

/**
 * hw_args_parse() - parse CNI_ARGS, like upstream's plugins
 * @args:       the text, "K=V;K=V"; NULL or "": none
 * @keys:       the known keys, case-sensitive, NULL at the end
 * @ret_values: one per key, NULL if missing; freed with hw_strings_free()
 *
 * Unknown keys are an error unless IgnoreUnknown=1. If a key occurs more than
 * once, the last value is used.
 */
HW_PUBLIC int hw_args_parse(const char *args, const char *const *keys,
			    struct hw_strings *ret_values, struct hw_err *e);

/* ---- delegation ------------------------------------------------------------ */

/**
 * hw_delegate() - run another plugin with this call's environment and input
 * @plugin:     name of the plugin, searched in CNI_PATH. A plugin that is part of the
 *              running binary is called without exec, with the same result.
 * @command:    ADD, DEL, CHECK, GC or STATUS
 * @input:      configuration for the plugin; NULL: the input of @call
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
 * add() calls this before it changes the kernel's state. The record is replaced
 * atomically. On DEL and CHECK, call->created has the contents that were saved
 * last. If call->recorded is false, there is no record and call->created is
 * zeroed.
 *
 * Return: 0, or a negative errno; -EINVAL if the call has no record, for example
 * because the plugin has no .record
 */
HW_PUBLIC int hw_record_save(struct hw_call *call, struct hw_err *e);

#ifdef __cplusplus
}
#endif

#endif
