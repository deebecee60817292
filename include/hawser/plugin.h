/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hawser/plugin.h - be a CNI plugin
 *
 * What:  a plugin is one const struct; hw_plugin_main() does the rest of the
 *        protocol: environment, versions, decoding, errors, printing.
 * How:   add() fills call->result or leaves it as a copy of prevResult; the
 *        library prints it in the version that was asked for, once everything
 *        has succeeded. A failed add() is undone by the plugin's own del(),
 *        which gets the same call (call->command is still "ADD").
 *        With .record set, every attachment is written down until del() has
 *        succeeded; GC is then "del() what is recorded and no longer valid",
 *        without a line in the plugin. The first time is before add() runs; with
 *        .made_fields it is when add() calls hw_record_save().
 * Rules: a verb that is NULL succeeds and prints nothing.
 *        On DEL a prevResult that cannot be read counts as none.
 *        GC gives del() the ADD's configuration and arguments, and the ADD's
 *        netns only while its path still leads to the same namespace, else "".
 *        An ADD on top of an unfinished record ends that one first. On top of
 *        a finished one call->earlier is what that ADD made: add() refuses, or
 *        takes over what is there; when it fails nothing is undone and the
 *        earlier record stays.
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

/* One call of a plugin. Only the library makes one, so it can grow, at its end. */
struct hw_call {
	const char *command; /* ADD DEL CHECK GC STATUS VERSION */
	const char *container_id;
	const char *netns; /* "" when the runtime gave none */
	const char *ifname;
	const char *args; /* CNI_ARGS */
	const char *path; /* CNI_PATH */
	bool netns_override;

	const char *input; /* the configuration as it came */
	size_t input_len;
	const char *network; /* its name */
	const char *version; /* its cniVersion, "0.1.0" when absent */
	const void *conf;    /* decoded by .fields; NULL without */

	const struct hw_result *prev; /* NULL: none */
	struct hw_result *result;     /* ADD: what will be printed */

	const struct hw_valid *valid; /* GC: attachments to keep; NULL: the runtime named none */
	size_t n_valid;

	void *made;	     /* of .made_fields; see hw_record_save() */
	const void *earlier; /* ADD: made of an earlier ADD of this attachment; NULL: none */

	char *reply;	 /* printed verbatim instead of the result; malloc()ed */
	int exit_status; /* after a success, when not 0 */

	bool recorded; /* there is a record of this attachment, and made is what it says */
};

/* Grows at its end: what a plugin that was built earlier does not have is 0. */
struct hw_plugin {
	size_t size; /* sizeof(struct hw_plugin) */
	const char *name;
	const char *summary; /* one line for people */
	int (*add)(struct hw_call *call, struct hw_err *e);
	int (*del)(struct hw_call *call, struct hw_err *e);
	int (*check)(struct hw_call *call, struct hw_err *e);
	int (*gc)(struct hw_call *call, struct hw_err *e); /* after what .record does for it */
	int (*status)(struct hw_call *call, struct hw_err *e);
	int (*version)(struct hw_call *call,
		       struct hw_err *e);   /* sets reply; NULL: the list below */
	const char *const *versions;	    /* NULL at the end; NULL: all of hw_versions() */
	const struct hw_field *fields;	    /* its configuration */
	size_t conf_size;		    /* sizeof the struct they describe */
	bool record;			    /* keep attachment records */
	const struct hw_field *made_fields; /* what a record says beyond the call itself */
	size_t made_size;
	/* Puts back what a record says and somebody else has removed: `hawser-plugin repair`.
	 * As del(), it works from made alone. */
	int (*repair)(struct hw_call *call, struct hw_err *e);
};

/**
 * hw_plugin_main() - a whole plugin program
 * @argc:   of main()
 * @argv:   of main()
 * @plugin: what it is and does; a size that is not set, or members that this library does not have,
 *          are an error
 *
 * Return: the exit status
 */
HW_PUBLIC int hw_plugin_main(int argc, char **argv, const struct hw_plugin *plugin);

/* ---- arguments ------------------------------------------------------------ */

/**
 * hw_args_parse() - decode CNI_ARGS as Go's plugins do
 * @args:       the text, "K=V;K=V"; NULL or "": none
 * @keys:       the keys that are known, NULL at the end (case counts)
 * @ret_values: one per key, NULL where absent; free with hw_strings_free()
 *
 * Unknown keys are an error unless IgnoreUnknown=1. A key given twice has its
 * last value.
 */
HW_PUBLIC int hw_args_parse(const char *args, const char *const *keys,
			    struct hw_strings *ret_values, struct hw_err *e);

/* ---- delegation ------------------------------------------------------------ */

/**
 * hw_delegate() - run another plugin with this call's environment and input
 * @plugin:     its name, looked up in CNI_PATH; one that is this very file is
 *              called without exec, with the same answer
 * @command:    ADD, DEL, CHECK, GC or STATUS
 * @input:      NULL: the call's own
 * @ret_result: ADD only; else NULL
 *
 * Return: 0, or the plugin's own error with its code and details
 */
HW_PUBLIC int hw_delegate(struct hw_call *call, const char *plugin, const char *command,
			  const char *input, struct hw_result **ret_result, struct hw_err *e);

/* ---- the attachment record --------------------------------------------------- */

/**
 * hw_record_save() - write call->made down, before the kernel is changed
 *
 * For ADD. The record is replaced atomically. On DEL and CHECK call->made holds
 * what was last saved, or is zeroed where there is no record; call->recorded tells.
 */
HW_PUBLIC int hw_record_save(struct hw_call *call, struct hw_err *e);

#ifdef __cplusplus
}
#endif

#endif
