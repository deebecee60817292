/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench/cri-files.c - the lower bound of statistics: the files of cgroups, read in a loop
 *
 *	stats		open, read and close each file
 *
 * How:   the target is a file with the paths, one in each line.
 */
#include "cri.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/os/file.h"
#include "base/str.h"
#include "base/time.h"

#define LIST_MAX (16 << 20)

static void open_files(struct side *side)
{
	AUTO(buf_done) struct buf text = { 0 };
	struct hw_strings *files = mem_new(sizeof(*files));
	struct hw_err e;

	if (file_read(AT_FDCWD, side->target, LIST_MAX, &text, &e) < 0)
		cri_die(side->target, e.msg);
	strings_split(str_or(text.data, ""), '\n', files);
	side->state = files;
}

static void close_files(struct side *side)
{
	hw_strings_free(side->state);
	free(side->state);
}

static int64_t stats(const struct side *side, struct rpc_client *client, struct op *op)
{
	const struct hw_strings *files = side->state;
	int64_t started = time_now();
	char text[16 << 10];

	(void)client;
	(void)op;
	for (size_t i = 0; i < files->n; i++) {
		autoclose int fd = -1;

		if (!*files->v[i])
			continue;
		fd = open(files->v[i], O_RDONLY | O_CLOEXEC);
		if (fd < 0 || read(fd, text, sizeof(text)) < 0)
			cri_die(files->v[i], strerror(errno));
	}
	return time_now() - started;
}

static const struct step steps[] = { { "stats", stats }, { NULL, NULL } };

const struct side_kind kind_files = {
	.name = "files", .steps = steps, .open = open_files, .close = close_files
};
