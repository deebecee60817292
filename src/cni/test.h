/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cni/test.h - helpers for unit tests that run plugins
 *
 * A struct place is a temporary directory for one test, with directories for
 * plugins, cache and state. Plugins are shell scripts: $D is the temporary
 * directory, and place_notes() returns what they wrote with `note`.
 */
#ifndef CNI_TEST_H
#define CNI_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the headers above */
#include <cmocka.h>

#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <hawser/cni.h>

#include "base/mem.h"
#include "base/os/file.h"
#include "base/str.h"

/* A test with its own struct place: PLACE_TEST("run: a sentence", function) */
#define PLACE_TEST(sentence, f)                                                                    \
	{                                                                                          \
		sentence, f, place_setup, place_teardown, NULL                                     \
	}

struct place {
	char dir[256];
	char bin[300], cache[300], state[300];
	const char *dirs[2];
};

static inline int place_remove_one(const char *path, const struct stat *st, int type,
				   struct FTW *ftw)
{
	(void)st, (void)type, (void)ftw;
	return remove(path);
}

static inline int place_teardown(void **state)
{
	struct place *p = *state;

	nftw(p->dir, place_remove_one, 16, FTW_DEPTH | FTW_PHYS);
	free(p);
	return 0;
}

static inline int place_setup(void **state)
{
	struct place *p = mem_new(sizeof(*p));
	const char *tmp = getenv("TMPDIR");

	snprintf(p->dir, sizeof(p->dir), "%s/hawser-test-XXXXXX", tmp ? tmp : "/tmp");
	if (!mkdtemp(p->dir))
		return -1;
	snprintf(p->bin, sizeof(p->bin), "%s/bin", p->dir);
	snprintf(p->cache, sizeof(p->cache), "%s/cache", p->dir);
	snprintf(p->state, sizeof(p->state), "%s/state", p->dir);
	p->dirs[0] = p->bin;
	*state = p;
	return mkdir(p->bin, 0700);
}

static inline void place_write(const struct place *p, const char *name, const char *text,
			       mode_t mode)
{
	autofree char *path = str_printf("%s/%s", p->dir, name);
	struct hw_err e;

	assert_int_equal(file_replace(AT_FDCWD, path, text, strlen(text), mode, 0, &e), 0);
}

/* Writes a plugin as a shell script. In the script, $N is the name of the plugin. */
static inline void place_plugin(const struct place *p, const char *name, const char *body)
{
	autofree char *file = str_printf("bin/%s", name);
	autofree char *text = str_printf("#!/bin/sh\nD='%s'\nN=%s\n"
					 "note() { echo \"$@\" >>\"$D/notes\"; }\n%s\n",
					 p->dir, name, body);

	place_write(p, file, text, 0755);
}

/* Return: the content of a file; "" if it does not exist */
static inline char *place_read(const struct place *p, const char *name)
{
	autofree char *path = str_printf("%s/%s", p->dir, name);
	AUTO(buf_done) struct buf b = { 0 };
	struct hw_err e;

	(void)file_read(AT_FDCWD, path, 1 << 20, &b, &e);
	return buf_take(&b);
}

/* Return: all notes of the plugins since the last call */
static inline char *place_notes(const struct place *p)
{
	autofree char *path = str_printf("%s/notes", p->dir);
	char *text = place_read(p, "notes");

	unlink(path);
	return text;
}

static inline void assert_notes(const struct place *p, const char *want)
{
	autofree char *text = place_notes(p);

	assert_string_equal(text, want);
}

static inline bool place_has(const struct place *p, const char *name)
{
	autofree char *path = str_printf("%s/%s", p->dir, name);

	return access(path, F_OK) == 0;
}

/* Return: options with all directories inside the place */
static inline struct hw_cni_options place_options(const struct place *p)
{
	return (struct hw_cni_options){
		.size = sizeof(struct hw_cni_options),
		.plugin_dirs = p->dirs,
		.cache_dir = p->cache,
		.state_dir = p->state,
		.stderr_mode = HW_STDERR_DROP,
		.lock_timeout_ms = 200,
	};
}

static inline struct hw_cni *place_cni(const struct place *p)
{
	struct hw_cni_options options = place_options(p);
	struct hw_cni *cni = NULL;
	struct hw_err e;

	assert_int_equal(hw_cni_new(&options, &cni, &e), 0);
	return cni;
}

static inline struct hw_conf *test_list(const char *json)
{
	struct hw_conf *conf = NULL;
	struct hw_err e;

	if (hw_conf_parse(json, strlen(json), &conf, &e) < 0)
		fail_msg("%s", e.msg);
	return conf;
}

static inline struct hw_conf *test_plugin(const char *json)
{
	struct hw_conf *conf = NULL;
	struct hw_err e;

	if (hw_conf_parse_plugin(json, strlen(json), &conf, &e) < 0)
		fail_msg("%s", e.msg);
	return conf;
}

/* The attachment that most tests use. */
#define TEST_ATTACH                                                                                \
	{                                                                                          \
		.size = sizeof(struct hw_attach), .container_id = "c1", .netns = "/run/netns/c1",  \
		.ifname = "eth0"                                                                   \
	}

#define assert_ok(call, e)                                                                         \
	do {                                                                                       \
		if ((call) < 0)                                                                    \
			fail_msg("%s: %s", #call, (e).msg);                                        \
	} while (0)

static inline void assert_starts(const char *text, const char *start)
{
	if (!str_starts(text, start))
		fail_msg("\"%s\" does not start with \"%s\"", text, start);
}

static inline void assert_contains(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("\"%s\" does not contain \"%s\"", text, part);
}

#endif
