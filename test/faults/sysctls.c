/* SPDX-License-Identifier: Apache-2.0 */
/*
 * faults/sysctls.c - print network sysctls of this and of named namespaces
 *
 * What:  sysctls [NETNS...]: one line for each sysctl: namespace, path below
 *        /proc/sys/net, value.
 * Rules: sorted. Unreadable sysctls and those that change by themselves are left
 *        out.
 * Not:   `grep -r ""` prints the same, but it was the slowest part of the fault tests.
 */
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TOP "/proc/sys/net"

static const char *const ignored[] = { "nf_conntrack_count", "flush" };

static int is_wanted(const struct dirent *entry)
{
	for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
		if (strcmp(entry->d_name, ignored[i]) == 0)
			return 0;
	return entry->d_name[0] != '.';
}

static void print_file(const char *ns, const char *path)
{
	char value[4096];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t len;

	if (fd < 0)
		return;
	len = read(fd, value, sizeof(value) - 1);
	close(fd);
	if (len < 0)
		return;
	value[len] = '\0';
	printf("sysctl %s/%s %s%s", ns, path + strlen(TOP "/"), value,
	       len > 0 && value[len - 1] == '\n' ? "" : "\n");
}

static void print_below(const char *ns, const char *dir)
{
	struct dirent **entries;
	int n = scandir(dir, &entries, is_wanted, alphasort);

	for (int i = 0; i < n; i++) {
		char path[PATH_MAX];

		snprintf(path, sizeof(path), "%s/%s", dir, entries[i]->d_name);
		if (entries[i]->d_type == DT_DIR)
			print_below(ns, path);
		else
			print_file(ns, path);
		free(entries[i]);
	}
	if (n >= 0)
		free(entries);
}

int main(int argc, char **argv)
{
	print_below("", TOP);
	for (int i = 1; i < argc; i++) {
		char path[PATH_MAX];

		snprintf(path, sizeof(path), "/run/netns/%s", argv[i]);
		int fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0 || setns(fd, CLONE_NEWNET) < 0) {
			perror(path);
			return 1;
		}
		close(fd);
		print_below(argv[i], TOP);
	}
	return 0;
}
