/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hawser/plugin.h - write a CNI plugin
 *
 * What:  a plugin is one const struct; hw_plugin_main() does the rest of the
 *        protocol: environment, versions, decoding, errors, output.
 * How:   add() fills call->result, or leaves it as a copy of prevResult; after
 *        success the library prints it in the requested version. A failed add() is
 *        undone by the plugin's own del(), which gets the same call (call->command
 *        is still "ADD").
 *        With .record set, the library keeps a record of every attachment until
 *        del() has succeeded. GC then calls del() for each recorded attachment that
 *        is no longer valid; the plugin needs no code for it. The record is first
 *        written before add() runs, or, with .made_fields, when add() calls
 *        hw_record_save().
 * Rules: a verb whose function is NULL succeeds and prints nothing.
 *        On DEL a prevResult that cannot be parsed is ignored.
 *        GC gives del() the configuration and arguments of the ADD, and its netns
 *        only if the path still refers to the same namespace, else "".
 *        An ADD of an attachment with an unfinished record first deletes that
 *        attachment. If the record is finished, call->earlier is what that ADD made:
 *        add() either fails or takes over the existing objects. If it fails, nothing
 *        is undone and the earlier record is kept.
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

/* One call of a plugin. Only the library creates one; later versions may add members at the end. */
struct hw_call {
	const char *command; /* ADD DEL CHECK GC STATUS VERSION */
	const char *container_id;
	const char *netns; /* "" if the runtime gave none */
	const char *ifname;
	const char *args; /* CNI_ARGS */
	const char *path; /* CNI_PATH */
	bool netns_override;

	const char *input; /* the configuration, unchanged */
	size_t input_len;
	const char *network; /* name of the network */
	const char *version; /* its cniVersion; "0.1.0" if absent */
	const void *conf;    /* decoded by .fields; NULL without .fields */

	const struct hw_result *prev; /* NULL: none */
	struct hw_result *result;     /* ADD: the result to print */

	const struct hw_valid *valid; /* GC: attachments to keep; NULL: the runtime gave no list */
	size_t n_valid;

	void *made;	     /* described by .made_fields; see hw_record_save() */
	const void *earlier; /* ADD: what an earlier ADD of this attachment made; NULL: none */

	char *reply;	 /* printed unchanged instead of the result; malloc()ed */
	int exit_status; /* of the program after a success */

	bool recorded; /* this attachment has a record, and made was read from it */
};

/* Later versions add members at the end; members that a plugin was built without are 0. */
struct hw_plugin {
	size_t size; /* sizeof(struct hw_plugin) */
	const char *name;
	const char *summary; /* one line for people */
	int (*add)(struct hw_call *call, struct hw_err *e);
	int (*del)(struct hw_call *call, struct hw_err *e);
	int (*check)(struct hw_call *call, struct hw_err *e);
	int (*gc)(struct hw_call *call, struct hw_err *e); /* called after the GC of .record */
	int (*status)(struct hw_call *call, struct hw_err *e);
	int (*version)(struct hw_call *call,
		       struct hw_err *e);   /* sets reply; NULL: prints .versions */
	const char *const *versions;	    /* NULL at the end; NULL: all of hw_versions() */
	const struct hw_field *fields;	    /* of the configuration */
	size_t conf_size;		    /* sizeof the struct that .fields describes */
	bool record;			    /* keep attachment records */
	const struct hw_field *made_fields; /* of the record, in addition to the call itself */
	size_t made_size;		    /* sizeof the struct that .made_fields describes */
	/* Creates again the recorded objects that were removed by another program, for
	 * `hawser-plugin repair`. It uses only call->made, as del() does. */
	int (*repair)(struct hw_call *call, struct hw_err *e);
};

/**
 * hw_plugin_main() - run a plugin program: all of its main()
 * @argc:   of main()
 * @argv:   of main()
 * @plugin: the plugin; it is an error if its size is not set, or if it uses members that this
 *          library does not have
 *
 * Return: the exit status
 */
HW_PUBLIC int hw_plugin_main(int argc, char **argv, const struct hw_plugin *plugin);

/* ---- arguments ------------------------------------------------------------ */

/**
 * hw_args_parse() - parse CNI_ARGS as upstream plugins do
 * @args:       the text, "K=V;K=V"; NULL or "": none
 * @keys:       the known keys, NULL at the end; case-sensitive
 * @ret_values: one value per key, NULL if absent; free with hw_strings_free()
 *
 * Unknown keys are an error unless IgnoreUnknown=1. The last value of a duplicate
 * key is used.
 */
HW_PUBLIC int hw_args_parse(const char *args, const char *const *keys,
			    struct hw_strings *ret_values, struct hw_err *e);

/* ---- delegation ------------------------------------------------------------ */

/**
 * hw_delegate() - run another plugin with this call's environment and input
 * @plugin:     name of the plugin, looked up in CNI_PATH; if it is the same file
 *              as this program, it is called without exec, with the same outcome
 * @command:    ADD, DEL, CHECK, GC or STATUS
 * @input:      configuration for the plugin; NULL: that of the call
 * @ret_result: for ADD only; else NULL
 *
 * Return: 0, or the plugin's error with its code and details
 */
HW_PUBLIC int hw_delegate(struct hw_call *call, const char *plugin, const char *command,
			  const char *input, struct hw_result **ret_result, struct hw_err *e);

/* ---- attachment record --------------------------------------------------------- */

/**
 * hw_record_save() - save call->made in the attachment record, before changing the kernel
 *
 * For ADD. The record is replaced atomically. On DEL and CHECK call->made is what
 * was last saved; if there is no record, it is zeroed and call->recorded is false.
 */
HW_PUBLIC int hw_record_save(struct hw_call *call, struct hw_err *e);

#ifdef __cplusplus
}
#endif

#endif
