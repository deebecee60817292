/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cni/things.c - the objects that the test plugins create: a link and a file
 */
#include "things.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/os/file.h"
#include "base/str.h"
#include "net/rtnl/link.h"
#include "net/rtnl/rtnl.h"

const struct hw_field things_conf_fields[] = {
	{ "directory", HW_STRING, HW_AT(struct things_conf, directory), HW_REQUIRED,
	  .help = "directory of the file; created if missing" },
	{ 0 },
};

const struct hw_field things_fields[] = {
	{ "link", HW_STRING, HW_AT(struct things, link) },
	{ "file", HW_STRING, HW_AT(struct things, file) },
	{ 0 },
};

char *things_link_name(const struct hw_call *call)
{
	const char *parts[] = { call->network, call->container_id, call->ifname };
	char hex[9];

	hash_parts(parts, ARRAY_SIZE(parts), 8, hex);
	return str_printf("test%s", hex);
}

char *things_file_name(const struct hw_call *call)
{
	const struct things_conf *conf = call->conf;

	return str_printf("%s/%s-%s-%s", conf->directory, call->network, call->container_id,
			  call->ifname);
}

int things_create_link(const char *name, struct hw_err *e)
{
	const struct ifinfomsg head = { .ifi_family = AF_UNSPEC };
	AUTO(rtnl_close) struct rtnl *nl = NULL;

	int r = rtnl_open(-1, &nl, e);
	if (r < 0)
		return r;
	struct nlmsghdr *m = rtnl_put(nl, RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, &head,
				      sizeof(head), "create link %s", name);
	mnl_attr_put_strz(m, IFLA_IFNAME, name);
	struct nlattr *info = mnl_attr_nest_start(m, IFLA_LINKINFO);
	mnl_attr_put_strz(m, IFLA_INFO_KIND, "bridge");
	mnl_attr_nest_end(m, info);
	return rtnl_commit(nl, e);
}

static int delete_link(const char *name, struct hw_err *e)
{
	const struct ifinfomsg head = { .ifi_family = AF_UNSPEC };
	AUTO(rtnl_close) struct rtnl *nl = NULL;

	int r = rtnl_open(-1, &nl, e);
	if (r < 0)
		return r;
	struct nlmsghdr *m =
		rtnl_put(nl, RTM_DELLINK, 0, &head, sizeof(head), "delete link %s", name);
	mnl_attr_put_strz(m, IFLA_IFNAME, name);
	r = rtnl_commit(nl, e);
	return r == -ENODEV ? 0 : r;
}

int things_create_file(const char *path, struct hw_err *e)
{
	autofree char *dir = str_ncopy(path, strrchr(path, '/') - path);

	int r = file_mkdirs(AT_FDCWD, dir, 0755, e);
	return r < 0 ? r : file_replace(AT_FDCWD, path, "", 0, 0644, 0, e);
}

int things_add_result(struct hw_call *call, struct hw_err *e)
{
	const struct things *made = call->made;

	hw_result_add_iface(call->result)->name = str_copy(made->link);
	/* With an address the result can be converted to every version. */
	return hw_prefix_parse("192.0.2.1/24", &hw_result_add_ip(call->result)->address, e);
}

int things_delete(struct hw_call *call, struct hw_err *e)
{
	const struct things *made = call->made;
	int r = 0;

	if (made->link)
		r = delete_link(made->link, e);
	if (r >= 0 && made->file)
		r = file_remove(AT_FDCWD, made->file, e);
	return r < 0 ? r : 0;
}

int things_check(struct hw_call *call, struct hw_err *e)
{
	const struct things *made = call->made;

	if (!made->link || !if_nametoindex(made->link))
		return err_text(e, -ENODEV, "link %s does not exist", str_or(made->link, "?"));
	if (!made->file || access(made->file, F_OK) < 0)
		return err_text(e, -ENOENT, "file %s does not exist", str_or(made->file, "?"));
	return 0;
}
