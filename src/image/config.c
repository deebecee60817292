/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image/config.c - an image's configuration: how its containers start, what its layers are
 *
 * How:   a field table; volumes and ports are objects of which only the keys
 *        mean something, so they are decoded as JSON and taken apart here.
 */
#include "image/config.h"

#include <errno.h>
#include <string.h>

#include "base/json/value.h"
#include "base/str.h"

/* The objects inside of the document; the outer struct is what others see. */
struct document {
	struct image_config config;
	char *volumes, *ports; /* JSON */
};

static const struct hw_field step_fields[] = {
	{ "created", HW_STRING, HW_AT(struct image_step, created), .help = "when" },
	{ "created_by", HW_STRING, HW_AT(struct image_step, created_by), .help = "the command" },
	{ "author", HW_STRING, HW_AT(struct image_step, author), .help = "who" },
	{ "comment", HW_STRING, HW_AT(struct image_step, comment), .help = "a note" },
	{ "empty_layer", HW_BOOL, HW_AT(struct image_step, empty_layer),
	  .help = "it has no layer" },
	{ 0 },
};

static const struct hw_field start_fields[] = {
	{ "User", HW_STRING, HW_AT(struct document, config.user), .help = "whom to run as" },
	{ "WorkingDir", HW_STRING, HW_AT(struct document, config.working_dir),
	  .help = "where to start" },
	{ "StopSignal", HW_STRING, HW_AT(struct document, config.stop_signal),
	  .help = "how to end it" },
	{ "Env", HW_STRINGS, HW_AT(struct document, config.env), .help = "NAME=VALUE" },
	{ "Entrypoint", HW_STRINGS, HW_AT(struct document, config.entrypoint),
	  .help = "the program" },
	{ "Cmd", HW_STRINGS, HW_AT(struct document, config.cmd), .help = "its arguments" },
	{ "Volumes", HW_JSON, HW_AT(struct document, volumes), .help = "paths of data" },
	{ "ExposedPorts", HW_JSON, HW_AT(struct document, ports), .help = "where it listens" },
	{ "Labels", HW_MAP, HW_AT(struct document, config.labels), .help = "notes" },
	{ 0 },
};

static const struct hw_field rootfs_fields[] = {
	{ "diff_ids", HW_STRINGS, HW_AT(struct document, config.diff_ids),
	  .help = "digests of the unpacked layers, the lowest first" },
	{ 0 },
};

/* The inner objects fill the same struct: their offsets are from its beginning. */
static const struct hw_field document_fields[] = {
	{ "created", HW_STRING, HW_AT(struct document, config.created), .help = "when" },
	{ "author", HW_STRING, HW_AT(struct document, config.author), .help = "who" },
	{ "os", HW_STRING, HW_AT(struct document, config.platform.os), .help = "operating system" },
	{ "architecture", HW_STRING, HW_AT(struct document, config.platform.architecture),
	  .help = "processor" },
	{ "variant", HW_STRING, HW_AT(struct document, config.platform.variant),
	  .help = "of the processor" },
	{ "config", HW_OBJECT, 0, .sub = start_fields, .help = "how a container starts" },
	{ "rootfs", HW_OBJECT, 0, .sub = rootfs_fields, .help = "what it is made of" },
	{ "history", HW_LIST, HW_AT(struct document, config.history), .sub = step_fields,
	  .size = sizeof(struct image_step), .help = "how it was made" },
	{ 0 },
};

/* Adds the keys of an object of objects: {"/data":{}}. */
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
			return err_text(e, -EOPNOTSUPP, "rootfs.diff_ids[%zu]: %s is not SHA-256",
					i, c->diff_ids.v[i]);
	}
	return 0;
}

static int parse(struct document *d, const char *json, size_t len, struct hw_err *e)
{
	int r = hw_field_decode(document_fields, json, len, d, e);

	if (r >= 0)
		r = add_keys("Volumes", d->volumes, &d->config.volumes, e);
	if (r >= 0)
		r = add_keys("ExposedPorts", d->ports, &d->config.ports, e);
	return r < 0 ? r : check_diff_ids(&d->config, e);
}

/**
 * image_config_parse() - read an image's configuration
 * @json: the bytes, @len of them, just as they came: their digest is the image's id
 *
 * Return: 0, or -EINVAL, -EFBIG, -EOPNOTSUPP
 */
int image_config_parse(const char *json, size_t len, struct image_config **ret_config,
		       struct hw_err *e)
{
	struct document *d = mem_new(sizeof(*d));
	int r = parse(d, json, len, e);

	if (r < 0) {
		image_config_free(&d->config);
		return err_ctx(e, "image configuration");
	}
	digest_of(json, len, d->config.id);
	*ret_config = &d->config;
	return 0;
}

/** image_config_free() - free a configuration */
void image_config_free(struct image_config *c)
{
	if (!c)
		return;
	hw_strings_free(&c->volumes);
	hw_strings_free(&c->ports);
	hw_field_clear(document_fields, c);
	free(c);
}

/**
 * image_config_check() - does it go with this manifest?
 *
 * Return: 0, or -EINVAL
 */
int image_config_check(const struct image_config *c, const struct manifest *m, struct hw_err *e)
{
	if (c->diff_ids.n != m->layers.n)
		return err_text(e, -EINVAL,
				"the image configuration speaks of %zu layers, its manifest of %zu",
				c->diff_ids.n, m->layers.n);
	return 0;
}

static char *user_part(const struct image_config *c)
{
	const char *user = str_or(c->user, "");

	return str_ncopy(user, strcspn(user, ":"));
}

/**
 * image_config_uid() - the user's number, where the image names one
 *
 * What stands before the colon decides: "1003:www" is 1003.
 *
 * Return: whether there is one; the user may be a name instead, or nothing
 */
bool image_config_uid(const struct image_config *c, int64_t *ret_uid)
{
	autofree char *user = user_part(c);
	long long uid;

	if (!str_to_int64(user, 0, INT64_MAX, &uid))
		return false;
	*ret_uid = uid;
	return true;
}

/**
 * image_config_username() - the user's name, where the image has one and not a number
 *
 * Return: the name, to be freed by the caller; NULL: none
 */
char *image_config_username(const struct image_config *c)
{
	autofree char *user = user_part(c);
	int64_t uid;

	if (!*user || image_config_uid(c, &uid))
		return NULL;
	return take_ptr(user);
}
