/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hawser/cni.h - run CNI networks
 *
 * What:  load a network's configuration, run its plugins for a container, and
 *        cache the result, as Go programs do with libcni.
 * How:   struct hw_conf is a network, struct hw_cni has the directories of plugins
 *        and state, struct hw_attach is the attachment of a container to a network.
 * Rules: the functions below never change a struct hw_cni or a struct hw_conf, so
 *        threads may share them; different attachments may run at the same time.
 *        The library does not disturb the program that uses it: no signal
 *        handlers, no global state, it waits only for its own children. If memory
 *        is exhausted, it prints one line and aborts.
 *        String arguments are borrowed during the call; values returned in ret_
 *        arguments belong to the caller. Structs that the caller fills start with
 *        their size, so that later versions can add members. Structs that the
 *        library creates grow at their end, or, if they are elements of arrays, into
 *        their reserved members. struct hw_err, struct hw_valid and those of addr.h
 *        and field.h never change.
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
 * hw_conf_files() - list the files of a directory with one of the given extensions
 * @dir:        a missing directory counts as empty
 * @extensions: such as ".conf"; NULL at the end
 * @ret_files:  full paths in byte order; free with hw_strings_free()
 *
 * Only regular files and symbolic links are listed. The last extension of a name
 * is compared.
 */
HW_PUBLIC int hw_conf_files(const char *dir, const char *const *extensions,
			    struct hw_strings *ret_files, struct hw_err *e);

/**
 * hw_conf_load() - load a network of a directory by its name
 * @dir:      directory of configurations, such as /etc/cni/net.d
 * @name:     name of the network
 * @ret_conf: the network; free it with hw_conf_free()
 *
 * First all ".conflist" files are tried in byte order of their names, then
 * ".conf" and ".json" files; the first network with that name is used. A file
 * that cannot be read or is invalid is skipped, unless it has the wanted name:
 * then its error is returned. If the network is not found, the error of the first
 * skipped file is returned.
 *
 * Return: 0; -ENOENT if it was not found and no file was skipped; or the error of
 * an invalid file
 */
HW_PUBLIC int hw_conf_load(const char *dir, const char *name, struct hw_conf **ret_conf,
			   struct hw_err *e);

/**
 * hw_conf_load_first() - load the first valid network of a directory
 * @dir:      directory of configurations; they are tried in byte order of their names
 * @skipped:  called for each file that is invalid; may be NULL
 * @ret_conf: the network; free it with hw_conf_free()
 */
HW_PUBLIC int hw_conf_load_first(const char *dir,
				 void (*skipped)(void *ctx, const char *file,
						 const struct hw_err *why),
				 void *ctx, struct hw_conf **ret_conf, struct hw_err *e);

/**
 * hw_conf_open() - load a network from a file
 * @path:     the file
 * @ret_conf: the network; free it with hw_conf_free()
 *
 * A ".conf" or ".json" file has a single plugin, which becomes a list of one
 * plugin; any other file is a list. Unless a list has loadOnlyInlinedPlugins, the
 * plugins of all ".conf" files in a subdirectory with the network's name are
 * appended to it. The maximum file size is 1 MiB.
 */
HW_PUBLIC int hw_conf_open(const char *path, struct hw_conf **ret_conf, struct hw_err *e);

/**
 * hw_conf_parse() - parse the text of a configuration list
 * @json:     the text, @len bytes
 * @ret_conf: the network; free it with hw_conf_free()
 */
HW_PUBLIC int hw_conf_parse(const char *json, size_t len, struct hw_conf **ret_conf,
			    struct hw_err *e);

/**
 * hw_conf_parse_plugin() - parse the text of a single plugin's configuration
 * @json:     the text, @len bytes
 * @ret_conf: the network; free it with hw_conf_free()
 *
 * hw_add() and the other calls then run only that plugin, as libcni's AddNetwork
 * and similar functions do. hw_conf_to_list() wraps it into a list of one plugin.
 */
HW_PUBLIC int hw_conf_parse_plugin(const char *json, size_t len, struct hw_conf **ret_conf,
				   struct hw_err *e);
/**
 * hw_conf_to_list() - convert a single plugin's configuration to a list of one plugin
 * @plugin:   from hw_conf_parse_plugin()
 * @ret_list: the list; free it with hw_conf_free()
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
 * Return: the name; valid as long as @conf
 */
HW_PUBLIC const char *hw_conf_name(const struct hw_conf *conf);

/**
 * hw_conf_version() - get the spec version of a network
 *
 * Return: the version that was chosen; "" if the configuration has none
 */
HW_PUBLIC const char *hw_conf_version(const struct hw_conf *conf);

/**
 * hw_conf_file() - get the file that a network was loaded from
 *
 * Return: the path; NULL if it was parsed from text
 */
HW_PUBLIC const char *hw_conf_file(const struct hw_conf *conf);

/**
 * hw_conf_bytes() - get the text that a network was parsed from
 *
 * Return: JSON text; valid as long as @conf
 */
HW_PUBLIC const char *hw_conf_bytes(const struct hw_conf *conf);

/**
 * hw_conf_is_list() - check if a network is a list, not a single plugin's configuration
 *
 * Return: true for a list
 */
HW_PUBLIC bool hw_conf_is_list(const struct hw_conf *conf);

/**
 * hw_conf_check_disabled() - check if CHECK is disabled for this network
 *
 * Return: true if the configuration has disableCheck
 */
HW_PUBLIC bool hw_conf_check_disabled(const struct hw_conf *conf);

/**
 * hw_conf_gc_disabled() - check if GC is disabled for this network
 *
 * Return: true if the configuration has disableGC
 */
HW_PUBLIC bool hw_conf_gc_disabled(const struct hw_conf *conf);

/**
 * hw_conf_count() - get the number of plugins of a network
 *
 * Return: the number; 1 for a single plugin
 */
HW_PUBLIC size_t hw_conf_count(const struct hw_conf *conf);

/**
 * hw_conf_type() - get the type of a plugin of a network
 * @i: index of the plugin in the list, from 0
 *
 * Return: the name of the plugin's program; NULL beyond the last
 */
HW_PUBLIC const char *hw_conf_type(const struct hw_conf *conf, size_t i);

/**
 * hw_conf_plugin() - get the configuration of a plugin of a network
 * @i: index of the plugin in the list, from 0
 *
 * Return: JSON text, as in the list; NULL beyond the last
 */
HW_PUBLIC const char *hw_conf_plugin(const struct hw_conf *conf, size_t i);

/* ---- executing plugins --------------------------------------------------- */

/* One execution of a plugin. */
struct hw_run {
	size_t size;
	const char *plugin;	/* path, as find() returned it */
	const char *const *env; /* the complete environment: "K=V", NULL at the end */
	const char *input;	/* standard input */
	size_t input_len;
	int cancel_fd;	     /* the call is cancelled when this becomes readable; 0 or -1: none */
	bool stderr_through; /* standard error is the caller's; else it is collected */
	int64_t deadline_ns; /* CLOCK_MONOTONIC; 0: none */
};

/* The outcome of an execution. Strings are malloc()ed and belong to the caller of run(). */
struct hw_ran {
	size_t size;
	int status; /* as waitpid() reports it */
	char *output;
	size_t output_len;
	char *errors; /* standard error; NULL if it was passed through */
	size_t errors_len;
};

/* How plugins are found and executed. A NULL member is the default function. */
struct hw_exec {
	size_t size;
	void *ctx;
	/* Return: 0 with the plugin's path in @ret_path (malloc()ed), or a negative errno */
	int (*find)(void *ctx, const char *plugin, const char *const *dirs, char **ret_path,
		    struct hw_err *e);
	/* Return: 0 if the plugin ran, with any exit status, or a negative errno */
	int (*run)(void *ctx, const struct hw_run *run, struct hw_ran *ret_ran, struct hw_err *e);
};

/**
 * hw_exec_find() - find a plugin in a list of directories; the default find()
 * @ctx:      not used
 * @plugin:   name of the plugin, without a slash
 * @dirs:     the directories, NULL at the end; "" is skipped
 * @ret_path: the path, to be freed by the caller
 *
 * The first directory that has the plugin is used. A regular file is accepted even
 * if it is not executable, as in libcni.
 *
 * Return: 0, or a negative errno
 */
HW_PUBLIC int hw_exec_find(void *ctx, const char *plugin, const char *const *dirs, char **ret_path,
			   struct hw_err *e);

/**
 * hw_exec_run() - execute a plugin; the default run()
 * @ctx:     not used
 * @run:     plugin, environment and input
 * @ret_ran: receives status and output; the caller sets .size before, and frees
 *           output and errors
 *
 * If the file is being written (ETXTBSY), the execution is retried for five
 * seconds. At the deadline, on cancel and after too much output the plugin and its
 * process group are killed.
 *
 * Return: 0 if the plugin ran, with any exit status; -ETIMEDOUT, -ECANCELED or
 * -EFBIG if it was killed; another negative errno if it could not be started
 */
HW_PUBLIC int hw_exec_run(void *ctx, const struct hw_run *run, struct hw_ran *ret_ran,
			  struct hw_err *e);

/* ---- attaching and detaching containers ----------------------------------- */

struct hw_cni;

/* The standard error of plugins. */
enum hw_stderr {
	HW_STDERR_AFTER,   /* copied to the caller's after a success, as in libcni */
	HW_STDERR_THROUGH, /* the plugin writes directly to the caller's */
	HW_STDERR_DROP,	   /* discarded */
};

struct hw_cni_options {
	size_t size;
	const char *const *plugin_dirs; /* NULL at the end */
	const char *cache_dir;		/* NULL: /var/lib/cni */
	/* For locks. NULL: $HAWSER_STATE, else /run/hawser, or $XDG_RUNTIME_DIR/hawser without
	 * root */
	const char *state_dir;
	const struct hw_exec *exec; /* NULL: fork and exec */
	enum hw_stderr stderr_mode;
	int lock_timeout_ms; /* to wait for a GC or for ADDs; then CNI error 11; 0: 60 s */
	/* For calls without a struct hw_attach, which has its own: */
	int cancel_fd;	/* the call is cancelled when this becomes readable; 0 or -1: none */
	int timeout_ms; /* for the whole call; 0: none */
	/* Called in the calling thread for each damaged cache file that DEL or GC skips. */
	void (*damaged)(void *ctx, const char *file, const struct hw_err *why);
	void *damaged_ctx;
};

/**
 * hw_cni_new() - create the library object with the directories of plugins, cache and locks
 * @options: copied, including .exec; only .exec->ctx and .damaged_ctx must stay valid
 * @ret_cni: the object; free it with hw_cni_free(); threads may share it
 *
 * No file is opened or created yet.
 *
 * Return: 0; -EINVAL if .size is not set; -E2BIG if the caller's struct is newer
 * than this library and uses members that the library does not have
 */
HW_PUBLIC int hw_cni_new(const struct hw_cni_options *options, struct hw_cni **ret_cni,
			 struct hw_err *e);

/**
 * hw_cni_free() - free a struct hw_cni
 * @cni: may be NULL; must not be in use by another call
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
	int cancel_fd;	/* the call is cancelled when this becomes readable; 0 or -1: none */
	int timeout_ms; /* for the whole call; 0: none */
};

enum {
	HW_ADD_UNDO = 1 << 0, /* if a plugin fails, run DEL of the whole list before returning */
};

/**
 * hw_add() - attach a container
 * @flags:      HW_ADD_UNDO, or 0 for libcni's behaviour (nothing is undone)
 * @ret_result: the last plugin's result; may be NULL
 *
 * All plugins are looked up, and the names are checked, before the first plugin is
 * run. The call stops at the first error; an error of a plugin keeps its code. The
 * undo has a timeout of one minute of its own, also after a cancel; its errors are
 * added to the details. Nothing is undone if the cache has an earlier ADD of the
 * same attachment, because the undo would remove that one too.
 *
 * Return: 0, or a negative errno; -ETIMEDOUT or -ECANCELED if a plugin was killed;
 * -EINVAL for an unknown flag; CNI code 11 if a GC of the network did not finish
 * within .lock_timeout_ms
 */
HW_PUBLIC int hw_add(const struct hw_cni *cni, const struct hw_conf *conf,
		     const struct hw_attach *at, unsigned flags, struct hw_result **ret_result,
		     struct hw_err *e);

/**
 * hw_del() - detach a container; succeeds if it is not attached
 *
 * The plugins are run in reverse order with the cached result. After an error the
 * attachment stays in the cache, so that the call can be repeated.
 */
HW_PUBLIC int hw_del(const struct hw_cni *cni, const struct hw_conf *conf,
		     const struct hw_attach *at, struct hw_err *e);

/**
 * hw_check() - check that an attachment is as ADD created it
 *
 * Return: 0 if it is, or if CHECK is disabled; a negative errno with the plugin's
 * error; -EOPNOTSUPP for a network with a version before 0.4.0
 */
HW_PUBLIC int hw_check(const struct hw_cni *cni, const struct hw_conf *conf,
		       const struct hw_attach *at, struct hw_err *e);

struct hw_valid {
	const char *container_id;
	const char *ifname;
};

/**
 * hw_gc() - delete all attachments of the network except the listed ones
 * @valid:   the attachments to keep; NULL (libcni's nil): delete all cached ones
 * @n_valid: their number
 *
 * Continues after an error; the message has all errors, one per line. An
 * attachment that an ADD writes to the cache after GC has read the cache is kept
 * too, because @valid cannot include it. Waits for the running ADDs and DELs of the
 * network, at most .lock_timeout_ms, then fails with CNI code 11.
 */
HW_PUBLIC int hw_gc(const struct hw_cni *cni, const struct hw_conf *conf,
		    const struct hw_valid *valid, size_t n_valid, struct hw_err *e);

/**
 * hw_status() - check if an ADD could succeed now
 *
 * Return: 0 if it could, or if the network has a version before 1.1.0; a negative
 * errno with the plugin's code: 50 not available, 51 limited connectivity
 */
HW_PUBLIC int hw_status(const struct hw_cni *cni, const struct hw_conf *conf, struct hw_err *e);

/**
 * hw_validate() - check that all plugins are installed and support the network's version
 * @capabilities:     the capabilities that the network must declare; NULL at the end; may be NULL
 * @ret_capabilities: the capabilities that it declares; free with hw_strings_free(); may be NULL
 *
 * For a list, the errors of all plugins are reported.
 */
HW_PUBLIC int hw_validate(const struct hw_cni *cni, const struct hw_conf *conf,
			  const char *const *capabilities, struct hw_strings *ret_capabilities,
			  struct hw_err *e);

/**
 * hw_plugin_versions() - get the spec versions that an installed plugin supports
 * @plugin:       name of the plugin
 * @ret_versions: the versions; free with hw_strings_free()
 */
HW_PUBLIC int hw_plugin_versions(const struct hw_cni *cni, const char *plugin,
				 struct hw_strings *ret_versions, struct hw_err *e);

/* ---- cache ---------------------------------------------------------------- */

/**
 * hw_cached_result() - get the cached result of an ADD, in the network's version
 * @ret_result: the result; free it with hw_result_free()
 *
 * Return: 1 if found; 0 with NULL if not; a negative errno on error
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
	char *config;	       /* text of the network's configuration */
	char *result;	       /* JSON text or NULL */
	uint64_t reserved[4];  /* for later versions; zero */
};

struct hw_cached_list {
	struct hw_cached *v;
	size_t n;
};

/**
 * hw_cached_config() - get the cached configuration and arguments of an ADD
 * @ret_list: one entry; free with hw_cached_list_free()
 *
 * Return: 1 if found; 0 if not; a negative errno on error
 */
HW_PUBLIC int hw_cached_config(const struct hw_cni *cni, const struct hw_conf *conf,
			       const struct hw_attach *at, struct hw_cached_list *ret_list,
			       struct hw_err *e);

/**
 * hw_cached_attachments() - list all cached attachments
 * @container_id: list only those of this container; NULL or "": all
 * @damaged:      called for each file that cannot be read; may be NULL
 * @ret_list:     the attachments; free with hw_cached_list_free()
 */
HW_PUBLIC int hw_cached_attachments(const struct hw_cni *cni, const char *container_id,
				    void (*damaged)(void *ctx, const char *file,
						    const struct hw_err *why),
				    void *ctx, struct hw_cached_list *ret_list, struct hw_err *e);

/**
 * hw_cached_list_free() - free the entries and empty the list
 * @list: the list; the struct itself is not freed
 */
HW_PUBLIC void hw_cached_list_free(struct hw_cached_list *list);

#ifdef __cplusplus
}
#endif

#endif
