/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test/replay.c - main() that feeds the files of a corpus to a fuzzer, without libFuzzer
 *
 * What:  replay-NAME DIR calls the fuzzer's function with each file of DIR, in order of their names,
 *        and prints TAP. A file passes if the function returns.
 * How:   src/meson.build links this file with each src/.../fuzz-NAME.c, so that the ordinary build
 *        runs each parser on its corpus too.
 * Rules: each input is an allocation of exactly its size, so that ASan and valgrind detect reads
 *        behind its end. The name of a file is printed before it is read, so the last line of a
 *        program that crashed has the name.
 */
#include <dirent.h>
#include <err.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int is_visible(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

static void replay(const char *dir, const char *name, int number)
{
	struct stat st;
	uint8_t *data;
	char path[4096];
	FILE *f;

	printf("# %s\n", name);
	fflush(stdout);
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "re");
	if (!f || fstat(fileno(f), &st) < 0)
		err(1, "%s", path);
	data = malloc((size_t)st.st_size);
	if (st.st_size > 0 && (!data || fread(data, (size_t)st.st_size, 1, f) != 1))
		err(1, "%s", path);
	LLVMFuzzerTestOneInput(data, (size_t)st.st_size);
	free(data);
	fclose(f);
	printf("ok %d - corpus: %s is read without a crash\n", number, name);
}

int main(int argc, char **argv)
{
	struct dirent **files;
	int i, count;

	if (argc != 2)
		errx(2, "usage: %s DIR", argv[0]);
	count = scandir(argv[1], &files, is_visible, alphasort);
	if (count < 0)
		err(1, "%s", argv[1]);
	printf("1..%d\n", count);
	for (i = 0; i < count; i++) {
		replay(argv[1], files[i]->d_name, i + 1);
		free(files[i]);
	}
	free(files);
	return 0;
}
