/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hawser/cni.h - run CNI networks
 *
 * What:  loads a network's configuration, runs its plugins for a container,
 *        and caches the result, as libcni does for Go programs.
 * How:   struct hw_conf is a network. struct hw_cni holds the directories of the
 *        plugins, the cache and the locks. struct hw_attach is the attachment of
 *        a container to a network.
 * Rules: the calls below never change a struct hw_cni or struct hw_conf, so
 *        threads may share them. Calls for different attachments may run at the
 *        same time. The library installs no signal handlers, has no global state,
 *        and waits only for its own children. If memory is exhausted, it prints
 *        one line and aborts.
 *        Strings that the caller passes are borrowed until the call returns.
 *        Values returned through ret_ parameters belong to the caller.
 *        Later versions of the library may add members to the structs. Structs
 *        that the caller fills therefore start with their size. Structs that
 *        the library fills get new members at their end; entries of arrays get
 *        them in place of their reserved members. struct hw_err, struct
 *        hw_valid and the structs of addr.h and field.h do not change.
 *
 *	struct hw_attach at = { .size = sizeof(at), .container_id = "c1",
 *				.netns = "/run/netns/c1", .ifname = "eth0" };
 */
#ifndef HAWSER_CNI_H
#define HAWSER_CNI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hawser/err.h>
#include <hawser/field.h>
#include <hawser/result.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- configuration ----------------------------------------------------- */

/* A network: a configuration list, or a single plugin's configuration. */
struct hw_conf;

/**
 * hw_conf_files() - list the files of a directory with certain extensions
 * @dir:        the directory; a missing directory is treated as empty
 * @extensions: such as ".conf"; NULL at the end
 * @ret_files:  DIR/NAME, in byte order of the names; freed with hw_strings_free()
 *
 * Lists the regular files and symbolic links whose last extension is in
 * @extensions.
 */
HW_PUBLIC int hw_conf_files(const char *dir, const char *const *extensions,
			    struct hw_strings *ret_files, struct hw_err *e);

/**
 * hw_conf_load() - load the network with a given name from a directory
 * @dir:      directory with configurations, such as /etc/cni/net.d
 * @name:     name of the network
 * @ret_conf: freed with hw_conf_free()
 *
 * Searches all ".conflist" files in byte order of their names, then all ".conf"
 * and ".json" files, and uses the first valid file that defines this network. An
 * unreadable or invalid file is skipped; if the network is not found, the error
 * of the first skipped file is returned. An invalid file that contains the
 * network's name ends the search with the error of that file.
 *
 * Return: 0; -ENOENT if no file defines the network; or the error of an invalid
 * file
 */
HW_PUBLIC int hw_conf_load(const char *dir, const char *name, struct hw_conf **ret_conf,
			   struct hw_err *e);

/**
 * hw_conf_load_first() - load the first valid network of a directory
 * @dir:      directory with configurations; searched in byte order of file names
 * @skipped:  called for each invalid file; may be NULL
 * @ctx:      passed to @skipped
 * @ret_conf: freed with hw_conf_free()
 *
 * Return: 0; -ENOENT if the directory has no configurations; or the error of the
 * last file if none is valid
 */
HW_PUBLIC int hw_conf_load_first(const char *dir,
				 void (*skipped)(void *ctx, const char *file,
						 const struct hw_err *why),
				 void *ctx, struct hw_conf **ret_conf, struct hw_err *e);

/**
 * hw_conf_open() - load a network from a file
 * @path:     the file, at most 1 MiB
 * @ret_conf: freed with hw_conf_free()
 *
 * ".conf" and ".json" files contain a single plugin's configuration, which
 * becomes a list with one plugin. All other files contain a list. Unless the
 * list sets loadOnlyInlinedPlugins, the plugins in DIR/NETWORK/ANY.conf are
 * appended to it, where DIR is the directory of the file and NETWORK is the name
 * of the network.
 */
HW_PUBLIC int hw_conf_open(const char *path, struct hw_conf **ret_conf, struct hw_err *e);

/**
 * hw_conf_parse() - parse a configuration list
 * @json:     the text, @len bytes
 * @ret_conf: freed with hw_conf_free()
 *
 * Return: 0; -EINVAL if the list is malformed or has no plugins
 */
HW_PUBLIC int hw_conf_parse(const char *json, size_t len, struct hw_conf **ret_conf,
			    struct hw_err *e);

/**
 * hw_conf_parse_plugin() - parse a single plugin's configuration
 * @json:     the text, @len bytes
 * @ret_conf: freed with hw_conf_free()
 *
 * With such a configuration, the calls below behave like libcni's AddNetwork
 * etc. instead of AddNetworkList. hw_conf_to_list() converts it to a list with
 * one plugin.
 */
HW_PUBLIC int hw_conf_parse_plugin(const char *json, size_t len, struct hw_conf **ret_conf,
				   struct hw_err *e);
/**
 * hw_conf_to_list() - convert a single plugin's configuration to a list
 * @plugin:   from hw_conf_parse_plugin()
 * @ret_list: list with one plugin; freed with hw_conf_free()
 */
HW_PUBLIC int hw_conf_to_list(const struct hw_conf *plugin, struct hw_conf **ret_list,
			      struct hw_err *e);
/**
 * hw_conf_free() - free a network's configuration
 * @conf: may be NULL
 */
HW_PUBLIC void hw_conf_free(struct hw_conf *conf);

/**
 * hw_conf_name() - get the name of a network
 *
 * Return: the name, "" if the network has no name; valid as long as @conf
 */
HW_PUBLIC const char *hw_conf_name(const struct hw_conf *conf);

/**
 * hw_conf_version() - get the spec version of a network
 *
 * Return: the highest supported version in cniVersion and cniVersions; cniVersion
 * if cniVersions is missing or no version is supported; "" if both are missing
 */
HW_PUBLIC const char *hw_conf_version(const struct hw_conf *conf);

/**
 * hw_conf_file() - get the file that a network was loaded from
 *
 * Return: the path; NULL if the network was parsed from text
 */
HW_PUBLIC const char *hw_conf_file(const struct hw_conf *conf);

/**
 * hw_conf_bytes() - get the text that a network was parsed from
 *
 * Return: JSON text; valid as long as @conf
 */
HW_PUBLIC const char *hw_conf_bytes(const struct hw_conf *conf);

/**
 * hw_conf_is_list() - whether a network is a list
 *
 * Return: true for a list, false for a single plugin's configuration
 */
HW_PUBLIC bool hw_conf_is_list(const struct hw_conf *conf);

/**
 * hw_conf_check_disabled() - whether CHECK is disabled for this network
 *
 * Return: true if disableCheck is set
 */
HW_PUBLIC bool hw_conf_check_disabled(const struct hw_conf *conf);

/**
 * hw_conf_gc_disabled() - whether GC is disabled for this network
 *
 * Return: true if disableGC is set
 */
HW_PUBLIC bool hw_conf_gc_disabled(const struct hw_conf *conf);

/**
 * hw_conf_count() - get the number of plugins of a network
 *
 * Return: the number; 1 for a single plugin's configuration
 */
HW_PUBLIC size_t hw_conf_count(const struct hw_conf *conf);

/**
 * hw_conf_type() - get the type of one of a network's plugins
 * @i: index in the list, from 0
 *
 * Return: the name of the plugin's program; NULL if @i is not in the list
 */
HW_PUBLIC const char *hw_conf_type(const struct hw_conf *conf, size_t i);

/**
 * hw_conf_plugin() - get the configuration of one of a network's plugins
 * @i: index in the list, from 0
 *
 * Return: compact JSON text with all keys; NULL if @i is not in the list
 */
HW_PUBLIC const char *hw_conf_plugin(const struct hw_conf *conf, size_t i);

/* ---- finding and running plugins ---------------------------------------- */

/* One execution of a plugin. */
struct hw_run {
	size_t size;
	const char *plugin;	/* path, as find() returned it */
	const char *const *env; /* the complete environment: "K=V", NULL at the end */
	const char *input;	/* standard input */
	size_t input_len;
	int cancel_fd;	     /* the plugin is killed when this becomes readable; 0 or -1: none */
	bool stderr_through; /* true: the plugin inherits our standard error; false: collect it */
	int64_t deadline_ns; /* deadline on CLOCK_MONOTONIC; 0: none */
};

/* The result of running a plugin. Strings are malloc()ed and belong to the caller of run(). */
struct hw_ran {
	size_t size;
	int status; /* as waitpid() reports it */
	char *output;
	size_t output_len;
	char *errors; /* standard error; NULL if stderr_through */
	size_t errors_len;
};

/* Functions that find and run plugins. A NULL function selects the default. */
struct hw_exec {
	size_t size;
	void *ctx;
	/* Return: 0 with the plugin's path in @ret_path (malloc()ed), or a negative errno */
	int (*find)(void *ctx, const char *plugin, const char *const *dirs, char **ret_path,
		    struct hw_err *e);
	/* Return: 0 if the plugin ran, with any exit status; or a negative errno, then *e is passed
	 * on unchanged */
	int (*run)(void *ctx, const struct hw_run *run, struct hw_ran *ret_ran, struct hw_err *e);
};

/**
 * hw_exec_find() - search directories for a plugin, in order; the default find()
 * @ctx:      not used
 * @plugin:   name of the plugin, without a slash
 * @dirs:     directories to search, NULL at the end; "" is skipped
 * @ret_path: path of the first regular file with that name; freed by the caller
 *
 * The file need not be executable, as in libcni.
 *
 * Return: 0, or a negative errno
 */
HW_PUBLIC int hw_exec_find(void *ctx, const char *plugin, const char *const *dirs, char **ret_path,
			   struct hw_err *e);

/**
 * hw_exec_run() - execute a plugin; the default run()
 * @ctx:     not used
 * @run:     the plugin, its environment and input
 * @ret_ran: status and output; the caller sets .size before the call, and frees
 *           output and errors after it
 *
 * If the plugin's file is being written (ETXTBSY), the call retries for five
 * seconds. On timeout, on cancel and if the output is too large, the plugin and
 * its process group are killed.
 *
 * Return: 0 if the plugin ran, with any exit status; -ETIMEDOUT or -ECANCELED if
 * it was killed or not started; -EFBIG if it was killed because of too much
 * output; another negative errno if it could not be started
 */
HW_PUBLIC int hw_exec_run(void *ctx, const struct hw_run *run, struct hw_ran *ret_ran,
			  struct hw_err *e);

/* ---- attaching and detaching containers ----------------------------------- */

struct hw_cni;

/* What happens to the standard error of plugins. */
enum hw_stderr {
	HW_STDERR_AFTER,   /* copied to our standard error if the plugin succeeds, as in libcni */
	HW_STDERR_THROUGH, /* plugins inherit our standard error */
	HW_STDERR_DROP,	   /* discarded */
};

struct hw_cni_options {
	size_t size;
	const char *const *plugin_dirs; /* directories with plugins, NULL at the end */
	const char *cache_dir;		/* NULL: /var/lib/cni */
	/* Directory of the locks. NULL: $HAWSER_STATE; else /run/hawser, or
	 * $XDG_RUNTIME_DIR/hawser if not root. */
	const char *state_dir;
	const struct hw_exec *exec; /* NULL: hw_exec_find() and hw_exec_run() */
	enum hw_stderr stderr_mode;
	/* How long an ADD or DEL waits for a GC and for another ADD or DEL of the same attachment,
	 * and a GC for ADDs and DELs; then the call fails with CNI code 11. 0: 60 s. */
	int lock_timeout_ms;
	/* The next two members apply to calls without a struct hw_attach. */
	int cancel_fd;	/* the call is cancelled when this becomes readable; 0 or -1: none */
	int timeout_ms; /* for the whole call; 0: none */
	/* Called for each damaged cache file that DEL or GC skips, in the thread of the caller. */
	void (*damaged)(void *ctx, const char *file, const struct hw_err *why);
	void *damaged_ctx;
};

/**
 * hw_cni_new() - create the object that all calls below use
 * @options: copied, including .exec; the objects that .exec->ctx and .damaged_ctx
 *           point to must stay valid
 * @ret_cni: freed with hw_cni_free(); threads may share it
 * @e:       the error
 *
 * Does not open or create any file.
 *
 * Return: 0; -EINVAL if .size is not set; -E2BIG if the caller was built for a
 * newer library and sets members that this one does not support
 */
HW_PUBLIC int hw_cni_new(const struct hw_cni_options *options, struct hw_cni **ret_cni,
			 struct hw_err *e);

/**
 * hw_cni_free() - free a struct hw_cni
 * @cni: may be NULL; must not be in use by a running call
 */
HW_PUBLIC void hw_cni_free(struct hw_cni *cni);

struct hw_attach {
	size_t size;
	const char *container_id;
	const char *netns;
	const char *ifname;
	const char *const (*args)[2]; /* pairs of key and value for CNI_ARGS */
	size_t n_args;
	const char *capability_args; /* JSON object with a key for each capability; NULL: none */
	int cancel_fd;	/* the call is cancelled when this becomes readable; 0 or -1: none */
	int timeout_ms; /* for the whole call; 0: none */
	int64_t undo_deadline_ns; /* of the undo of hw_add(), on CLOCK_MONOTONIC; 0: none */
	/* JSON: the result of the ADD, for hw_del() and hw_check(), if the cache has no valid one;
	 * hw_del() ignores it if it is malformed; NULL: none */
	const char *prev_result;
};

enum {
	HW_ADD_UNDO = 1 << 0, /* if ADD fails, call DEL for all plugins before returning */
};

/**
 * hw_add() - attach a container to a network
 * @flags:      HW_ADD_UNDO, or 0: nothing is undone, as in libcni
 * @ret_result: the last plugin's result; may be NULL
 *
 * All plugins are found, and the names are validated, before the first plugin is
 * run. The call stops at the first error; the error of a plugin keeps its code.
 * The undo has a separate timeout of one minute, which .undo_deadline_ns can
 * shorten, and cannot be cancelled; its errors are added to the details. Nothing
 * is undone if the cache has an entry of an earlier ADD of the same attachment,
 * because the undo would delete that attachment. If a plugin fails with
 * HW_CNI_ALREADY_ATTACHED, only the plugins before it are undone.
 *
 * Return: 0, or a negative errno: -ETIMEDOUT or -ECANCELED if a plugin was killed
 * or not started, -EINVAL for an unsupported flag. CNI code 11 if a GC of the
 * network, or another ADD or DEL of the attachment, did not finish in time.
 */
HW_PUBLIC int hw_add(const struct hw_cni *cni, const struct hw_conf *conf,
		     const struct hw_attach *at, unsigned flags, struct hw_result **ret_result,
		     struct hw_err *e);

/**
 * hw_del() - detach a container; succeeds if it is not attached
 *
 * Runs the plugins in reverse order with the cached result or, without one, with
 * .prev_result. The cache entry is removed only on success, so that a failed call
 * can be repeated.
 */
HW_PUBLIC int hw_del(const struct hw_cni *cni, const struct hw_conf *conf,
		     const struct hw_attach *at, struct hw_err *e);

/**
 * hw_check() - check that an attachment is still as ADD created it
 *
 * Return: 0 if the attachment is unchanged, or if CHECK is disabled; a negative
 * errno with the plugin's error; -EOPNOTSUPP if the network's version is before
 * 0.4.0
 */
HW_PUBLIC int hw_check(const struct hw_cni *cni, const struct hw_conf *conf,
		       const struct hw_attach *at, struct hw_err *e);

struct hw_valid {
	const char *container_id;
	const char *ifname;
};

/**
 * hw_gc() - delete every attachment of a network that is not in a list
 * @valid:   attachments to keep; NULL (nil in libcni): delete every cached
 *           attachment
 * @n_valid: number of attachments in @valid
 *
 * Continues after an error; the message contains all errors, one per line. An
 * attachment whose ADD finishes after this call has started is kept, too,
 * because @valid cannot contain it. Waits for the running ADDs and DELs of the
 * network, at most .lock_timeout_ms, then fails with CNI code 11.
 */
HW_PUBLIC int hw_gc(const struct hw_cni *cni, const struct hw_conf *conf,
		    const struct hw_valid *valid, size_t n_valid, struct hw_err *e);

/**
 * hw_status() - whether the network is ready for an ADD
 *
 * Return: 0 if the network is ready, or if its version is before 1.1.0; a
 * negative errno with the plugin's CNI code: 50 not available, 51 limited
 * connectivity
 */
HW_PUBLIC int hw_status(const struct hw_cni *cni, const struct hw_conf *conf, struct hw_err *e);

/**
 * hw_validate() - check that all plugins exist and support the network's version
 * @capabilities:     capabilities that the network must declare; NULL at the end; may be NULL
 * @ret_capabilities: capabilities that the network declares; freed with hw_strings_free(); may
 *                    be NULL
 *
 * For a list, the message contains the errors of all plugins.
 */
HW_PUBLIC int hw_validate(const struct hw_cni *cni, const struct hw_conf *conf,
			  const char *const *capabilities, struct hw_strings *ret_capabilities,
			  struct hw_err *e);

/**
 * hw_plugin_versions() - get the spec versions that an installed plugin supports
 * @plugin:       name of the plugin
 * @ret_versions: freed with hw_strings_free()
 */
HW_PUBLIC int hw_plugin_versions(const struct hw_cni *cni, const char *plugin,
				 struct hw_strings *ret_versions, struct hw_err *e);

/* ---- the cache ------------------------------------------------------------ */

/**
 * hw_cached_result() - get the cached result of an ADD, in the network's version
 * @ret_result: freed with hw_result_free()
 *
 * Return: 1 if found, 0 with *ret_result NULL if not, negative on error
 */
HW_PUBLIC int hw_cached_result(const struct hw_cni *cni, const struct hw_conf *conf,
			       const struct hw_attach *at, struct hw_result **ret_result,
			       struct hw_err *e);

/* One cached attachment, with the arguments of its ADD. */
struct hw_cached {
	char *network;
	char *container_id;
	char *ifname;
	char *netns; /* NULL: unknown */
	struct hw_map args;
	char *capability_args; /* JSON object or NULL */
	char *config;	       /* JSON text of the network's configuration */
	char *result;	       /* JSON text or NULL */
	uint64_t reserved[4];  /* for later versions; zero */
};

struct hw_cached_list {
	struct hw_cached *v;
	size_t n;
};

/**
 * hw_cached_config() - get the cached configuration and arguments of an ADD
 * @ret_list: freed with hw_cached_list_free()
 *
 * Return: 1 with one entry if found, 0 with an empty list if not, negative on
 * error
 */
HW_PUBLIC int hw_cached_config(const struct hw_cni *cni, const struct hw_conf *conf,
			       const struct hw_attach *at, struct hw_cached_list *ret_list,
			       struct hw_err *e);

/**
 * hw_cached_attachments() - list the cached attachments
 * @container_id: list only the attachments of this container; NULL or "": of all
 * @damaged:      called for each file that is not a valid entry; may be NULL
 * @ctx:          passed to @damaged
 * @ret_list:     freed with hw_cached_list_free()
 *
 * Return: 0, with an empty list if the directory does not exist; or a negative
 * errno
 */
HW_PUBLIC int hw_cached_attachments(const struct hw_cni *cni, const char *container_id,
				    void (*damaged)(void *ctx, const char *file,
						    const struct hw_err *why),
				    void *ctx, struct hw_cached_list *ret_list, struct hw_err *e);

/**
 * hw_cached_list_free() - free the entries of a list
 * @list: the list, empty afterwards; the struct itself is not freed
 */
HW_PUBLIC void hw_cached_list_free(struct hw_cached_list *list);

#ifdef __cplusplus
}
#endif

#endif
