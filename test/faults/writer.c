/* SPDX-License-Identifier: Apache-2.0 */
/*
 * faults/writer.c - command that writes cache entries and records
 *
 * What:  writer cache|record DIR write TEXT... | read | remove
 *        write: write one entry, once for each TEXT. read: print the entry's
 *        TEXT, or "absent" if the entry does not exist. remove: remove it.
 * Rules: read fails if the entry exists but is damaged.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hawser/cni.h>

#include "base/mem.h"
#include "base/str.h"
#include "cni/plugin/record.h"
#include "cni/runtime/cache.h"

static const struct hw_attach attach = {
	.size = sizeof(attach), .container_id = "c1", .netns = "/run/netns/c1", .ifname = "eth0"
};

static const char conf_json[] =
	"{\"cniVersion\":\"1.0.0\",\"name\":\"net\",\"plugins\":[{\"type\":\"noop\"}]}";

static int cache_save(const char *dir, const char *text, struct hw_err *e)
{
	autofree char *json =
		str_printf("{\"cniVersion\":\"1.0.0\",\"dns\":{\"domain\":\"%s\"}}", text);
	struct hw_conf *conf = NULL;
	int r = hw_conf_parse(conf_json, strlen(conf_json), &conf, e);

	if (r == 0)
		r = cache_write(dir, conf, &attach, json, e);
	hw_conf_free(conf);
	return r;
}

static int cache_load(const char *dir, char **ret_text, struct hw_err *e)
{
	AUTO(cache_entry_done) struct hw_cached entry = { 0 };
	int r = cache_read(dir, "net", &attach, &entry, e);

	if (r > 0)
		*ret_text = take_ptr(entry.result);
	return r;
}

static int cache_delete(const char *dir, struct hw_err *e)
{
	return cache_remove(dir, "net", &attach, e);
}

static int record_save(const char *dir, const char *text, struct hw_err *e)
{
	autofree char *made = str_printf("{\"text\":\"%s\"}", text);
	struct record r = {
		.plugin = (char *)"writer",
		.network = (char *)"net",
		.container_id = (char *)attach.container_id,
		.ifname = (char *)attach.ifname,
		.netns = (char *)attach.netns,
		.config = (char *)conf_json,
		.created = made,
	};

	return record_write(dir, &r, e);
}

static int record_load(const char *dir, char **ret_text, struct hw_err *e)
{
	AUTO(record_done) struct record record = { 0 };
	int r = record_read(dir, "writer", "net", attach.container_id, attach.ifname, "", &record,
			    e);

	if (r > 0)
		*ret_text = take_ptr(record.created);
	return r;
}

static int record_delete(const char *dir, struct hw_err *e)
{
	return record_remove(dir, "writer", "net", attach.container_id, attach.ifname, "", e);
}

static const struct writer {
	const char *name;
	int (*save)(const char *dir, const char *text, struct hw_err *e);
	int (*load)(const char *dir, char **ret_text, struct hw_err *e);
	int (*delete)(const char *dir, struct hw_err *e);
} writers[] = {
	{ "cache", cache_save, cache_load, cache_delete },
	{ "record", record_save, record_load, record_delete },
};

static const struct writer *find_writer(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(writers); i++)
		if (str_equal(writers[i].name, name))
			return &writers[i];
	return NULL;
}

static int run_command(const struct writer *writer, const char *dir, char **argv, struct hw_err *e)
{
	autofree char *text = NULL;
	int r = 0;

	if (str_equal(argv[0], "remove"))
		return writer->delete (dir, e);
	if (str_equal(argv[0], "write")) {
		while (r == 0 && *++argv)
			r = writer->save(dir, *argv, e);
		return r;
	}
	r = writer->load(dir, &text, e);
	if (r >= 0)
		puts(r > 0 ? text : "absent");
	return r;
}

int main(int argc, char **argv)
{
	const struct writer *writer = argc > 3 ? find_writer(argv[1]) : NULL;
	struct hw_err e;

	if (!writer) {
		fprintf(stderr, "usage: writer cache|record DIR write TEXT... | read | remove\n");
		return 2;
	}
	if (run_command(writer, argv[2], argv + 3, &e) < 0) {
		fprintf(stderr, "writer: %s\n", e.msg);
		return 1;
	}
	return 0;
}
