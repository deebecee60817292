/* SPDX-License-Identifier: Apache-2.0 */
/* hello.c - a CNI plugin that writes a greeting for each container into a directory */
#include <errno.h>
#include <hawser/plugin.h>
#include <stdio.h>
#include <unistd.h>

struct hello_conf {
	char *dir, *word;
};

static const struct hw_field hello_fields[] = {
	{ "directory", HW_STRING, HW_AT(struct hello_conf, dir), HW_REQUIRED, .help = "target" },
	{ "word", HW_STRING, HW_AT(struct hello_conf, word), .def = "\"hello\"", .help = "text" },
	{ 0 },
};

static const char *path_of(const struct hw_call *call)
{
	const struct hello_conf *conf = call->conf;
	static char path[4096];

	snprintf(path, sizeof(path), "%s/%s-%s", conf->dir, call->container_id, call->ifname);
	return path;
}

/* Before this call, call->result is the result of the previous plugin; we pass it on unchanged. */
static int hello_add(struct hw_call *call, struct hw_err *e)
{
	FILE *f;

	f = fopen(path_of(call), "we");
	if (!f)
		return hw_err_set(e, -errno, "write %s", path_of(call));
	fprintf(f, "%s %s\n", ((struct hello_conf *)call->conf)->word, call->container_id);
	return fclose(f) < 0 ? hw_err_set(e, -errno, "write %s", path_of(call)) : 0;
}

static int hello_del(struct hw_call *call, struct hw_err *e)
{
	bool failed = unlink(path_of(call)) < 0 && errno != ENOENT;
	return failed ? hw_err_set(e, -errno, "remove %s", path_of(call)) : 0;
}

static int hello_check(struct hw_call *call, struct hw_err *e)
{
	return access(path_of(call), F_OK) < 0 ? hw_err_set(e, -errno, "%s", path_of(call)) : 0;
}

int main(int argc, char **argv)
{
	static const struct hw_plugin hello = {
		sizeof(hello),		"hello",
		"writes a greeting",	.add = hello_add,
		.del = hello_del,	.check = hello_check,
		.fields = hello_fields, .conf_size = sizeof(struct hello_conf),
		.record = true
	};
	return hw_plugin_main(argc, argv, &hello);
}
