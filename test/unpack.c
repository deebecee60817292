/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test/unpack.c - unpacks, rebuilds and verifies layers on the command line, for test_unpack.py
 *
 *	unpack [OPTION...] ROOT <ARCHIVE      unpack, print the result as JSON; --below DIR, once
 *	                                      for each layer below: implied directories get the
 *	                                      attributes that they have there
 *	unpack --rebuild RECIPE ROOT          write the archive to standard output
 *	unpack --verify RECIPE ROOT           print a line for each damaged file; --names N: keep at
 *	                                      most N names in memory
 *
 * On failure an error is printed to standard error, and the exit status is 1; 2: usage.
 */
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <unistd.h>

#include "base/str.h"
#include "fetch/layer/rebuild.h"
#include "fetch/unpack/implied.h"
#include "fetch/unpacker.h"

struct arguments {
	struct unpacker unpacker;
	const char *recipe, *rebuild, *verify;
	size_t names; /* see rebuild_verify() */
	int below[16];
	size_t n_below;
};

static const struct option names[] = {
	{ "bytes", required_argument, NULL, 'b' },
	{ "entries", required_argument, NULL, 'n' },
	{ "reserve", required_argument, NULL, 'r' },
	{ "recipe", required_argument, NULL, 'o' },
	{ "diff-id", required_argument, NULL, 'd' },
	{ "rebuild", required_argument, NULL, 'R' },
	{ "verify", required_argument, NULL, 'V' },
	{ "chunk", required_argument, NULL, 'c' },
	{ "below", required_argument, NULL, 'B' },
	{ "open", no_argument, NULL, 'O' },
	{ "idle", required_argument, NULL, 'i' },
	{ "names", required_argument, NULL, 'N' },
	{ 0 },
};

static int64_t parse_number(const char *text)
{
	long long n = 0;

	if (!str_to_int64(text, 0, INT64_MAX, &n))
		exit(2);
	return n;
}

static void add_below(struct arguments *a, const char *path)
{
	if (a->n_below == ARRAY_SIZE(a->below))
		exit(2);
	a->below[a->n_below++] = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

static void parse_arguments(int argc, char **argv, struct arguments *a)
{
	int c;

	while ((c = getopt_long(argc, argv, "", names, NULL)) >= 0) {
		switch (c) {
		case 'b':
			a->unpacker.unpack.bytes = parse_number(optarg);
			break;
		case 'n':
			a->unpacker.unpack.entries = parse_number(optarg);
			break;
		case 'r':
			a->unpacker.unpack.reserve = parse_number(optarg);
			break;
		case 'c':
			a->unpacker.chunk = (size_t)parse_number(optarg);
			break;
		case 'o':
			a->recipe = optarg;
			break;
		case 'd':
			a->unpacker.diff_id = optarg;
			break;
		case 'R':
			a->rebuild = optarg;
			break;
		case 'V':
			a->verify = optarg;
			break;
		case 'O':
			a->unpacker.open = true;
			break;
		case 'i':
			a->unpacker.idle_ms = (int)parse_number(optarg);
			break;
		case 'N':
			a->names = (size_t)parse_number(optarg);
			break;
		case 'B':
			add_below(a, optarg);
			break;
		default:
			exit(2);
		}
	}
	if (optind != argc - 1)
		exit(2);
}

static int unpack_layer(const struct arguments *a, struct hw_err *e)
{
	AUTO(unpacked_done) struct unpacked result = { 0 };
	int r = unpacker_run(&a->unpacker, &result, e);

	if (r == 0)
		r = implied_inherit(a->unpacker.unpack.root, &result.implied, a->below, a->n_below,
				    e);
	if (r < 0)
		return r;
	result.rebuildable = result.rebuildable && r == 0;
	autofree char *json = unpacked_encode(&result);
	puts(json);
	return 0;
}

static int print_damaged(void *ctx, const char *path, const char *why, struct hw_err *e)
{
	(void)ctx;
	(void)e;
	printf("%s: %s\n", path, why);
	return 0;
}

static int run_command(struct arguments *a, const char *root, struct hw_err *e)
{
	const char *recipe = a->rebuild ? a->rebuild : a->verify;
	autoclose int dir = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	autoclose int fd = -1;

	if (recipe)
		fd = open(recipe, O_RDONLY | O_CLOEXEC);
	else if (a->recipe)
		fd = open(a->recipe, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (dir < 0 || ((recipe || a->recipe) && fd < 0))
		return err_text(e, -1, "open the root or the recipe");
	if (a->rebuild)
		return rebuild_archive(fd, dir, STDOUT_FILENO, e);
	if (a->verify)
		return rebuild_verify(fd, dir, a->names, print_damaged, NULL, e);
	a->unpacker.unpack.root = dir;
	a->unpacker.unpack.recipe = fd;
	return unpack_layer(a, e);
}

int main(int argc, char **argv)
{
	struct arguments a = {
		.names = EXPECTED_MAX,
		.unpacker = {
			.archive = STDIN_FILENO,
			.chunk = UNPACKER_CHUNK,
			.unpack = { .bytes = UNPACK_BYTES_MAX, .entries = UNPACK_ENTRIES_MAX,
				    .sync = true },
		},
	};
	struct hw_err e;

	parse_arguments(argc, argv, &a);
	if (run_command(&a, argv[optind], &e) == 0)
		return 0;
	fprintf(stderr, "%s\n", e.msg);
	return 1;
}
