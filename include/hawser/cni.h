/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hawser/cni.h - run CNI networks
 *
 * What:  find a network's configuration, run its plugins for a container, and
 *        remember the result: what Go programs do with libcni.
 * How:   struct hw_conf is a network, struct hw_cni says where plugins and
 *        state are, struct hw_attach is a container's place in a network.
 * Rules: a struct hw_cni and a struct hw_conf are never changed by the calls
 *        below, so threads may share them; different attachments may run at
 *        the same time. The library is a guest: no signal handlers, no global
 *        state, it waits only for its own children. Out of memory it prints
 *        one line and aborts.
 *        Strings handed in are borrowed for the call; ret_ values belong to
 *        the caller. Structs that the caller fills start with their size, so
 *        that they can grow; those that the library makes grow at their end,
 *        and where they stand in arrays into what they hold in reserve. struct
 *        hw_err, struct hw_valid and those of addr.h and field.h stay as they are.
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
 * hw_conf_files() - the files of a directory with one of the given extensions
 * @dir:        a missing directory counts as empty
 * @extensions: such as ".conf", NULL at the end
 * @ret_files:  full paths in byte order; free with hw_strings_free()
 *
 * Regular files and symbolic links, by their last extension.
 */
HW_PUBLIC int hw_conf_files(const char *dir, const char *const *extensions,
			    struct hw_strings *ret_files, struct hw_err *e);

/**
 * hw_conf_load() - a network of a directory, by its name
 * @dir:      where configurations are, such as /etc/cni/net.d
 * @name:     of the network
 * @ret_conf: to be ended with hw_conf_free()
 *
 * First all ".conflist" files are tried in byte order of their names, then
 * ".conf" and ".json" files; the first of that name wins. A file that cannot be
 * read or is not valid is passed over, unless it says the wanted name itself;
 * when no other has that name, its error is returned.
 *
 * Return: 0, -ENOENT when there is none, or why a file is not valid
 */
HW_PUBLIC int hw_conf_load(const char *dir, const char *name, struct hw_conf **ret_conf,
			   struct hw_err *e);

/**
 * hw_conf_load_first() - the first valid network of a directory
 * @dir:      where configurations are; they are tried in byte order of their names
 * @skipped:  told of each file that is not valid; may be NULL
 * @ret_conf: to be ended with hw_conf_free()
 */
HW_PUBLIC int hw_conf_load_first(const char *dir,
				 void (*skipped)(void *ctx, const char *file,
						 const struct hw_err *why),
				 void *ctx, struct hw_conf **ret_conf, struct hw_err *e);

/**
 * hw_conf_open() - a network from a file
 * @path:     the file
 * @ret_conf: to be ended with hw_conf_free()
 *
 * ".conf" and ".json" hold a single plugin, which becomes a list of one; any
 * other file is a list. To a list, unless it says loadOnlyInlinedPlugins, the
 * plugins of all ".conf" files in the directory of the network's name beside
 * the file are appended. A file may have 1 MiB.
 */
HW_PUBLIC int hw_conf_open(const char *path, struct hw_conf **ret_conf, struct hw_err *e);

/**
 * hw_conf_parse() - a list from text
 * @json:     the text, @len bytes
 * @ret_conf: to be ended with hw_conf_free()
 */
HW_PUBLIC int hw_conf_parse(const char *json, size_t len, struct hw_conf **ret_conf,
			    struct hw_err *e);

/**
 * hw_conf_parse_plugin() - a single plugin's configuration from text
 * @json:     the text, @len bytes
 * @ret_conf: to be ended with hw_conf_free()
 *
 * The verbs below then run that plugin alone, as libcni's AddNetwork and its
 * kin do. hw_conf_to_list() wraps it into a list of one.
 */
HW_PUBLIC int hw_conf_parse_plugin(const char *json, size_t len, struct hw_conf **ret_conf,
				   struct hw_err *e);
/**
 * hw_conf_to_list() - a single plugin's configuration as a list of one
 * @plugin:   from hw_conf_parse_plugin()
 * @ret_list: to be ended with hw_conf_free()
 */
HW_PUBLIC int hw_conf_to_list(const struct hw_conf *plugin, struct hw_conf **ret_list,
			      struct hw_err *e);
/**
 * hw_conf_free() - the end of a network's configuration
 * @conf: may be NULL
 */
HW_PUBLIC void hw_conf_free(struct hw_conf *conf);

/**
 * hw_conf_name() - the name of a network
 *
 * Return: the name; it lives as long as @conf
 */
HW_PUBLIC const char *hw_conf_name(const struct hw_conf *conf);

/**
 * hw_conf_version() - the spec version of a network
 *
 * Return: the version that was chosen, "" when none is given
 */
HW_PUBLIC const char *hw_conf_version(const struct hw_conf *conf);

/**
 * hw_conf_file() - the file that a network came from
 *
 * Return: the path; NULL when it came from text
 */
HW_PUBLIC const char *hw_conf_file(const struct hw_conf *conf);

/**
 * hw_conf_bytes() - the text that a network was made from
 *
 * Return: JSON text; it lives as long as @conf
 */
HW_PUBLIC const char *hw_conf_bytes(const struct hw_conf *conf);

/**
 * hw_conf_is_list() - is it a list, or a single plugin's configuration?
 *
 * Return: true for a list
 */
HW_PUBLIC bool hw_conf_is_list(const struct hw_conf *conf);

/**
 * hw_conf_check_disabled() - is CHECK switched off for this network?
 *
 * Return: true with disableCheck
 */
HW_PUBLIC bool hw_conf_check_disabled(const struct hw_conf *conf);

/**
 * hw_conf_gc_disabled() - is GC switched off for this network?
 *
 * Return: true with disableGC
 */
HW_PUBLIC bool hw_conf_gc_disabled(const struct hw_conf *conf);

/**
 * hw_conf_count() - how many plugins a network has
 *
 * Return: their number; 1 for a single plugin
 */
HW_PUBLIC size_t hw_conf_count(const struct hw_conf *conf);

/**
 * hw_conf_type() - the type of one of a network's plugins
 * @i: its place in the list, from 0
 *
 * Return: the name of its program; NULL beyond the last
 */
HW_PUBLIC const char *hw_conf_type(const struct hw_conf *conf, size_t i);

/**
 * hw_conf_plugin() - the configuration of one of a network's plugins
 * @i: its place in the list, from 0
 *
 * Return: JSON text, as it was written in the list; NULL beyond the last
 */
HW_PUBLIC const char *hw_conf_plugin(const struct hw_conf *conf, size_t i);

/* ---- the exec seam ------------------------------------------------------ */

/* One run of a plugin. */
struct hw_run {
	size_t size;
	const char *plugin;	/* path, as find() returned it */
	const char *const *env; /* "K=V", NULL at the end: the whole environment */
	const char *input;	/* standard input */
	size_t input_len;
	int cancel_fd;	     /* readable: stop; 0 or -1: none */
	bool stderr_through; /* its standard error is ours; else collect it */
	int64_t deadline_ns; /* CLOCK_MONOTONIC; 0: none */
};

/* What came of it; strings are malloc()ed and belong to the caller of run(). */
struct hw_ran {
	size_t size;
	int status; /* as waitpid() reports it */
	char *output;
	size_t output_len;
	char *errors; /* standard error; NULL when passed through */
	size_t errors_len;
};

/* How plugins are found and run; NULL members mean the default. */
struct hw_exec {
	size_t size;
	void *ctx;
	/* Return: 0 and the plugin's path in @ret_path (malloc()ed) */
	int (*find)(void *ctx, const char *plugin, const char *const *dirs, char **ret_path,
		    struct hw_err *e);
	/* Return: 0 when the plugin ran, whatever its exit status */
	int (*run)(void *ctx, const struct hw_run *run, struct hw_ran *ret_ran, struct hw_err *e);
};

/**
 * hw_exec_find() - the default find(): the first directory that has the plugin
 * @ctx:      not used
 * @plugin:   its name, without a slash
 * @dirs:     where to look, NULL at the end; "" is passed over
 * @ret_path: the path, to be freed by the caller
 *
 * A regular file is taken whether or not it can be executed, as libcni does.
 *
 * Return: 0, or a negative errno
 */
HW_PUBLIC int hw_exec_find(void *ctx, const char *plugin, const char *const *dirs, char **ret_path,
			   struct hw_err *e);

/**
 * hw_exec_run() - the default run(): fork and exec
 * @ctx:     not used
 * @run:     what to run
 * @ret_ran: its status and output, its .size set before; the caller frees output
 *           and errors
 *
 * A file that is being written (ETXTBSY) is tried again for five seconds. At
 * the deadline, on cancel and after too much output the plugin and its process
 * group are killed.
 *
 * Return: 0 when the plugin ran, whatever its exit status; -ETIMEDOUT,
 * -ECANCELED, -EFBIG after it was killed; else why it could not be started
 */
HW_PUBLIC int hw_exec_run(void *ctx, const struct hw_run *run, struct hw_ran *ret_ran,
			  struct hw_err *e);

/* ---- running ------------------------------------------------------------ */

struct hw_cni;

enum hw_stderr {
	HW_STDERR_AFTER,   /* copied to ours after a success, as libcni does */
	HW_STDERR_THROUGH, /* the plugin writes to ours directly */
	HW_STDERR_DROP,
};

struct hw_cni_options {
	size_t size;
	const char *const *plugin_dirs; /* NULL at the end; where plugins are */
	const char *cache_dir;		/* NULL: /var/lib/cni */
	/* Locks; NULL: $HAWSER_STATE, else /run/hawser, or $XDG_RUNTIME_DIR/hawser without root */
	const char *state_dir;
	const struct hw_exec *exec; /* NULL: fork and exec */
	enum hw_stderr stderr_mode;
	int lock_timeout_ms; /* wait for a GC or for ADDs; 0: 60 s; then error 11 */
	/* For the calls without a struct hw_attach, which carries its own: */
	int cancel_fd;	/* readable: stop; 0 or -1: none */
	int timeout_ms; /* for the whole call; 0: none */
	/* Told, by the thread that called, of a damaged cache file that DEL or GC passed over. */
	void (*damaged)(void *ctx, const char *file, const struct hw_err *why);
	void *damaged_ctx;
};

/**
 * hw_cni_new() - where plugins, cache and locks are
 * @options: copied, with .exec; only .exec->ctx and .damaged_ctx must live as long
 * @ret_cni: to be ended with hw_cni_free(); threads may share it
 * @e:       why not
 *
 * Nothing is opened or made yet.
 *
 * Return: 0; -EINVAL when .size is not set; -E2BIG when the caller's struct is
 * newer than this library and uses what the library does not know
 */
HW_PUBLIC int hw_cni_new(const struct hw_cni_options *options, struct hw_cni **ret_cni,
			 struct hw_err *e);

/**
 * hw_cni_free() - the end of a struct hw_cni
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
	HW_ADD_UNDO = 1 << 0, /* when a plugin fails, DEL the whole list before returning */
};

/**
 * hw_add() - attach a container
 * @flags:      HW_ADD_UNDO, or 0 for libcni's behaviour (nothing is undone)
 * @ret_result: the last plugin's result; may be NULL
 *
 * Every plugin is looked for, and the names are checked, before the first one
 * is run. The first error ends the call; that of a plugin keeps its code. An
 * undo has a minute of its own, also after a cancel; what goes wrong in it is
 * told in the details. Nothing is undone where the cache knows an earlier ADD
 * of the same attachment, which would be ended with it.
 *
 * Return: 0, or a negative errno; -ETIMEDOUT and -ECANCELED when the plugin was
 * killed; -EINVAL for a flag that this library lacks; CNI code 11 when a GC of
 * the network did not end in time
 */
HW_PUBLIC int hw_add(const struct hw_cni *cni, const struct hw_conf *conf,
		     const struct hw_attach *at, unsigned flags, struct hw_result **ret_result,
		     struct hw_err *e);

/**
 * hw_del() - detach a container; succeeds when it is already gone
 *
 * The plugins are run in reverse order with the cached result. After an error
 * the cache keeps the attachment, so that the call can be repeated.
 */
HW_PUBLIC int hw_del(const struct hw_cni *cni, const struct hw_conf *conf,
		     const struct hw_attach *at, struct hw_err *e);

/**
 * hw_check() - is the attachment as ADD made it?
 *
 * Return: 0 when it is, or CHECK is switched off; a negative errno with the
 * plugin's error; -EOPNOTSUPP for a network before 0.4.0
 */
HW_PUBLIC int hw_check(const struct hw_cni *cni, const struct hw_conf *conf,
		       const struct hw_attach *at, struct hw_err *e);

struct hw_valid {
	const char *container_id;
	const char *ifname;
};

/**
 * hw_gc() - end every attachment of the network that is not named
 * @valid:   those to keep; NULL: libcni's nil, every cached attachment ends
 * @n_valid: their number
 *
 * Goes on after an error; all of them are in the message, one per line. What
 * an ADD writes to the cache after the call has looked there is kept too, as
 * @valid cannot know of it. Waits for the running ADDs and DELs of the network,
 * at most .lock_timeout_ms, then fails with CNI code 11.
 */
HW_PUBLIC int hw_gc(const struct hw_cni *cni, const struct hw_conf *conf,
		    const struct hw_valid *valid, size_t n_valid, struct hw_err *e);

/**
 * hw_status() - could an ADD work now?
 *
 * Return: 0 when it could, or the network is before 1.1.0; a negative errno
 * with the plugin's own code: 50 not available, 51 limited connectivity
 */
HW_PUBLIC int hw_status(const struct hw_cni *cni, const struct hw_conf *conf, struct hw_err *e);

/**
 * hw_validate() - is every plugin there, and does it support the network's version?
 * @capabilities:     those that the network must declare; NULL at the end; may be NULL
 * @ret_capabilities: those that it declares; free with hw_strings_free(); may be NULL
 *
 * Of a list, the errors of all plugins are told.
 */
HW_PUBLIC int hw_validate(const struct hw_cni *cni, const struct hw_conf *conf,
			  const char *const *capabilities, struct hw_strings *ret_capabilities,
			  struct hw_err *e);

/**
 * hw_plugin_versions() - the spec versions that an installed plugin supports
 * @plugin:       its name
 * @ret_versions: free with hw_strings_free()
 */
HW_PUBLIC int hw_plugin_versions(const struct hw_cni *cni, const char *plugin,
				 struct hw_strings *ret_versions, struct hw_err *e);

/* ---- what was remembered ------------------------------------------------- */

/**
 * hw_cached_result() - the result of the ADD, in the network's version
 * @ret_result: to be ended with hw_result_free()
 *
 * Return: 1 with a result, 0 with NULL when there is none, negative on error
 */
HW_PUBLIC int hw_cached_result(const struct hw_cni *cni, const struct hw_conf *conf,
			       const struct hw_attach *at, struct hw_result **ret_result,
			       struct hw_err *e);

/* One cached attachment, as its ADD was called. */
struct hw_cached {
	char *network;
	char *container_id;
	char *ifname;
	char *netns; /* NULL: not known */
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
 * hw_cached_config() - the configuration and arguments that the ADD used
 * @ret_list: free with hw_cached_list_free()
 *
 * Return: 1 with one entry, 0 when there is none, negative on error
 */
HW_PUBLIC int hw_cached_config(const struct hw_cni *cni, const struct hw_conf *conf,
			       const struct hw_attach *at, struct hw_cached_list *ret_list,
			       struct hw_err *e);

/**
 * hw_cached_attachments() - every cached attachment
 * @container_id: of this container only; NULL or "": all
 * @damaged:      told of each file that cannot be read; may be NULL
 * @ret_list:     free with hw_cached_list_free()
 */
HW_PUBLIC int hw_cached_attachments(const struct hw_cni *cni, const char *container_id,
				    void (*damaged)(void *ctx, const char *file,
						    const struct hw_err *why),
				    void *ctx, struct hw_cached_list *ret_list, struct hw_err *e);

/**
 * hw_cached_list_free() - free the entries and empty the list
 * @list: the list; the struct itself, which may be on the stack, is not freed
 */
HW_PUBLIC void hw_cached_list_free(struct hw_cached_list *list);

#ifdef __cplusplus
}
#endif

#endif
