/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image/config.c - OCI image configuration
 *
 * How:   a field table. Volumes and ports are JSON objects of which only the keys
 *        matter, so the table keeps them as JSON and add_keys() lists their keys.
 */
#include "image/config.h"

#include <errno.h>
#include <string.h>

#include "base/json/value.h"
#include "base/str.h"

/* The decoded document. Callers see only the config member, which must be the first. */
struct document {
	struct image_config config;
	char *volumes, *ports; /* JSON */
};

static const struct hw_field step_fields[] = {
	{ "created", HW_STRING, HW_AT(struct image_step, created), .help = "time of creation" },
	{ "created_by", HW_STRING, HW_AT(struct image_step, created_by), .help = "build command" },
	{ "author", HW_STRING, HW_AT(struct image_step, author), .help = "author" },
	{ "comment", HW_STRING, HW_AT(struct image_step, comment), .help = "comment" },
	{ "empty_layer", HW_BOOL, HW_AT(struct image_step, empty_layer),
	  .help = "the step added no layer" },
	{ 0 },
};

static const struct hw_field start_fields[] = {
	{ "User", HW_STRING, HW_AT(struct document, config.user), .help = "user to run as" },
	{ "WorkingDir", HW_STRING, HW_AT(struct document, config.working_dir),
	  .help = "working directory" },
	{ "StopSignal", HW_STRING, HW_AT(struct document, config.stop_signal),
	  .help = "signal that stops the container" },
	{ "Env", HW_STRINGS, HW_AT(struct document, config.env),
	  .help = "environment, NAME=VALUE" },
	{ "Entrypoint", HW_STRINGS, HW_AT(struct document, config.entrypoint), .help = "program" },
	{ "Cmd", HW_STRINGS, HW_AT(struct document, config.cmd), .help = "arguments" },
	{ "Volumes", HW_JSON, HW_AT(struct document, volumes), .help = "paths of volumes" },
	{ "ExposedPorts", HW_JSON, HW_AT(struct document, ports), .help = "ports, such as 80/tcp" },
	{ "Labels", HW_MAP, HW_AT(struct document, config.labels), .help = "labels" },
	{ 0 },
};

static const struct hw_field rootfs_fields[] = {
	{ "diff_ids", HW_STRINGS, HW_AT(struct document, config.diff_ids),
	  .help = "digests of the uncompressed layers, the lowest first" },
	{ 0 },
};

/* The objects "config" and "rootfs" have offset 0 because their keys are stored in struct document,
 * too, not in a struct of their own. */
static const struct hw_field document_fields[] = {
	{ "created", HW_STRING, HW_AT(struct document, config.created),
	  .help = "time of creation" },
	{ "author", HW_STRING, HW_AT(struct document, config.author), .help = "author" },
	{ "os", HW_STRING, HW_AT(struct document, config.platform.os), .help = "operating system" },
	{ "architecture", HW_STRING, HW_AT(struct document, config.platform.architecture),
	  .help = "architecture, as Go spells it" },
	{ "variant", HW_STRING, HW_AT(struct document, config.platform.variant),
	  .help = "variant of the architecture" },
	{ "config", HW_OBJECT, 0, .sub = start_fields, .help = "how a container starts" },
	{ "rootfs", HW_OBJECT, 0, .sub = rootfs_fields, .help = "layers" },
	{ "history", HW_LIST, HW_AT(struct document, config.history), .sub = step_fields,
	  .size = sizeof(struct image_step), .help = "build history" },
	{ 0 },
};

/* Add the keys of an object such as {"/data":{}} to a list. */
static int add_keys(const char *name, const char *json, struct hw_strings *list, struct hw_err *e)
{
	AUTO(value_free) struct value *v = NULL;
	struct value *each;
	const char *key;
	int r;

	if (!json)
		return 0;
	r = value_parse(json, strlen(json), &v, e);
	if (r < 0)
		return r;
	if (value_kind(v) != VALUE_OBJECT && value_kind(v) != VALUE_NULL)
		return err_text(e, -EINVAL, "config.%s: expected an object, got %s", name,
				value_kind_name(value_kind(v)));
	for (void *i = NULL; value_next(v, &i, &key, &each);)
		strings_add(list, key);
	return 0;
}

static int check_diff_ids(const struct image_config *c, struct hw_err *e)
{
	for (size_t i = 0; i < c->diff_ids.n; i++) {
		if (digest_check(c->diff_ids.v[i], e) < 0)
			return err_ctx(e, "rootfs.diff_ids[%zu]", i);
		if (!digest_is_sha256(c->diff_ids.v[i]))
			return err_text(e, -EOPNOTSUPP,
					"rootfs.diff_ids[%zu]: unsupported digest %s, want sha256",
					i, c->diff_ids.v[i]);
	}
	return 0;
}

int image_config_parse(const char *json, size_t len, struct image_config **ret_config,
		       struct hw_err *e)
{
	struct document *d = mem_new(sizeof(*d));
	AUTO(image_config_free) struct image_config *c = &d->config;
	int r;

	r = hw_field_decode(document_fields, json, len, d, e);
	if (r >= 0)
		r = add_keys("Volumes", d->volumes, &c->volumes, e);
	if (r >= 0)
		r = add_keys("ExposedPorts", d->ports, &c->ports, e);
	if (r >= 0)
		r = check_diff_ids(c, e);
	if (r < 0) {
		err_replace(e, -EINVAL, -EBADMSG);
		return err_ctx(e, "image configuration");
	}
	digest_of(json, len, c->id);
	*ret_config = take_ptr(c);
	return 0;
}

void image_config_free(struct image_config *c)
{
	if (!c)
		return;
	hw_strings_free(&c->volumes);
	hw_strings_free(&c->ports);
	hw_field_clear(document_fields, c); /* c is the start of a struct document */
	free(c);
}

int image_config_check(const struct image_config *c, const struct manifest *m, struct hw_err *e)
{
	if (c->diff_ids.n != m->layers.n)
		return err_text(e, -EBADMSG,
				"layer count mismatch: the image configuration lists %zu layers, "
				"the manifest %zu",
				c->diff_ids.n, m->layers.n);
	return 0;
}

static char *user_part(const struct image_config *c)
{
	const char *user = str_or(c->user, "");

	return str_ncopy(user, strcspn(user, ":"));
}

bool image_config_uid(const struct image_config *c, int64_t *ret_uid)
{
	autofree char *user = user_part(c);
	long long uid;

	if (!str_to_int64(user, 0, INT64_MAX, &uid))
		return false;
	*ret_uid = uid;
	return true;
}

char *image_config_username(const struct image_config *c)
{
	autofree char *user = user_part(c);
	int64_t uid;

	if (!*user || image_config_uid(c, &uid))
		return NULL;
	return take_ptr(user);
}
