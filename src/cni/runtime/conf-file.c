/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cni/runtime/conf-file.c - network configuration files and directories
 *
 * What:  lists the files of a directory, reads a file, finds a network by name,
 *        finds the first valid network.
 * Rules: a single plugin's file is always converted to a list with one plugin.
 *        In a search by name, an invalid file that contains the name ends the
 *        search with an error. Other invalid files are skipped; the error of
 *        the first one is returned if the network is not found.
 */
#include "cni/name.h"
#include "cni/runtime/conf.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/buf.h"
#include "base/os/file.h"

static const char *const list_extensions[] = { ".conflist", NULL };
static const char *const plugin_extensions[] = { ".conf", ".json", NULL };
static const char *const extra_extensions[] = { ".conf", NULL };
static const char *const all_extensions[] = { ".conf", ".conflist", ".json", NULL };

static bool has_extension(const char *name, const char *const *extensions)
{
	const char *dot = strrchr(name, '.');

	for (; dot && *extensions; extensions++)
		if (str_equal(dot, *extensions))
			return true;
	return false;
}

struct conf_listing {
	const char *dir;
	const char *const *extensions;
	struct hw_strings files;
};

static int add_conf_file(void *ctx, const struct file_entry *entry, struct hw_err *e)
{
	struct conf_listing *l = ctx;
	autofree char *path = NULL;

	(void)e;
	if ((entry->type != DT_REG && entry->type != DT_LNK) ||
	    !has_extension(entry->name, l->extensions))
		return 0;
	path = str_printf("%s%s%s", l->dir, str_ends(l->dir, "/") ? "" : "/", entry->name);
	strings_add(&l->files, path);
	return 0;
}

int hw_conf_files(const char *dir, const char *const *extensions, struct hw_strings *ret_files,
		  struct hw_err *e)
{
	struct conf_listing l = { dir, extensions, { 0 } };
	int r;

	r = file_walk(AT_FDCWD, dir, add_conf_file, &l, e);
	if (r < 0 && r != -ENOENT) {
		hw_strings_free(&l.files);
		return err_ctx(e, "list the network configurations in %s", dir);
	}
	*ret_files = l.files;
	return 0;
}

static int read_conf_file(const char *path, struct buf *ret_text, struct hw_err *e)
{
	int r;

	r = file_read(AT_FDCWD, path, CONF_SIZE_MAX, ret_text, e);
	if (r == -EFBIG)
		return err_text(e, r, "error reading %s: file too large: more than %d bytes", path,
				CONF_SIZE_MAX);
	if (r < 0)
		return err_ctx(e, "error reading %s", path);
	if (ret_text->len == 0)
		return err_text(e, -EINVAL, "error reading %s: the file is empty", path);
	return 0;
}

/* Appends the plugins of all .conf files in the directory DIR/NAME, where DIR contains the list's
 * file and NAME is the network's name. An invalid name ("", "../x"), which ADD rejects later, must
 * not become a path. */
static int add_extra_plugins(struct hw_conf *conf, struct hw_err *e)
{
	const char *slash = strrchr(conf->file, '/');
	AUTO(hw_strings_free) struct hw_strings files = { 0 };
	autofree char *dir = NULL;
	int r;

	if (!name_is_valid(conf->name))
		return 0;
	dir = slash ? str_printf("%.*s/%s", (int)(slash - conf->file), conf->file, conf->name)
		    : str_copy(conf->name);
	r = hw_conf_files(dir, extra_extensions, &files, e);
	if (r < 0)
		return r;
	for (size_t i = 0; i < files.n; i++) {
		AUTO(buf_done) struct buf text = { 0 };
		AUTO(value_free) struct value *object = NULL;

		r = read_conf_file(files.v[i], &text, e);
		if (r < 0)
			return r;
		r = value_parse(text.data, text.len, &object, e);
		if (r >= 0)
			r = conf_add_plugin(conf, object, e);
		if (r < 0)
			return err_ctx(e, "error loading CNI config file %s", files.v[i]);
	}
	return 0;
}

/* Fills a list with one plugin from a single plugin's configuration. */
static int fill_wrapped(struct hw_conf *conf, const struct buf *text, struct hw_err *e)
{
	AUTO(hw_conf_free) struct hw_conf *plugin = conf_new();
	autofree char *list = NULL;
	int r;

	r = conf_fill_plugin(plugin, text->data, text->len, e);
	if (r < 0) {
		conf->name = take_ptr(plugin->name);
		return r;
	}
	list = conf_list_text(plugin);
	return conf_fill_list(conf, list, strlen(list), e);
}

/* On failure, conf->name is set if the file contains a name. */
static int fill_from_file(struct hw_conf *conf, const char *path, struct hw_err *e)
{
	AUTO(buf_done) struct buf text = { 0 };
	int r;

	r = read_conf_file(path, &text, e);
	if (r < 0)
		return r;
	conf->file = str_copy(path);
	if (has_extension(path, plugin_extensions)) {
		r = fill_wrapped(conf, &text, e);
	} else {
		r = conf_fill_list(conf, text.data, text.len, e);
		if (r == 0 && !conf->only_inlined)
			r = add_extra_plugins(conf, e);
	}
	if (r == 0)
		r = conf_check_plugins(conf, e);
	if (r < 0)
		return err_ctx(e, "%s", path);
	return 0;
}

int hw_conf_open(const char *path, struct hw_conf **ret_conf, struct hw_err *e)
{
	AUTO(hw_conf_free) struct hw_conf *conf = conf_new();
	int r;

	r = fill_from_file(conf, path, e);
	if (r < 0)
		return r;
	*ret_conf = take_ptr(conf);
	return 0;
}

struct conf_search {
	const char *name;
	size_t files;	       /* number of files in the directory */
	struct hw_err invalid; /* error of the first invalid file; code 0: none */
	struct hw_conf *found; /* NULL: not found yet */
};

static int search_files(struct conf_search *s, const char *dir, const char *const *extensions,
			struct hw_err *e)
{
	AUTO(hw_strings_free) struct hw_strings files = { 0 };
	int r;

	r = hw_conf_files(dir, extensions, &files, e);
	if (r < 0)
		return r;
	s->files += files.n;
	for (size_t i = 0; i < files.n && !s->found; i++) {
		AUTO(hw_conf_free) struct hw_conf *conf = conf_new();
		struct hw_err why;

		r = fill_from_file(conf, files.v[i], &why);
		if (r == 0 && str_equal(conf->name, s->name)) {
			s->found = take_ptr(conf);
		} else if (r < 0 && str_equal(conf->name, s->name)) {
			*e = why;
			return r;
		} else if (r < 0 && s->invalid.code == 0) {
			s->invalid = why;
		}
	}
	return 0;
}

int hw_conf_load(const char *dir, const char *name, struct hw_conf **ret_conf, struct hw_err *e)
{
	struct conf_search s = { .name = name };
	int r;

	r = search_files(&s, dir, list_extensions, e);
	if (r == 0 && !s.found)
		r = search_files(&s, dir, plugin_extensions, e);
	if (r < 0)
		return r;
	if (s.found) {
		*ret_conf = s.found;
		return 0;
	}
	if (s.files == 0)
		return err_text(e, -ENOENT, "no net configurations found in %s", dir);
	if (s.invalid.code == 0)
		return err_text(e, -ENOENT, "no net configuration with name \"%s\" in %s", name,
				dir);
	*e = s.invalid;
	return err_ctx(e, "no net configuration with name \"%s\" in %s, and a file failed to load",
		       name, dir);
}

int hw_conf_load_first(const char *dir,
		       void (*skipped)(void *ctx, const char *file, const struct hw_err *why),
		       void *ctx, struct hw_conf **ret_conf, struct hw_err *e)
{
	AUTO(hw_strings_free) struct hw_strings files = { 0 };
	struct hw_err why;
	int r;

	r = hw_conf_files(dir, all_extensions, &files, e);
	if (r < 0)
		return r;
	for (size_t i = 0; i < files.n; i++) {
		r = hw_conf_open(files.v[i], ret_conf, &why);
		if (r == 0)
			return 0;
		if (skipped)
			skipped(ctx, files.v[i], &why);
	}
	if (files.n == 0)
		return err_text(e, -ENOENT, "no net configurations found in %s", dir);
	*e = why;
	return err_ctx(e, "no valid networks found in %s", dir);
}
