/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cni/leaky.c - link-and-file with a mistake in it
 *
 * What:  the file is made before its name is written down: killed in between,
 *        it stays behind for good. The fault harness must notice.
 */
#include "things.h"

static int add(struct hw_call *call, struct hw_err *e)
{
	struct things *made = call->made;

	made->link = things_link_name(call);
	int r = hw_record_save(call, e);
	if (r >= 0)
		r = things_make_link(made->link, e);
	made->file = things_file_name(call);
	if (r >= 0)
		r = things_make_file(made->file, e);
	if (r >= 0)
		r = hw_record_save(call, e);
	return r < 0 ? r : things_report(call, e);
}

static const struct hw_plugin plugin = {
	.size = sizeof(plugin),
	.name = "leaky",
	.summary = "makes a link and a file, and may forget the file, for tests",
	.add = add,
	.del = things_remove,
	.check = things_check,
	.fields = things_conf_fields,
	.conf_size = sizeof(struct things_conf),
	.record = true,
	.made_fields = things_fields,
	.made_size = sizeof(struct things),
};

int main(int argc, char **argv)
{
	return hw_plugin_main(argc, argv, &plugin);
}
