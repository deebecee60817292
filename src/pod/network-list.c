/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pod/network-list.c - the networks of this node, and whether pods can be attached to them
 *
 * How:   the network in use is that of the watcher, which may be another one than its file describes: an
 *        invalid file does not replace it. For the others, the directory is read. What a name stands for
 *        is decided by network_load().
 */
#include "pod/network-list.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "cni/runtime/conf.h"
#include "pod/pod.h"

static const char *const extensions[] = { ".conf", ".conflist", ".json", NULL };

static struct network_entry *add_entry(struct network_list *list, const char *name,
				       const char *file, const char *message)
{
	struct network_entry *entry;

	list->v = mem_resize(list->v, list->n + 1, sizeof(*list->v));
	entry = &list->v[list->n++];
	*entry = (struct network_entry){
		.name = str_copy(name),
		.file = str_copy(file),
		.version = str_copy(""),
		.message = str_copy(message),
	};
	return entry;
}

static void set_plugins(struct network_entry *entry, const struct hw_conf *conf)
{
	free(entry->version);
	entry->version = str_copy(hw_conf_version(conf));
	for (size_t i = 0; i < hw_conf_count(conf); i++)
		strings_add(&entry->plugins, hw_conf_type(conf, i));
}

static struct network_entry *find_entry(struct network_list *list, const char *name)
{
	for (size_t i = 0; i < list->n; i++)
		if (str_equal(list->v[i].name, name))
			return &list->v[i];
	return NULL;
}

void network_list_done(struct network_list *list)
{
	for (size_t i = 0; i < list->n; i++) {
		free(list->v[i].name);
		free(list->v[i].file);
		free(list->v[i].version);
		hw_strings_free(&list->v[i].plugins);
		free(list->v[i].message);
	}
	free(list->v);
}

/* ---- files -------------------------------------------------------------------------- */

/* Return: why pods cannot be attached to the network of a file, allocated; "" if they can */
static char *find_reason(struct pods *p, const struct network_list *list,
			 const struct hw_conf *conf)
{
	const struct network_entry *in_use = list->n && list->v[0].in_use ? &list->v[0] : NULL;
	AUTO(hw_conf_free) struct hw_conf *used = NULL;
	struct hw_err e;
	const char *file;
	char *missing;

	if (in_use && str_equal(in_use->name, hw_conf_name(conf))) {
		file = in_use->file;
	} else {
		if (hw_conf_load(p->conf_dir, hw_conf_name(conf), &used, &e) < 0)
			return str_copy(e.msg);
		file = hw_conf_file(used);
	}
	if (!str_equal(file, hw_conf_file(conf)))
		return str_printf("network \"%s\" is defined in %s", hw_conf_name(conf), file);
	missing = network_watch_find_missing(p->options.network, conf, file);
	return missing ? missing : str_copy("");
}

static void add_file(struct pods *p, const char *file, struct network_list *list)
{
	AUTO(hw_conf_free) struct hw_conf *conf = NULL;
	autofree char *reason = NULL;
	struct hw_err e;

	if (hw_conf_open(file, &conf, &e) < 0) {
		add_entry(list, "", file, e.msg);
		return;
	}
	if (list->n && list->v[0].in_use && str_equal(list->v[0].file, file)) {
		if (list->v[0].plugins.n == 0)
			set_plugins(&list->v[0], conf);
		return;
	}
	reason = find_reason(p, list, conf);
	set_plugins(add_entry(list, hw_conf_name(conf), file, reason), conf);
}

/* ---- attached pods ------------------------------------------------------------------ */

static struct network_entry *add_deleted(struct network_list *list, const struct pod_attachment *a)
{
	AUTO(hw_conf_free) struct hw_conf *conf = NULL;
	struct network_entry *entry;
	struct hw_err e;

	entry = add_entry(list, a->network, "", "no file defines it any more");
	if (hw_conf_parse(a->config, strlen(a->config), &conf, &e) == 0)
		set_plugins(entry, conf);
	return entry;
}

/* A pod that is stopped is attached to no network. */
static bool is_attached(const struct pod_view *pod)
{
	return pod->network && pod->state != POD_STOPPED;
}

static void count_pod(const struct pod_view *pod, struct network_list *list)
{
	const struct pod_attachment *a = pod->network->attachments.v;

	for (size_t i = 0; i < pod->network->attachments.n; i++) {
		struct network_entry *entry = find_entry(list, a[i].network);
		bool counted = false;

		if (!entry)
			entry = add_deleted(list, &a[i]);
		for (size_t k = 0; k < i; k++)
			counted |= str_equal(a[k].network, a[i].network);
		entry->pods += !counted;
	}
}

/* ---- list --------------------------------------------------------------------------- */

int pods_networks(struct pods *p, struct network_list *ret, struct hw_err *e)
{
	AUTO(shared_unref)
	const struct network_view *network = network_watch_view(p->options.network);
	AUTO(network_list_done) struct network_list list = { 0 };
	AUTO(shared_unref) const struct pods_view *pods = NULL;
	AUTO(hw_strings_free) struct hw_strings files = { 0 };
	int r;

	r = hw_conf_files(p->conf_dir, extensions, &files, e);
	if (r < 0)
		return r;
	if (network->name) {
		struct network_entry *entry =
			add_entry(&list, network->name, network->file, network->message);

		entry->in_use = true;
		if (network->network)
			set_plugins(entry, network->network->conf);
	}
	for (size_t i = 0; i < files.n; i++)
		add_file(p, files.v[i], &list);
	pods = pods_view(p);
	for (size_t i = 0; i < pods->n; i++)
		if (is_attached(pods->pods[i]))
			count_pod(pods->pods[i], &list);
	*ret = list;
	list = (struct network_list){ 0 };
	return 0;
}
