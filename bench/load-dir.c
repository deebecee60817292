/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench/load-dir.c - time hw_conf_load() in a directory with many networks
 *
 * What:  load-dir SAMPLES DIR NAME
 *        prints a line "OURS PEER" for each sample, in nanoseconds, like bench/spawn.c.
 *        OURS is the time of hw_conf_load(). PEER is the time of the least possible
 *        work: read() and json_loadb() of every file of DIR.
 */
#include <dirent.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <hawser/cni.h>

#define FILE_MAX 65536

static void __attribute__((noreturn)) die(const char *what, const char *why)
{
	fprintf(stderr, "load-dir: %s: %s\n", what, why);
	exit(1);
}

static int64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000LL + ts.tv_nsec;
}

static void load_ours(const char *dir, const char *name)
{
	struct hw_conf *conf = NULL;
	struct hw_err e;

	if (hw_conf_load(dir, name, &conf, &e) < 0)
		die(dir, e.msg);
	hw_conf_free(conf);
}

static void parse_file(int dir, const char *name)
{
	static char text[FILE_MAX];
	int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text));
	json_error_t error;
	json_t *json;

	if (n < 0)
		die(name, "open or read failed");
	close(fd);
	json = json_loadb(text, (size_t)n, 0, &error);
	if (!json)
		die(name, error.text);
	json_decref(json);
}

static void load_peer(const char *path)
{
	DIR *d = opendir(path);

	if (!d)
		die(path, "opendir failed");
	for (struct dirent *entry; (entry = readdir(d)) != NULL;)
		if (entry->d_name[0] != '.')
			parse_file(dirfd(d), entry->d_name);
	closedir(d);
}

int main(int argc, char **argv)
{
	long samples = argc == 4 ? strtol(argv[1], NULL, 10) : 0;

	if (samples <= 0)
		die("usage", "load-dir SAMPLES DIR NAME");
	for (long i = -(samples / 10); i < samples; i++) {
		int64_t start = now_ns(), between;

		load_ours(argv[2], argv[3]);
		between = now_ns();
		load_peer(argv[2]);
		if (i >= 0)
			printf("%lld %lld\n", (long long)(between - start),
			       (long long)(now_ns() - between));
	}
	return 0;
}
