/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cri/config/flags.c - the command line of hawser-cri
 *
 * How:   getopt_long() with options made from config_fields; a value is put where
 *        the file has it, as the type that the field has.
 */
#include "cri/config/flags.h"

#include <errno.h>
#include <getopt.h>
#include <string.h>

#include "base/buf.h"
#include "base/str.h"

#define FIELDS_MAX 64
#define ACTION	   1000 /* and more: an action; below: the index of a field */
#define FILE_FLAG  2000

static const struct {
	const char *name;
	enum flags_do what;
	const char *help;
} actions[] = {
	{ "check-config", FLAGS_CHECK, "say whether the configuration can be used, and end" },
	{ "print-config", FLAGS_PRINT, "print the configuration, and end" },
	{ "help", FLAGS_HELP, "print this, and end" },
	{ "version", FLAGS_VERSION, "print the version, and end" },
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
		options[n] = (struct option){ .name = actions[i].name, .val = ACTION + (int)i };
	options[n] =
		(struct option){ .name = "config", .has_arg = required_argument, .val = FILE_FLAG };
}

static int set_number(struct flags *flags, const struct hw_field *f, const char *text,
		      struct hw_err *e)
{
	long long n;

	if (!str_to_int64(text, INT64_MIN, INT64_MAX, &n))
		return err_text(e, -EINVAL, "--%s: expected a number, got %.200s", f->name, text);
	value_set(flags->values, f->name, value_new_int(n));
	return 0;
}

static int set_bool(struct flags *flags, const struct hw_field *f, const char *text,
		    struct hw_err *e)
{
	bool is_true = str_equal(text, "true");

	if (!is_true && !str_equal(text, "false"))
		return err_text(e, -EINVAL, "--%s: expected true or false, got %.200s", f->name,
				text);
	value_set(flags->values, f->name, value_new_bool(is_true));
	return 0;
}

static void add_string(struct flags *flags, const struct hw_field *f, const char *text)
{
	if (!value_get(flags->values, f->name))
		value_set(flags->values, f->name, value_new_array());
	value_append(value_get(flags->values, f->name), value_new_string(text));
}

static bool is_text(const char *text)
{
	while (*text) {
		size_t n = str_utf8(text);

		if (n == 0)
			return false;
		text += n;
	}
	return true;
}

static int set_field(struct flags *flags, const struct hw_field *f, const char *text,
		     struct hw_err *e)
{
	if (!is_text(text))
		return err_text(e, -EINVAL, "--%s: not UTF-8", f->name);
	switch (f->type) {
	case HW_INT:
	case HW_INT64:
		return set_number(flags, f, text, e);
	case HW_BOOL:
		return set_bool(flags, f, text, e);
	case HW_STRINGS:
		add_string(flags, f, text);
		return 0;
	default:
		value_set(flags->values, f->name, value_new_string(text));
		return 0;
	}
}

static int take(struct flags *flags, int option, char **argv, struct hw_err *e)
{
	if (option == ':')
		return err_text(e, -EINVAL, "%s: a value is missing", argv[optind - 1]);
	if (option == '?')
		return err_text(e, -EINVAL, "unknown flag %s; --help lists them", argv[optind - 1]);
	if (option == FILE_FLAG) {
		flags->file = optarg;
		flags->file_given = true;
		return 0;
	}
	if (option >= ACTION) {
		flags->what = actions[option - ACTION].what;
		return 0;
	}
	return set_field(flags, &config_fields[option], optarg, e);
}

/**
 * flags_parse() - the arguments of main()
 * @argc:      their number
 * @argv:      with the program's name
 * @ret_flags: to be ended with flags_done(), on success
 * @e:         the error
 */
int flags_parse(int argc, char **argv, struct flags *ret_flags, struct hw_err *e)
{
	AUTO(flags_done) struct flags flags = { .file = CONFIG_FILE };
	struct option options[FIELDS_MAX] = { 0 };
	int option, r = 0;

	make_options(options);
	flags.values = value_new_object();
	opterr = 0;
	optind = 0;
	while (r == 0 && (option = getopt_long(argc, argv, "+:", options, NULL)) != -1)
		r = take(&flags, option, argv, e);
	if (r == 0 && optind < argc)
		r = err_text(e, -EINVAL, "unknown argument %.200s; --help lists the flags",
			     argv[optind]);
	if (r < 0)
		return r;
	*ret_flags = flags;
	flags.values = NULL;
	return 0;
}

void flags_done(struct flags *flags)
{
	value_free(flags->values);
}

static const char *argument(const struct hw_field *f)
{
	switch (f->type) {
	case HW_INT:
	case HW_INT64:
		return " NUMBER";
	case HW_BOOL:
		return " true|false";
	default:
		return " TEXT";
	}
}

/**
 * flags_help() - what --help prints
 *
 * Return: the text, to be freed by the caller
 */
char *flags_help(void)
{
	AUTO(buf_done) struct buf b = { 0 };

	buf_puts(&b, "usage: hawser-cri [FLAG]...\n\nServes CRI v1, so that kubelet, crictl and "
		     "hawser have a runtime.\n\n");
	buf_printf(&b,
		   "  --config FILE\n      keys of the same names as the flags below (default "
		   "%s)\n",
		   CONFIG_FILE);
	for (size_t i = 0; i < ARRAY_SIZE(actions); i++)
		buf_printf(&b, "  --%s\n      %s\n", actions[i].name, actions[i].help);
	for (const struct hw_field *f = config_fields; f->type != HW_END; f++)
		buf_printf(&b, "  --%s%s%s\n      %s (default %s)\n", f->name, argument(f),
			   f->type == HW_STRINGS ? " ..." : "", f->help, f->def);
	return buf_take(&b);
}
