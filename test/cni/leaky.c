/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cni/leaky.c - test plugin: link-and-file with a bug
 *
 * What:  creates the file before its name is in the record. If the plugin is
 *        killed in between, the file is never deleted. The fault tests must detect that.
 */
#include "things.h"

static int add(struct hw_call *call, struct hw_err *e)
{
	struct things *made = call->created;

	made->link = things_link_name(call);
	int r = hw_record_save(call, e);
	if (r >= 0)
		r = things_create_link(made->link, e);
	made->file = things_file_name(call);
	if (r >= 0)
		r = things_create_file(made->file, e);
	if (r >= 0)
		r = hw_record_save(call, e);
	return r < 0 ? r : things_add_result(call, e);
}

static const struct hw_plugin plugin = {
	.size = sizeof(plugin),
	.name = "leaky",
	.summary = "creates a link and a file, and may leak the file; for tests",
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
