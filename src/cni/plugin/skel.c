/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cni/plugin/skel.c - the plugin side of the CNI protocol
 *
 * What:  checks a call in upstream's order, with upstream's codes and texts,
 *        runs the plugin's verb, and formats the reply.
 * How:   one table of verbs, and one of environment variables with the verbs
 *        that require them.
 * Rules: CNI_NETNS must not be the plugin's own namespace; that is checked
 *        before anything is changed. The reply is formatted after everything
 *        has succeeded, so standard output never gets two objects.
 * Not:   undo, records and locks are in attach.c, main() is in program.c.
 */
#include "cni/plugin/skel.h"

#include <errno.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/json/field.h"
#include "base/os/netns.h"
#include "base/str.h"
#include "cni/error.h"
#include "cni/lock.h"
#include "cni/name.h"
#include "cni/plugin/attach.h"
#include "cni/result.h"
#include "cni/runtime/conf.h"
#include "cni/version.h"

enum { ADD = 1 << 0, DEL = 1 << 1, CHECK = 1 << 2, GC = 1 << 3, STATUS = 1 << 4 };

struct verb {
	const char *name;
	unsigned bit;
	const char *since; /* minimum version of the configuration; NULL: any */
	int (*run)(struct skel_frame *f, struct hw_err *e);
};

static const struct verb verbs[] = {
	{ "ADD", ADD, NULL, attach_add },
	{ "DEL", DEL, NULL, attach_del },
	{ "CHECK", CHECK, "0.4.0", attach_check },
	{ "GC", GC, "1.1.0", attach_gc },
	{ "STATUS", STATUS, "1.1.0", attach_status },
};

struct variable {
	const char *name;
	size_t offset;	   /* offset of its member in struct skel_request */
	unsigned required; /* verbs that require it */
	int (*check)(const char *value, struct hw_err *e);
};

#define IN_REQUEST(member) offsetof(struct skel_request, member)

/* The variables are checked in this order, after CNI_COMMAND. */
static const struct variable variables[] = {
	{ "CNI_CONTAINERID", IN_REQUEST(container_id), ADD | CHECK | DEL, name_check_container },
	{ "CNI_NETNS", IN_REQUEST(netns), ADD | CHECK },
	{ "CNI_IFNAME", IN_REQUEST(ifname), ADD | CHECK | DEL, name_check_ifname },
	{ "CNI_PATH", IN_REQUEST(path), ADD | CHECK | DEL | GC | STATUS },
};

static const struct verb *verb_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++)
		if (str_equal(verbs[i].name, name))
			return &verbs[i];
	return NULL;
}

/* An invalid variable is reported first, even if others are missing. */
static int check_environment(const struct skel_request *request, struct hw_err *e)
{
	AUTO(buf_done) struct buf missing = { 0 };
	const struct verb *verb = verb_find(request->command);
	unsigned bit = verb ? verb->bit : 0;

	for (size_t i = 0; i < ARRAY_SIZE(variables); i++) {
		const struct variable *v = &variables[i];
		const char *value = *(const char *const *)((const char *)request + v->offset);

		if (!(v->required & bit))
			continue;
		if (str_empty(value))
			buf_printf(&missing, "%s%s", missing.len ? "," : "", v->name);
		else if (v->check && v->check(value, e) < 0)
			return e->code;
	}
	if (missing.len)
		return err_cni(e, HW_CNI_INVALID_ENV, "required env variables [%s] missing",
			       missing.data);
	return 0;
}

bool skel_wants_input(const struct skel_request *request)
{
	struct hw_err e;

	return !str_empty(request->command) && !str_equal(request->command, "VERSION") &&
	       check_environment(request, &e) >= 0;
}

const char *const *skel_versions(const struct hw_plugin *plugin)
{
	return plugin->versions ? plugin->versions : hw_versions();
}

char *skel_version_reply(const char *const *versions, size_t n)
{
	AUTO(value_free) struct value *reply = value_new_object();
	struct value *list = value_new_array();

	for (size_t i = 0; i < n; i++)
		value_append(list, value_new_string(versions[i]));
	value_set(reply, "cniVersion", value_new_string(VERSION_NEWEST));
	value_set(reply, "supportedVersions", list);
	autofree char *json = value_format(reply, 0);
	return str_printf("%s\n", json);
}

/* Return: the text that a plugin prints when it is started without CNI_COMMAND */
static char *format_about(const struct hw_plugin *plugin)
{
	AUTO(buf_done) struct buf b = { 0 };
	const char *const *versions = skel_versions(plugin);

	buf_printf(&b, "CNI %s plugin hawser %s\nCNI protocol versions supported: ", plugin->name,
		   HAWSER_VERSION);
	for (size_t i = 0; versions[i]; i++)
		buf_printf(&b, "%s%s", i ? ", " : "", versions[i]);
	buf_putc(&b, '\n');
	return buf_take(&b);
}

/* ---- the configuration ----------------------------------------------------- */

/* A missing key and null become "", as in Go's encoding/json. */
static int get_string(const struct value *object, const char *key, const char **ret_text,
		      struct hw_err *e)
{
	const struct value *v = value_find(object, key);

	if (v && value_kind(v) != VALUE_NULL && value_kind(v) != VALUE_STRING)
		return err_text(e, -EINVAL, "%s: expected a string, got %s", key,
				value_kind_name(value_kind(v)));
	*ret_text = str_or(v ? value_string(v) : NULL, "");
	return 0;
}

static int parse_name(struct skel_frame *f, struct hw_err *e)
{
	int r;

	r = value_parse(f->call.input, f->call.input_len, &f->config, e);
	if (r >= 0 && value_kind(f->config) == VALUE_NULL) /* Go decodes null as an empty object */
		return err_cni(e, HW_CNI_INVALID_CONFIG, "missing network name");
	if (r >= 0 && value_kind(f->config) != VALUE_OBJECT)
		r = err_text(e, -EINVAL, "expected an object, got %s",
			     value_kind_name(value_kind(f->config)));
	if (r >= 0)
		r = get_string(f->config, "name", &f->call.network, e);
	if (r < 0) {
		err_ctx(e, "error unmarshall network config");
		return err_recode(e, HW_CNI_DECODE_FAILURE);
	}
	if (str_empty(f->call.network))
		return err_cni(e, HW_CNI_INVALID_CONFIG, "missing network name");
	return name_check_network(f->call.network, e);
}

static int parse_version(struct skel_frame *f, struct hw_err *e)
{
	const char *version = "";

	if (get_string(f->config, "cniVersion", &version, e) < 0) {
		err_ctx(e, "decoding version from network config");
		return err_recode(e, HW_CNI_DECODE_FAILURE);
	}
	f->call.version = version_or_oldest(version);
	return 0;
}

int skel_frame_parse(struct skel_frame *f, struct hw_err *e)
{
	int r;

	r = parse_name(f, e);
	if (r < 0)
		return r;
	return parse_version(f, e);
}

/* struct hw_valid with pointers that are not const, so that a field table can decode it. */
struct valid_attachment {
	char *container_id;
	char *ifname;
};

struct valid_attachments {
	struct hw_list list;
};

static const struct hw_field attachment_fields[] = {
	{ "containerID", HW_STRING, HW_AT(struct valid_attachment, container_id) },
	{ "ifname", HW_STRING, HW_AT(struct valid_attachment, ifname) },
	{ 0 },
};

static const struct hw_field gc_fields[] = {
	{ "cni.dev/valid-attachments", HW_LIST, HW_AT(struct valid_attachments, list),
	  .sub = attachment_fields, .size = sizeof(struct valid_attachment) },
	{ 0 },
};

_Static_assert(sizeof(struct valid_attachment) == sizeof(struct hw_valid),
	       "must have the layout of struct hw_valid");
_Static_assert(offsetof(struct valid_attachment, ifname) == offsetof(struct hw_valid, ifname),
	       "must have the layout of struct hw_valid");

static int decode_valid(struct skel_frame *f, struct hw_err *e)
{
	struct valid_attachments a = { 0 };
	int r;

	if (!value_find(f->config, gc_fields[0].name))
		return 0;
	r = field_decode(gc_fields, f->config, &a, e);
	if (r < 0)
		return r;
	/* An empty list must differ from a missing one, which is NULL. */
	f->call.valid = a.list.v ? a.list.v : mem_new(sizeof(struct hw_valid));
	f->call.n_valid = a.list.n;
	return 0;
}

int skel_frame_decode(struct skel_frame *f, struct hw_err *e)
{
	const struct value *prev = value_find(f->config, "prevResult");
	autofree char *json = NULL;
	int r = 0;

	if (f->plugin->fields) {
		autofree void *conf = mem_new(f->plugin->conf_size);

		r = field_decode(f->plugin->fields, f->config, conf, e);
		if (r >= 0)
			f->call.conf = take_ptr(conf);
	}
	if (r >= 0 && str_equal(f->call.command, "GC"))
		r = decode_valid(f, e);
	if (r < 0) {
		err_ctx(e, "failed to load netconf");
		return err_recode(e, HW_CNI_INVALID_CONFIG);
	}
	if (!prev || value_kind(prev) == VALUE_NULL)
		return 0;
	json = value_format(prev, 0);
	r = result_parse_prev(json, strlen(json), f->call.version, &f->prev, e);
	/* DEL continues without prevResult; upstream's plugins fail and delete nothing. */
	if (r < 0 && str_equal(f->call.command, "DEL"))
		return 0;
	f->call.prev = f->prev;
	return r;
}

void skel_frame_init(struct skel_frame *f, const struct hw_plugin *plugin,
		     const struct skel_request *request)
{
	const char *override = str_or(request->netns_override, "");
	const char *state_dir = request->state_dir;

	*f = (struct skel_frame){
		.plugin = plugin,
		.request = request,
		.call = {
			.command = str_or(request->command, ""),
			.container_id = str_or(request->container_id, ""),
			.netns = str_or(request->netns, ""),
			.ifname = str_or(request->ifname, ""),
			.args = str_or(request->args, ""),
			.path = str_or(request->path, ""),
			.netns_override = str_equal(override, "1") || !strcasecmp(override, "true"),
			.input = str_or(request->input, ""),
			.input_len = request->input ? request->input_len : 0,
			.created = plugin->created_size ? mem_new(plugin->created_size) : NULL,
		},
	};
	if (plugin->record)
		f->state_dir = state_dir ? str_copy(state_dir) : state_dir_default();
}

static void free_fields(const struct hw_field *table, void *p)
{
	if (table && p)
		hw_field_clear(table, p);
	free(p);
}

void skel_frame_done(struct skel_frame *f)
{
	struct valid_attachments a = { .list = { (void *)f->call.valid, f->call.n_valid } };

	free_fields(f->plugin->fields, (void *)f->call.conf);
	free_fields(f->plugin->created_fields, f->call.created);
	hw_field_clear(gc_fields, &a);
	hw_result_free(f->prev);
	hw_result_free(f->call.result);
	free(f->call.reply);
	free(f->state_dir);
	record_done(&f->record);
	value_free(f->config);
}

/* ---- the call ------------------------------------------------------------------- */

/* Checks that the plugin supports the configuration's version. */
static int check_version(const struct skel_frame *f, struct hw_err *e)
{
	AUTO(buf_done) struct buf list = { 0 };
	const char *const *versions = skel_versions(f->plugin);

	for (size_t i = 0; versions[i]; i++)
		if (str_equal(versions[i], f->call.version))
			return 0;
	for (size_t i = 0; versions[i]; i++)
		buf_printf(&list, "%s\"%s\"", i ? " " : "", versions[i]);
	err_cni(e, HW_CNI_INCOMPATIBLE_VERSION, "incompatible CNI versions");
	return err_details(e, "config is \"%s\", plugin supports [%s]", f->call.version,
			   str_or(list.data, ""));
}

/* Checks that the configuration's version has the verb, and that the plugin supports that version or a
 * newer one. */
static int check_verb_version(const struct skel_frame *f, const struct verb *verb, struct hw_err *e)
{
	const char *const *versions = skel_versions(f->plugin);
	int order;

	if (!verb->since)
		return 0;
	if (hw_version_compare(f->call.version, verb->since, &order, e) < 0)
		return err_recode(e, HW_CNI_DECODE_FAILURE);
	if (order < 0)
		return err_cni(e, HW_CNI_INCOMPATIBLE_VERSION, "config version does not allow %s",
			       verb->name);
	for (size_t i = 0; versions[i]; i++) {
		if (hw_version_compare(versions[i], f->call.version, &order, e) < 0)
			return err_recode(e, HW_CNI_DECODE_FAILURE);
		if (order >= 0)
			return 0;
	}
	return err_cni(e, HW_CNI_INCOMPATIBLE_VERSION, "plugin version does not allow %s",
		       verb->name);
}

/* Refuses the plugin's own namespace. Upstream checks this only after the verb has run and the
 * result is printed. */
static int check_netns(const struct skel_frame *f, struct hw_err *e)
{
	autoclose int fd = -1;
	struct stat own, theirs;

	if (f->call.netns_override || f->request->netns_is_checked || str_empty(f->call.netns) ||
	    stat(f->call.netns, &theirs) < 0)
		return 0;
	fd = netns_open_own();
	if (fd < 0 || fstat(fd, &own) < 0) {
		err_set(e, -errno, "get plugin's netns failed");
		return err_recode(e, HW_CNI_INVALID_NETNS);
	}
	if (own.st_dev == theirs.st_dev && own.st_ino == theirs.st_ino)
		return err_cni(e, HW_CNI_INVALID_NETNS,
			       "plugin's netns and netns from CNI_NETNS should not be the same");
	return 0;
}

static bool has_verb(const struct hw_plugin *p, unsigned bit)
{
	switch (bit) {
	case ADD:
		return p->add;
	case DEL:
		return p->del || p->record;
	case CHECK:
		return p->check;
	case GC:
		return p->gc || p->record;
	default:
		return p->status;
	}
}

/* Makes all checks in upstream's order, then runs the verb. */
static int run_command(struct skel_frame *f, struct hw_err *e)
{
	const struct verb *verb = verb_find(f->call.command);
	const char *const *versions = skel_versions(f->plugin);
	size_t n = 0;
	int r;

	r = check_environment(f->request, e);
	if (r < 0)
		return r;
	if (str_equal(f->call.command, "VERSION")) {
		if (f->plugin->version)
			return f->plugin->version(&f->call, e);
		while (versions[n])
			n++;
		f->call.reply = skel_version_reply(versions, n);
		return 0;
	}
	r = parse_name(f, e);
	if (r < 0)
		return r;
	if (!verb)
		return err_cni(e, HW_CNI_INVALID_ENV, "unknown CNI_COMMAND: %s", f->call.command);
	r = parse_version(f, e);
	if (r >= 0)
		r = check_verb_version(f, verb, e);
	if (r >= 0)
		r = check_version(f, e);
	if (r >= 0 && verb->bit & (ADD | DEL))
		r = check_netns(f, e);
	if (r < 0 || !has_verb(f->plugin, verb->bit))
		return r;
	r = skel_frame_decode(f, e);
	if (r >= 0 && f->plugin->record)
		r = record_check_dir(f->state_dir, e);
	return r < 0 ? r : verb->run(f, e);
}

int skel_call(const struct hw_plugin *plugin, const struct skel_request *request,
	      struct skel_reply *ret_reply, struct hw_err *e)
{
	AUTO(skel_frame_done) struct skel_frame f;

	skel_frame_init(&f, plugin, request);
	*ret_reply = (struct skel_reply){ 0 };
	if (str_empty(request->command)) {
		ret_reply->notice = format_about(plugin);
		return 0;
	}
	if (run_command(&f, e) < 0) {
		ret_reply->output = error_format(e);
		ret_reply->status = 1;
		return -1;
	}
	ret_reply->output = take_ptr(f.call.reply);
	ret_reply->status = f.call.exit_status;
	return 0;
}

void skel_reply_done(struct skel_reply *reply)
{
	free(reply->output);
	free(reply->notice);
}
