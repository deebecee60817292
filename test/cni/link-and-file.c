/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cni/link-and-file.c - a test plugin that makes something and keeps a record
 *
 * What:  ADD makes a link on the host and a file in `directory`, DEL removes
 *        what the record names; it has no GC of its own.
 * Rules: as every plugin must: written down first, made then.
 */
#include <errno.h>

#include "base/mem.h"
#include "things.h"

static int add(struct hw_call *call, struct hw_err *e)
{
	struct things *made = call->made;

	if (call->earlier)
		return err_text(e, -EEXIST, "container %s has interface %s already",
				call->container_id, call->ifname);
	made->link = things_link_name(call);
	made->file = things_file_name(call);
	int r = hw_record_save(call, e);
	if (r >= 0)
		r = things_make_link(made->link, e);
	if (r == -EEXIST) /* somebody else's: not ours to undo */
		free(take_ptr(made->link));
	if (r >= 0)
		r = things_make_file(made->file, e);
	return r < 0 ? r : things_report(call, e);
}

static const struct hw_plugin plugin = {
	.size = sizeof(plugin),
	.name = "link-and-file",
	.summary = "makes a link and a file, for tests",
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
