/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/spec.c - image configuration in the verbose ImageStatus of a runtime
 */
#include "cli/spec.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "api/cri-v1.pb-c.h"
#include "base/json/field.h"
#include "base/str.h"
#include "cli/text.h"

static const struct hw_field step_fields[] = {
	{ "created", HW_STRING, HW_AT(struct spec_step, created) },
	{ "created_by", HW_STRING, HW_AT(struct spec_step, created_by) },
	{ "comment", HW_STRING, HW_AT(struct spec_step, comment) },
	{ "empty_layer", HW_BOOL, HW_AT(struct spec_step, empty_layer) },
	{ 0 },
};

static const struct hw_field config_fields[] = {
	{ "User", HW_STRING, HW_AT(struct spec_config, user) },
	{ "WorkingDir", HW_STRING, HW_AT(struct spec_config, working_dir) },
	{ "StopSignal", HW_STRING, HW_AT(struct spec_config, stop_signal) },
	{ "Env", HW_STRINGS, HW_AT(struct spec_config, env) },
	{ "Entrypoint", HW_STRINGS, HW_AT(struct spec_config, entrypoint) },
	{ "Cmd", HW_STRINGS, HW_AT(struct spec_config, cmd) },
	{ "Labels", HW_MAP, HW_AT(struct spec_config, labels) },
	{ "ExposedPorts", HW_JSON, HW_AT(struct spec_config, ports) },
	{ "Volumes", HW_JSON, HW_AT(struct spec_config, volumes) },
	{ 0 },
};

static const struct hw_field rootfs_fields[] = {
	{ "diff_ids", HW_STRINGS, HW_AT(struct spec_rootfs, diff_ids) },
	{ 0 },
};

static const struct hw_field spec_fields[] = {
	{ "created", HW_STRING, HW_AT(struct spec, created) },
	{ "architecture", HW_STRING, HW_AT(struct spec, architecture) },
	{ "os", HW_STRING, HW_AT(struct spec, os) },
	{ "variant", HW_STRING, HW_AT(struct spec, variant) },
	{ "config", HW_OBJECT, HW_AT(struct spec, config), .sub = config_fields },
	{ "rootfs", HW_OBJECT, HW_AT(struct spec, rootfs), .sub = rootfs_fields },
	{ "history", HW_LIST, HW_AT(struct spec, history), .sub = step_fields,
	  .size = sizeof(struct spec_step) },
	{ 0 },
};

int spec_read(const Runtime__V1__ImageStatusResponse *status, struct spec *ret, struct hw_err *e)
{
	AUTO(value_free) struct value *info = NULL;
	const struct value *spec = NULL;
	const char *text = NULL;

	for (size_t i = 0; i < status->n_info && !text; i++)
		if (str_equal(status->info[i]->key, "info"))
			text = status->info[i]->value;
	if (text) {
		if (value_parse(text, strlen(text), &info, e) < 0)
			return err_ctx(e, "verbose status of the image");
		spec = value_get(info, "imageSpec");
	}
	if (!spec)
		return 0;
	if (field_decode(spec_fields, spec, ret, e) < 0)
		return err_ctx(e, "image configuration");
	return 1;
}

void spec_done(struct spec *spec)
{
	hw_field_clear(spec_fields, spec);
}

char *spec_age(const char *created)
{
	int64_t then;

	return text_time(created, &then) ? text_age((int64_t)time(NULL) - then) : str_copy("");
}
