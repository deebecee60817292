/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cni/plugin/program.c - main() of a plugin
 *
 * What:  builds the request from the environment and standard input, and writes
 *        the reply to standard output and standard error. -h prints help.
 * Rules: standard input is read only if the environment is valid, so a plugin
 *        started by hand does not hang.
 */
#include "cni/plugin/program.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/json/value.h"
#include "base/os/file.h"
#include "base/str.h"
#include "cni/error.h"
#include "cni/runtime/cni.h"

#define HEAP_PAD (256 << 10) /* more than a call needs, so that the heap grows only once */

static const char protocol_help[] =
	"A container runtime runs this plugin with these environment variables and the network\n"
	"configuration on standard input; the reply is JSON on standard output:\n"
	"\n"
	"  CNI_COMMAND      ADD, DEL, CHECK, GC, STATUS or VERSION\n"
	"  CNI_CONTAINERID  container ID\n"
	"  CNI_NETNS        path of the container's network namespace\n"
	"  CNI_IFNAME       name of the interface in the namespace\n"
	"  CNI_ARGS         additional arguments, KEY=VALUE;...\n"
	"  CNI_PATH         directories that contain plugins, DIR:DIR...\n";

static int print_help(const struct hw_plugin *plugin)
{
	printf("%s - %s\n\n%s", plugin->name, str_or(plugin->summary, "a CNI plugin"),
	       protocol_help);
	if (plugin->fields) {
		autofree char *doc = hw_field_document(plugin->fields);
		printf("\nKeys of the configuration:\n\n%s", doc);
	}
	return fflush(stdout) == 0 ? 0 : 1;
}

static int write_text(int fd, const char *text)
{
	struct hw_err e;

	if (!text)
		return 0;
	return file_write_fd(fd, text, strlen(text), &e);
}

/* Return: the exit status */
static int write_reply(const struct skel_reply *reply)
{
	if (write_text(STDERR_FILENO, reply->notice) < 0 ||
	    write_text(STDOUT_FILENO, reply->output) < 0)
		return 1;
	return reply->status;
}

/* Prints an error object for a runtime, or plain text if the plugin was started by hand. */
static int report_error(const struct hw_err *e)
{
	struct skel_reply reply = { .status = 1 };
	bool by_hand = str_empty(getenv("CNI_COMMAND"));
	autofree char *text = by_hand ? str_printf("%s\n", e->msg) : error_format(e);

	*(by_hand ? &reply.notice : &reply.output) = text;
	return write_reply(&reply);
}

/* If the program was started through a dynamic loader, AT_EXECFN names the loader, and the plugin is
 * executed. AT_EXECFN is faster to resolve than /proc/self/exe. */
const struct hw_plugin *program_find(const struct hw_plugin *const *plugins,
				     const struct stat *self, const char *name, const char *path)
{
	const char *own_path = (const char *)getauxval(AT_EXECFN);
	struct stat own, found;

	while (plugins && *plugins && !str_equal((*plugins)->name, name))
		plugins++;
	if (!plugins || !*plugins || stat(path, &found) < 0)
		return NULL;
	if (!self && own_path && stat(own_path, &own) == 0)
		self = &own;
	if (!self || self->st_dev != found.st_dev || self->st_ino != found.st_ino ||
	    !(found.st_mode & (S_IXUSR | S_IXGRP | S_IXOTH)))
		return NULL;
	return *plugins;
}

void program_init(void)
{
	mallopt(M_TOP_PAD, HEAP_PAD);
	value_seed();
}

struct skel_request program_request(const struct hw_plugin *const *siblings)
{
	return (struct skel_request){
		.command = getenv("CNI_COMMAND"),
		.container_id = getenv("CNI_CONTAINERID"),
		.netns = getenv("CNI_NETNS"),
		.ifname = getenv("CNI_IFNAME"),
		.args = getenv("CNI_ARGS"),
		.path = getenv("CNI_PATH"),
		.netns_override = getenv("CNI_NETNS_OVERRIDE"),
		.siblings = siblings,
	};
}

int program_main(int argc, char **argv, const struct hw_plugin *plugin,
		 const struct hw_plugin *const *siblings)
{
	AUTO(skel_reply_done) struct skel_reply reply = { 0 };
	AUTO(buf_done) struct buf input = { 0 };
	struct skel_request request = program_request(siblings);
	struct hw_err e;

	program_init();
	file_open_missing_stdio(O_PATH);
	if (argc > 1 && (str_equal(argv[1], "-h") || str_equal(argv[1], "--help")))
		return print_help(plugin);
	if (skel_wants_input(&request) &&
	    file_read_fd(STDIN_FILENO, VALUE_SIZE_MAX, &input, &e) < 0) {
		err_ctx(&e, "error reading from stdin");
		err_recode(&e, HW_CNI_IO_FAILURE);
		return report_error(&e);
	}
	request.input = input.data;
	request.input_len = input.len;
	(void)skel_call(plugin, &request, &reply, &e);
	return write_reply(&reply);
}

int hw_plugin_main(int argc, char **argv, const struct hw_plugin *plugin)
{
	struct hw_plugin own;
	struct hw_err e;

	if (cni_copy_struct(&own, sizeof(own), plugin, "struct hw_plugin", &e) < 0)
		return report_error(&e);
	if (str_empty(own.name)) {
		err_text(&e, -EINVAL, "struct hw_plugin.name is not set");
		return report_error(&e);
	}
	return program_main(argc, argv, &own, NULL);
}
