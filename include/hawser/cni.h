/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hawser/cni.h - run CNI networks
 *
 * What:  loads a network's configuration, runs its plugins for a container,
 *        and caches the result, as libcni does for Go programs.
 * How:   struct hw_conf is a network, struct hw_cni has the directories of
 *        plugins and state, struct hw_attach is the attachment of a container
 *        to a network.
 * Rules: the calls below never change a struct hw_cni or struct hw_conf, so
 *        threads may share them, and different attachments may run at the same
 *        time. The library installs no signal handlers, has no global state,
 *        and waits only for its own children. If memory is exhausted it prints
 *        one line and aborts.
 *        Strings passed in are borrowed for the call; ret_ values belong to
 *        the caller. Structs that the caller fills start with their size, so
 *        that they can grow. Structs that the library fills grow at their end;
 *        entries of arrays grow into their reserved members. struct hw_err,
 *        struct hw_valid and the structs of addr.h and field.h do not change.
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
 * @dir:        a missing directory counts as empty
 * @extensions: such as ".conf", NULL at the end
 * @ret_files:  full paths in byte order; freed with hw_strings_free()
 *
 * Lists regular files and symbolic links, by their last extension.
 */
HW_PUBLIC int hw_conf_files(const char *dir, const char *const *extensions,
			    struct hw_strings *ret_files, struct hw_err *e);

/**
 * hw_conf_load() - load the network with a given name from a directory
 * @dir:      directory with configurations, such as /etc/cni/net.d
 * @name:     name of the network
 * @ret_conf: freed with hw_conf_free()
 *
 * Reads all ".conflist" files in byte order of their names, then ".conf" and
 * ".json" files; the first one with the name is used. A file that is unreadable
 * or invalid is skipped; its error is returned if no other file has the name. An
 * invalid file that itself contains the name ends the search with its error.
 *
 * Return: 0; -ENOENT if no file has the name; or the error of an invalid file
 */
HW_PUBLIC int hw_conf_load(const char *dir, const char *name, struct hw_conf **ret_conf,
			   struct hw_err *e);

/**
 * hw_conf_load_first() - load the first valid network of a directory
 * @dir:      directory with configurations; read in byte order of their names
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
 * ".conf" and ".json" files contain a single plugin, which becomes a list of
 * one; all other files contain a list. Unless it has loadOnlyInlinedPlugins, a
 * list is extended by the plugins in all ".conf" files of the directory that is
 * beside the file and has the network's name.
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
 * The calls below then behave as libcni's AddNetwork etc. instead of
 * AddNetworkList. hw_conf_to_list() wraps it into a list of one.
 */
HW_PUBLIC int hw_conf_parse_plugin(const char *json, size_t len, struct hw_conf **ret_conf,
				   struct hw_err *e);
/**
 * hw_conf_to_list() - convert a single plugin's configuration to a list of one
 * @plugin:   from hw_conf_parse_plugin()
 * @ret_list: freed with hw_conf_free()
 */
HW_PUBLIC int hw_conf_to_list(const struct hw_conf *plugin, struct hw_conf **ret_list,
			      struct hw_err *e);
/**
 * hw_conf_free() - free a network's configuration
 * @conf: may be NULL
 */
HW_PUBLIC void hw_conf_free(struct hw_conf *conf);

/**
 * hw_conf_name() - the name of a network
 *
 * Return: the name, "" if it has none; valid as long as @conf
 */
HW_PUBLIC const char *hw_conf_name(const struct hw_conf *conf);

/**
 * hw_conf_version() - the spec version of a network
 *
 * Return: cniVersion, or the highest supported version of cniVersion and
 * cniVersions; "" if the configuration has neither
 */
HW_PUBLIC const char *hw_conf_version(const struct hw_conf *conf);

/**
 * hw_conf_file() - the file that a network was loaded from
 *
 * Return: the path; NULL if it was parsed from text
 */
HW_PUBLIC const char *hw_conf_file(const struct hw_conf *conf);

/**
 * hw_conf_bytes() - the text that a network was parsed from
 *
 * Return: JSON text; valid as long as @conf
 */
HW_PUBLIC const char *hw_conf_bytes(const struct hw_conf *conf);

/**
 * hw_conf_is_list() - whether it is a list or a single plugin's configuration
 *
 * Return: true for a list
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
 * hw_conf_count() - the number of plugins of a network
 *
 * Return: the number; 1 for a single plugin
 */
HW_PUBLIC size_t hw_conf_count(const struct hw_conf *conf);

/**
 * hw_conf_type() - the type of one of a network's plugins
 * @i: index in the list, from 0
 *
 * Return: the name of its program; NULL beyond the last
 */
HW_PUBLIC const char *hw_conf_type(const struct hw_conf *conf, size_t i);

/**
 * hw_conf_plugin() - the configuration of one of a network's plugins
 * @i: index in the list, from 0
 *
 * Return: compact JSON text with all keys; NULL beyond the last
 */
HW_PUBLIC const char *hw_conf_plugin(const struct hw_conf *conf, size_t i);

/* ---- finding and running plugins ---------------------------------------- */

/* One run of a plugin. */
struct hw_run {
	size_t size;
	const char *plugin;	/* path, as find() returned it */
	const char *const *env; /* "K=V", NULL at the end: the whole environment */
	const char *input;	/* standard input */
	size_t input_len;
	int cancel_fd;	     /* readable: stop; 0 or -1: none */
	bool stderr_through; /* the plugin inherits our standard error; false: collect it */
	int64_t deadline_ns; /* CLOCK_MONOTONIC; 0: none */
};

/* The outcome; strings are malloc()ed and belong to the caller of run(). */
struct hw_ran {
	size_t size;
	int status; /* as waitpid() reports it */
	char *output;
	size_t output_len;
	char *errors; /* standard error; NULL if stderr_through */
	size_t errors_len;
};

/* Functions that find and run plugins; NULL members mean the default. */
struct hw_exec {
	size_t size;
	void *ctx;
	/* Return: 0 and the plugin's path in @ret_path (malloc()ed) */
	int (*find)(void *ctx, const char *plugin, const char *const *dirs, char **ret_path,
		    struct hw_err *e);
	/* Return: 0 if the plugin ran, whatever its exit status */
	int (*run)(void *ctx, const struct hw_run *run, struct hw_ran *ret_ran, struct hw_err *e);
};

/**
 * hw_exec_find() - the default find(): search the directories in order
 * @ctx:      not used
 * @plugin:   its name, without a slash
 * @dirs:     directories to search, NULL at the end; "" is skipped
 * @ret_path: path of the first regular file; freed by the caller
 *
 * The file need not be executable, as with libcni.
 *
 * Return: 0, or a negative errno
 */
HW_PUBLIC int hw_exec_find(void *ctx, const char *plugin, const char *const *dirs, char **ret_path,
			   struct hw_err *e);

/**
 * hw_exec_run() - the default run(): fork and exec
 * @ctx:     not used
 * @run:     the plugin, its environment and input
 * @ret_ran: status and output; the caller sets .size before, and frees output and
 *           errors
 *
 * A file that is being written (ETXTBSY) is retried for five seconds. On
 * timeout, on cancel and if the output is too large, the plugin and its process
 * group are killed.
 *
 * Return: 0 if the plugin ran, whatever its exit status; -ETIMEDOUT, -ECANCELED
 * or -EFBIG if it was killed; another negative errno if it was not started
 */
HW_PUBLIC int hw_exec_run(void *ctx, const struct hw_run *run, struct hw_ran *ret_ran,
			  struct hw_err *e);

/* ---- running ------------------------------------------------------------ */

struct hw_cni;

enum hw_stderr {
	HW_STDERR_AFTER,   /* copied to ours after a success, as with libcni */
	HW_STDERR_THROUGH, /* inherited */
	HW_STDERR_DROP,
};

struct hw_cni_options {
	size_t size;
	const char *const *plugin_dirs; /* directories with plugins, NULL at the end */
	const char *cache_dir;		/* NULL: /var/lib/cni */
	/* Locks; NULL: $HAWSER_STATE, else /run/hawser, or $XDG_RUNTIME_DIR/hawser if not root */
	const char *state_dir;
	const struct hw_exec *exec; /* NULL: fork and exec */
	enum hw_stderr stderr_mode;
	int lock_timeout_ms; /* of waiting for a GC, or for ADDs and DELs; 0: 60 s; then error 11 */
	/* For calls without a struct hw_attach: */
	int cancel_fd;	/* readable: stop; 0 or -1: none */
	int timeout_ms; /* for the whole call; 0: none */
	/* Called, in the calling thread, for each damaged cache file that DEL or GC skips. */
	void (*damaged)(void *ctx, const char *file, const struct hw_err *why);
	void *damaged_ctx;
};

/**
 * hw_cni_new() - create the object that all calls below use
 * @options: copied, including .exec; only .exec->ctx and .damaged_ctx must stay
 *           valid
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
 * @cni: may be NULL; no call may be using it
 */
HW_PUBLIC void hw_cni_free(struct hw_cni *cni);

struct hw_attach {
	size_t size;
	const char *container_id;
	const char *netns;
	const char *ifname;
	const char *const (*args)[2]; /* CNI_ARGS pairs */
	size_t n_args;
	const char *capability_args; /* JSON object; NULL: none */
	int cancel_fd;		     /* readable: stop; 0 or -1: none */
	int timeout_ms;		     /* for the whole call; 0: none */
};

enum {
	HW_ADD_UNDO = 1 << 0, /* if the ADD fails, DEL the whole list before returning */
};

/**
 * hw_add() - attach a container to a network
 * @flags:      HW_ADD_UNDO, or 0: nothing is undone, as with libcni
 * @ret_result: the last plugin's result; may be NULL
 *
 * All plugins are found, and the names are validated, before the first plugin is
 * run. The call stops at the first error; the error of a plugin keeps its code.
 * An undo has its own timeout of one minute, also after a cancel; its errors are
 * added to the details. Nothing is undone if the cache has an entry of an
 * earlier ADD of the same attachment, because the undo would delete that one.
 *
 * Return: 0, or a negative errno: -ETIMEDOUT and -ECANCELED if the plugin was
 * killed or not started, -EINVAL for an unsupported flag, CNI code 11 if a GC of
 * the network did not finish in time
 */
HW_PUBLIC int hw_add(const struct hw_cni *cni, const struct hw_conf *conf,
		     const struct hw_attach *at, unsigned flags, struct hw_result **ret_result,
		     struct hw_err *e);

/**
 * hw_del() - detach a container; succeeds if it is not attached
 *
 * Runs the plugins in reverse order with the cached result. The cache entry is
 * removed only on success, so that a failed call can be repeated.
 */
HW_PUBLIC int hw_del(const struct hw_cni *cni, const struct hw_conf *conf,
		     const struct hw_attach *at, struct hw_err *e);

/**
 * hw_check() - check that an attachment is still as ADD created it
 *
 * Return: 0 if it is, or CHECK is disabled; a negative errno with the plugin's
 * error; -EOPNOTSUPP for a network before 0.4.0
 */
HW_PUBLIC int hw_check(const struct hw_cni *cni, const struct hw_conf *conf,
		       const struct hw_attach *at, struct hw_err *e);

struct hw_valid {
	const char *container_id;
	const char *ifname;
};

/**
 * hw_gc() - delete every attachment of a network that is not in a list
 * @valid:   attachments to keep; NULL, libcni's nil: delete every cached one
 * @n_valid: their number
 *
 * Continues after an error; the message has all errors, one per line. An
 * attachment whose ADD finishes after the call is kept, too, because @valid
 * cannot contain it. Waits for the running ADDs and DELs of the network, at most
 * .lock_timeout_ms, then fails with CNI code 11.
 */
HW_PUBLIC int hw_gc(const struct hw_cni *cni, const struct hw_conf *conf,
		    const struct hw_valid *valid, size_t n_valid, struct hw_err *e);

/**
 * hw_status() - whether the network is ready for an ADD
 *
 * Return: 0 if it is, or if its version is before 1.1.0; a negative errno with
 * the plugin's code: 50 not available, 51 limited connectivity
 */
HW_PUBLIC int hw_status(const struct hw_cni *cni, const struct hw_conf *conf, struct hw_err *e);

/**
 * hw_validate() - check that all plugins exist and support the network's version
 * @capabilities:     those that the network must declare; NULL at the end; may be NULL
 * @ret_capabilities: those that it declares; freed with hw_strings_free(); may be NULL
 *
 * For a list, the message has the errors of all plugins.
 */
HW_PUBLIC int hw_validate(const struct hw_cni *cni, const struct hw_conf *conf,
			  const char *const *capabilities, struct hw_strings *ret_capabilities,
			  struct hw_err *e);

/**
 * hw_plugin_versions() - the spec versions that an installed plugin supports
 * @plugin:       its name
 * @ret_versions: freed with hw_strings_free()
 */
HW_PUBLIC int hw_plugin_versions(const struct hw_cni *cni, const char *plugin,
				 struct hw_strings *ret_versions, struct hw_err *e);

/* ---- the cache ------------------------------------------------------------ */

/**
 * hw_cached_result() - the result of an ADD, in the network's version
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
 * hw_cached_config() - the configuration and arguments of an ADD
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
 * @container_id: only those of this container; NULL or "": all
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
 * @list: emptied; the struct itself is not freed
 */
HW_PUBLIC void hw_cached_list_free(struct hw_cached_list *list);

#ifdef __cplusplus
}
#endif

#endif
