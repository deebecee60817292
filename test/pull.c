/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test/pull.c - pull and load images, controlled by commands on standard input, for test_pull*.py
 *
 *	pull [OPTION...] ROOT PROGRAM      ROOT: directory of the store; PROGRAM: hawser-fetch
 *
 * Commands, and what they print:
 *
 *	pull ID REFERENCE [USER PASSWORD]  start a pull in a thread; ID is a number below 64
 *	cancel ID                          cancel the request with this ID
 *	join ID                            wait for the result: "ID ok IMAGE DIGEST" or
 *	                                   "ID error ERRNO MESSAGE"
 *	load ID FILE                       load an archive: "ID ok NUMBER_OF_IMAGES" or
 *	                                   "ID error" as above
 *	images                             "NAME... ID" for each image, then "end"
 *	remove ID REFERENCE                remove an image: "removed"; ID is ignored
 *	usage                              "LAYERS BYTES"
 *	rest                               sleep, so that background work can finish
 */
#include <fcntl.h>
#include <getopt.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/os/file.h"
#include "base/str.h"
#include "base/time.h"
#include "image/archive/load.h"
#include "image/pull/pull.h"
#include "image/store/store.h"

#define REQUESTS    64
#define ARCHIVE_MAX (64 << 20)
#define REST_MS	    100

struct request {
	pthread_t thread;
	int cancel;
	char *reference, *username, *password;
	int code;
	struct pull_result result;
	struct hw_err e;
};

static struct store *store;
static struct puller *puller;
static struct pull_options options;
static struct request requests[REQUESTS];

static void *pull_thread(void *arg)
{
	struct request *r = arg;
	struct pull_request pull_request = { .reference = r->reference,
					     .username = r->username,
					     .password = r->password,
					     .deadline = TIME_NEVER,
					     .cancel_fd = r->cancel };

	r->code = pull(puller, &pull_request, &r->result, &r->e);
	return NULL;
}

static void do_pull(struct request *r, char **words)
{
	*r = (struct request){ .reference = str_copy(words[2]),
			       .username = str_copy(words[3]),
			       .password = str_copy(words[4]) };
	r->cancel = eventfd(0, EFD_CLOEXEC);
	if (pthread_create(&r->thread, NULL, pull_thread, r) != 0)
		exit(3);
}

static void do_cancel(struct request *r, char **words)
{
	(void)words;
	eventfd_write(r->cancel, 1);
}

static void do_join(struct request *r, char **words)
{
	pthread_join(r->thread, NULL);
	close(r->cancel);
	free(r->reference);
	free(r->username);
	free(r->password);
	if (r->code == 0)
		printf("%s ok %s %s\n", words[1], r->result.id, r->result.digest);
	else
		printf("%s error %d %s\n", words[1], -r->code, r->e.msg);
}

static int load_file(const char *file, struct load_result *ret, struct hw_err *e)
{
	AUTO(load_free) struct load *l = NULL;
	AUTO(buf_done) struct buf data = { 0 };
	int r = file_read(AT_FDCWD, file, ARCHIVE_MAX, &data, e);

	if (r == 0)
		r = load_new(store, &options, &l, e);
	if (r == 0)
		r = load_add(l, data.data, data.len, e);
	return r < 0 ? r : load_run(l, &(struct load_request){ .cancel_fd = -1 }, ret, e);
}

static void do_load(struct request *r, char **words)
{
	AUTO(load_result_done) struct load_result result = { 0 };

	r->code = load_file(words[2], &result, &r->e);
	if (r->code == 0)
		printf("%s ok %zu\n", words[1], result.n);
	else
		printf("%s error %d %s\n", words[1], -r->code, r->e.msg);
}

static void do_rest(struct request *r, char **words)
{
	(void)r;
	(void)words;
	time_sleep(REST_MS); /* the interval of background work, such as a checkpoint */
}

static void do_images(struct request *r, char **words)
{
	AUTO(store_snapshot_put) const struct store_snapshot *snap = store_snapshot_get(store);

	(void)r;
	(void)words;
	for (size_t i = 0; i < snap->n; i++) {
		const struct store_image *image = snap->images[i];

		for (size_t k = 0; k < image->tags.n; k++)
			printf("%s ", image->tags.v[k]);
		for (size_t k = 0; k < image->digests.n; k++)
			printf("%s ", image->digests.v[k]);
		puts(image->id);
	}
	puts("end");
}

static void do_remove(struct request *r, char **words)
{
	struct hw_err e;

	(void)r;
	puts(store_image_remove(store, words[2], &e) > 0 ? "removed" : "not removed");
}

static void do_usage(struct request *r, char **words)
{
	struct store_usage usage;

	(void)r;
	(void)words;
	store_usage(store, &usage);
	printf("%zu %lld\n", usage.layers, (long long)usage.bytes);
}

static const struct {
	const char *name;
	void (*run)(struct request *r, char **words);
} commands[] = {
	{ "pull", do_pull },	 { "cancel", do_cancel }, { "join", do_join },
	{ "images", do_images }, { "usage", do_usage },	  { "rest", do_rest },
	{ "remove", do_remove }, { "load", do_load },
};

static void run_command(char *line)
{
	char *words[6] = { 0 };
	long long id = 0;

	for (size_t n = 0; n < 5 && *line; n++) {
		words[n] = line;
		line += strcspn(line, " \n");
		if (*line)
			*line++ = '\0';
	}
	if (words[1] && !str_to_int64(words[1], 0, REQUESTS - 1, &id))
		exit(2);
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		if (str_equal(words[0], commands[i].name))
			commands[i].run(&requests[id], words);
	fflush(stdout);
}

static const struct option long_options[] = {
	{ "mirror", required_argument, NULL, 'm' },
	{ "plain-http", required_argument, NULL, 'p' },
	{ "auth-file", required_argument, NULL, 'a' },
	{ "idle", required_argument, NULL, 'i' },
	{ "keep-blobs", no_argument, NULL, 'k' },
	{ 0 },
};

static void parse_options(int argc, char **argv, struct pull_options *o, struct hw_strings *mirrors,
			  struct hw_strings *plain)
{
	long long n;
	int c;

	o->mirrors = mirrors;
	o->plain_http = plain;
	while ((c = getopt_long(argc, argv, "", long_options, NULL)) >= 0) {
		if (c == 'm')
			strings_add(mirrors, optarg);
		else if (c == 'p')
			strings_add(plain, optarg);
		else if (c == 'a')
			o->auth_file = optarg;
		else if (c == 'k')
			o->keep_blobs = true;
		else if (c == 'i' && str_to_int64(optarg, 1, INT32_MAX, &n))
			o->idle_ms = (int)n;
		else
			exit(2);
	}
	if (optind != argc - 2)
		exit(2);
	o->program = argv[optind + 1];
}

int main(int argc, char **argv)
{
	AUTO(hw_strings_free) struct hw_strings mirrors = { 0 }, plain = { 0 };
	char line[4096];
	struct hw_err e;

	parse_options(argc, argv, &options, &mirrors, &plain);
	if (store_open(argv[optind], &store, &e) < 0) {
		fprintf(stderr, "%s\n", e.msg);
		return 1;
	}
	if (store_sweep(store, &e) < 0)
		fprintf(stderr, "%s\n", e.msg);
	puller = puller_new(store, &options);
	while (fgets(line, sizeof(line), stdin))
		run_command(line);
	puller_free(puller);
	store_close(store);
	return 0;
}
