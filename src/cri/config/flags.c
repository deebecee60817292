/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cri/config/flags.c - the command line of hawser-cri
 *
 * How:   getopt_long() with options generated from config_fields. Values are stored by key
 *        with the type of the field, as if they came from the file.
 */
#include "cri/config/flags.h"

#include <errno.h>
#include <getopt.h>
#include <string.h>

#include "base/buf.h"
#include "base/str.h"

#define OPTIONS_MAX 64

/* Values of options: the index of a field, or ACTION_OPTION plus the index of an action, or
 * FILE_OPTION. */
#define ACTION_OPTION 1000
#define FILE_OPTION   2000

static const struct {
	const char *name;
	enum flags_action action;
	const char *help;
} actions[] = {
	{ "check-config", FLAGS_CHECK, "check the configuration and exit" },
	{ "print-config", FLAGS_PRINT, "print the configuration and exit" },
	{ "help", FLAGS_HELP, "print this help and exit" },
	{ "version", FLAGS_VERSION, "print the version and exit" },
};

static void make_options(struct option *options)
{
	size_t n = 0;

	for (const struct hw_field *f = config_fields; f->type != HW_END; f++, n++)
		options[n] = (struct option){
			.name = f->name,
			.has_arg = required_argument,
			.val = (int)n,
		};
	for (size_t i = 0; i < ARRAY_SIZE(actions); i++, n++)
		options[n] =
			(struct option){ .name = actions[i].name, .val = ACTION_OPTION + (int)i };
	options[n] = (struct option){ .name = "config",
				      .has_arg = required_argument,
				      .val = FILE_OPTION };
}

static bool is_utf8(const char *text)
{
	while (*text) {
		size_t n = str_utf8_len(text);

		if (n == 0)
			return false;
		text += n;
	}
	return true;
}

static int set_field(struct value *values, const struct hw_field *f, const char *text,
		     struct hw_err *e)
{
	struct value *v;
	long long n;

	if (!is_utf8(text))
		return err_text(e, -EINVAL, "--%s: value is not UTF-8", f->name);
	switch (f->type) {
	case HW_INT:
	case HW_INT64:
	case HW_UINT32:
		if (!str_to_int64(text, INT64_MIN, INT64_MAX, &n))
			return err_text(e, -EINVAL, "--%s: expected a number, got %.200s", f->name,
					text);
		v = value_new_int(n);
		break;
	case HW_BOOL:
		if (!str_equal(text, "true") && !str_equal(text, "false"))
			return err_text(e, -EINVAL, "--%s: expected true or false, got %.200s",
					f->name, text);
		v = value_new_bool(str_equal(text, "true"));
		break;
	case HW_STRINGS:
		if (!value_get(values, f->name))
			value_set(values, f->name, value_new_array());
		value_append(value_get(values, f->name), value_new_string(text));
		return 0;
	default:
		v = value_new_string(text);
	}
	value_set(values, f->name, v);
	return 0;
}

int flags_parse(int argc, char **argv, struct flags *ret_flags, struct hw_err *e)
{
	AUTO(flags_done) struct flags flags = { .file = CONFIG_FILE };
	struct option options[OPTIONS_MAX] = { 0 };
	int option, r;

	make_options(options);
	flags.values = value_new_object();
	opterr = 0;
	optind = 0;
	while ((option = getopt_long(argc, argv, "+:", options, NULL)) != -1) {
		if (option == ':')
			return err_text(e, -EINVAL, "%s: missing value", argv[optind - 1]);
		if (option == '?')
			return err_text(e, -EINVAL, "unknown flag %s; see --help",
					argv[optind - 1]);
		if (option == FILE_OPTION) {
			flags.file = optarg;
			flags.file_given = true;
		} else if (option >= ACTION_OPTION) {
			flags.action = actions[option - ACTION_OPTION].action;
		} else {
			r = set_field(flags.values, &config_fields[option], optarg, e);
			if (r < 0)
				return r;
		}
	}
	if (optind < argc)
		return err_text(e, -EINVAL, "unknown argument %.200s; see --help", argv[optind]);
	*ret_flags = flags;
	flags.values = NULL;
	return 0;
}

void flags_done(struct flags *flags)
{
	value_free(flags->values);
}

static const char *argument_name(const struct hw_field *f)
{
	switch (f->type) {
	case HW_INT:
	case HW_INT64:
	case HW_UINT32:
		return " NUMBER";
	case HW_BOOL:
		return " true|false";
	default:
		return " TEXT";
	}
}

char *flags_help(void)
{
	AUTO(buf_done) struct buf b = { 0 };

	buf_puts(&b,
		 "usage: hawser-cri [FLAG]...\n\nContainer runtime for kubelet, crictl and hawser: "
		 "serves CRI v1 on a unix socket.\n\n");
	buf_printf(&b,
		   "  --config FILE\n      YAML file whose keys have the same names as the flags "
		   "below (default %s)\n",
		   CONFIG_FILE);
	for (size_t i = 0; i < ARRAY_SIZE(actions); i++)
		buf_printf(&b, "  --%s\n      %s\n", actions[i].name, actions[i].help);
	for (const struct hw_field *f = config_fields; f->type != HW_END; f++)
		buf_printf(&b, "  --%s%s%s\n      %s (default %s)\n", f->name, argument_name(f),
			   f->type == HW_STRINGS ? " ..." : "", f->help, f->def);
	return buf_take(&b);
}
