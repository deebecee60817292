/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cni/link-and-file.c - test plugin: a link and a file, with records
 *
 * What:  ADD creates a link on the host and a file in `directory`; DEL deletes
 *        what the record names. The plugin has no GC of its own.
 * Rules: as in every plugin, the record is written before anything is created.
 */
#include <errno.h>

#include "base/mem.h"
#include "things.h"

static int add(struct hw_call *call, struct hw_err *e)
{
	struct things *made = call->created;

	made->link = things_link_name(call);
	made->file = things_file_name(call);
	int r = hw_record_save(call, e);
	if (r >= 0)
		r = things_create_link(made->link, e);
	if (r == -EEXIST) /* not created by this plugin: must not be undone */
		free(take_ptr(made->link));
	if (r >= 0)
		r = things_create_file(made->file, e);
	return r < 0 ? r : things_add_result(call, e);
}

static const struct hw_plugin plugin = {
	.size = sizeof(plugin),
	.name = "link-and-file",
	.summary = "creates a link and a file; for tests",
	.add = add,
	.del = things_delete,
	.check = things_check,
	.fields = things_conf_fields,
	.conf_size = sizeof(struct things_conf),
	.record = true,
	.created_fields = things_fields,
	.created_size = sizeof(struct things),
};

int main(int argc, char **argv)
{
	return hw_plugin_main(argc, argv, &plugin);
}
